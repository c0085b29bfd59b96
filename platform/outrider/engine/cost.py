"""Seconds of a served round by rows, tokens scored and draft steps, learnt from rounds really run.

Log seconds live on a grid of (rows, tokens) knots, with a Gaussian process prior over the grid:
rounds near one another cost alike, and the machine's overall speed is one shared unknown. Between
knots seconds are linear. Each round is one step of an extended Kalman filter in log seconds
(Rasmussen & Williams 2006, eq. 2.25-2.26, made recursive), so that small and large rounds weigh
alike, and a residual beyond three standard deviations is clipped: a straggler is not a trend.

A round of another size than the one before may cost more (a graph prepares for it): what that takes
is one more unknown, in seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from outrider.core import UserError
from outrider.engine.cost_table import ROWS, TOKENS, CostTable, locate

Array = npt.NDArray[np.float64]

_NUM_NODES = len(ROWS) * len(TOKENS)  # target nodes [rows, tokens]; one draft node per ROWS behind
_CHANGE_NODE = _NUM_NODES + len(ROWS)  # seconds of changing the size, the last node

_NOISE = 0.1**2  # variance of one round's log seconds
_CLIP = 3.0  # standard deviations
_LEVEL, _ALONG_TOKENS, _ALONG_ROWS, _BOTH = 25.0, 0.5, 0.1, 0.05  # prior variances
_DRAFT, _CHANGE = 1.0, 2.0
_LEVEL_DRIFT, _SHAPE_DRIFT = 1e-4, 1e-5  # variance that a round adds: how old rounds are forgotten
_REACH = 4.0  # doublings over which knots resemble one another
_FORMAT = 2


class CostModel:
    """`identity` says what was measured (hardware, model, draft, dtype, engine version)."""

    def __init__(self, identity: Mapping[str, str]) -> None:
        self.identity = dict(identity)
        self.num_observed = 0
        self._log_s = _prior_mean()  # [nodes]
        self._covariance = _prior_covariance(_LEVEL, 1.0)  # [nodes, nodes]
        self._drift = _prior_covariance(_LEVEL_DRIFT, _SHAPE_DRIFT)
        self._table = _table(self._log_s)

    def observe(
        self, rows: int, tokens: int, draft_steps: int, seconds: float, *, changed: bool = False
    ) -> None:
        """Learn from one round; `changed`: the one before had another number of tokens.

        A clock that stood still teaches nothing.
        """
        if seconds <= 0.0:
            return
        nodes, shares = self._sensitivity(rows, tokens, draft_steps, changed=changed)
        predicted = float(np.log(shares.sum()))
        slope = shares / shares.sum()  # d log seconds / d log node
        self._covariance += self._drift
        spread = self._covariance[:, nodes] @ slope
        variance = float(spread[nodes] @ slope) + _NOISE
        limit = _CLIP * variance**0.5
        residual = min(max(float(np.log(seconds)) - predicted, -limit), limit)
        gain = spread / variance
        self._log_s += gain * residual
        self._covariance -= np.outer(gain, spread)
        self.num_observed += 1
        self._table = _table(self._log_s)

    def predict(self, rows: int, tokens: int, draft_steps: int = 0) -> float:
        """Seconds of one round."""
        return self.predict_range(rows, tokens, 1, draft_steps)[0]

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        """Seconds of rounds of first, first + 1, ... tokens scored: [count], not decreasing."""
        return self._table.predict_range(rows, first, count, draft_steps)

    @property
    def table(self) -> CostTable:
        return self._table

    def doubt(self, rows: int, tokens: int) -> float:
        """Standard deviation of the predicted log seconds of a round without draft steps."""
        nodes, shares = self._sensitivity(rows, tokens, 0, changed=False)
        slope = shares / shares.sum()
        return float(slope @ self._covariance[np.ix_(nodes, nodes)] @ slope) ** 0.5

    def optimistic(self) -> CostTable:
        """The table with every knot one standard deviation cheaper.

        Deciding by it now and then tries rounds of unknown cost that might pay, and changes
        nothing where cost is known: otherwise a batch that always drafts one token per row would
        never learn what none or two would have cost.
        """
        return _table(self._log_s - np.sqrt(np.diagonal(self._covariance)))

    def save(self, path: Path) -> None:
        """Write the table as JSON, whole or not at all."""
        table = {
            "format": _FORMAT,
            "identity": self.identity,
            "digest": identity_digest(self.identity),
            "num_observed": self.num_observed,
            "rows": ROWS,
            "tokens": TOKENS,
            "log_seconds": self._log_s.tolist(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        part.write_text(json.dumps(table, indent=1))
        part.replace(path)

    @classmethod
    def load(cls, path: Path, identity: Mapping[str, str]) -> CostModel:
        """Read a table of the same identity, as a prior that new rounds still correct.

        Raises UserError where the file is not a cost table, or was measured for something else.
        """
        table = _read(path)
        _refuse_foreign(path, table["identity"], identity)
        model = cls(identity)
        model.num_observed = int(table["num_observed"])
        model._log_s = np.asarray(table["log_seconds"], dtype=np.float64)
        model._covariance = _prior_covariance(0.1, 0.1)
        model._table = _table(model._log_s)
        return model

    def to_dict(self) -> dict[str, object]:
        """Predicted seconds at the knots that matter most, for reading."""
        seconds = {
            str(rows): {str(t): self.predict(rows, t) for t in TOKENS if rows <= t <= rows * 16}
            for rows in ROWS
        }
        return {
            "num_observed": self.num_observed,
            "seconds": seconds,
            "change_s": self._table.change_s,
        }

    def _sensitivity(
        self, rows: int, tokens: int, draft_steps: int, *, changed: bool
    ) -> tuple[npt.NDArray[np.intp], Array]:
        """Nodes that a round touches and the seconds each contributes; the sum is the round's."""
        row, row_share = locate(ROWS, min(rows, ROWS[-1]))
        token, token_share = locate(TOKENS, min(tokens, TOKENS[-1]))
        weights: dict[int, float] = {_CHANGE_NODE: float(changed)}
        for r, row_weight in ((row, 1.0 - row_share), (row + 1, row_share)):
            weights[r * len(TOKENS) + token] = row_weight * (1.0 - token_share)
            weights[r * len(TOKENS) + token + 1] = row_weight * token_share
            weights[_NUM_NODES + r] = draft_steps * row_weight
        nodes = np.fromiter((n for n, w in weights.items() if w > 0.0), dtype=np.intp)
        shares = np.fromiter((w for w in weights.values() if w > 0.0), dtype=np.float64)
        return nodes, shares * np.exp(self._log_s[nodes])


def _table(log_s: Array) -> CostTable:
    grid = np.exp(log_s[:_NUM_NODES]).reshape(len(ROWS), len(TOKENS))
    np.maximum.accumulate(grid, axis=1, out=grid)
    np.maximum.accumulate(grid, axis=0, out=grid)
    draft = np.exp(log_s[_NUM_NODES:_CHANGE_NODE])
    return CostTable(grid.tolist(), draft.tolist(), float(np.exp(log_s[_CHANGE_NODE])))


def identity_digest(identity: Mapping[str, str]) -> str:
    """Short name of what a table was measured for; good as a file name."""
    return hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()[:16]


def _prior_mean() -> Array:
    """A plausible shape; its level is unknown by e^5 either way and set by the first rounds."""
    target = [np.log(0.02 + 0.0005 * rows + 0.0004 * tokens) for rows in ROWS for tokens in TOKENS]
    draft = [np.log(0.004 + 0.0002 * rows) for rows in ROWS]
    return np.array([*target, *draft, np.log(0.001)])


def _prior_covariance(level: float, shape: float) -> Array:
    """[nodes, nodes]: one shared level, and deviations that fade with distance in doublings."""
    rows = np.log2([r for r in ROWS for _ in TOKENS] + list(ROWS) + [1])
    tokens = np.log2([t for _ in ROWS for t in TOKENS] + [1] * len(ROWS) + [1])
    is_draft = np.arange(len(rows)) >= _NUM_NODES
    near_rows = np.exp(-np.abs(rows[:, None] - rows) / _REACH)
    near_tokens = np.exp(-np.abs(tokens[:, None] - tokens) / _REACH)
    target = _ALONG_TOKENS * near_tokens + _ALONG_ROWS * near_rows + _BOTH * near_rows * near_tokens
    draft = _DRAFT + _ALONG_ROWS * near_rows
    own = np.where(is_draft[:, None] & is_draft, draft, 0.0)
    own = np.where(~is_draft[:, None] & ~is_draft, target, own)
    own[_CHANGE_NODE, :] = own[:, _CHANGE_NODE] = 0.0
    own[_CHANGE_NODE, _CHANGE_NODE] = _CHANGE
    covariance: Array = level + shape * own
    return covariance


def _read(path: Path) -> dict[str, Any]:
    remedy = "delete it, and it is measured anew"
    try:
        table: dict[str, Any] = json.loads(path.read_text())
        sound = table["format"] == _FORMAT and isinstance(table["identity"], dict)
        sound = sound and (table["rows"], table["tokens"]) == (list(ROWS), list(TOKENS))
        sound = sound and len(table["log_seconds"]) == _CHANGE_NODE + 1
        sound = sound and bool(np.all(np.isfinite(np.asarray(table["log_seconds"], dtype=float))))
        int(table["num_observed"])
    except OSError as error:
        raise UserError(f"cost table {path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"cost table {path}: not a cost table; {remedy}") from error
    if not sound:
        raise UserError(f"cost table {path}: not a cost table of this version; {remedy}")
    return table


def _refuse_foreign(path: Path, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    differing = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if differing:
        told = ", ".join(
            f"{key}={theirs.get(key, 'nothing')} (here {ours.get(key, 'nothing')})"
            for key in differing
        )
        raise UserError(f"cost table {path}: measured for {told}; use another path or delete it")
