"""What was learnt, from what, and how far its drafts go: report.json, and one screen of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from outrider.bulk.durable import replacing
from outrider.bulk.progress import duration
from outrider.distill.judgement import NUM_POSITIONS

SHORT = 12  # characters of a fingerprint that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillReport:
    """Written when the head is."""

    fingerprint: str  # digest of the head's files
    num_train_rows: int
    num_valid_rows: int
    num_answer_tokens: int
    num_dropped_rows: int
    vocab_size: int
    coverage_ratio: float  # of the validation part's tokens that the head can say
    feature_layers: tuple[int, ...]
    num_updates: int
    best_update: int
    train_s: float
    head_bytes: int
    metrics: Mapping[str, float]  # of `judgement.Judgement`, of the best head
    parents: Mapping[str, str]
    run_id: str

    def save(self, path: Path) -> None:
        with replacing(path) as out:
            out.write(json.dumps(asdict(self), indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> DistillReport:
        told = json.loads(path.read_bytes())
        return cls(**{**told, "feature_layers": tuple(told["feature_layers"])})

    def figures(self) -> dict[str, float]:
        """For the run."""
        return {
            **self.metrics,
            "coverage_ratio": self.coverage_ratio,
            "train_s": self.train_s,
            "best_update": float(self.best_update),
            "num_answer_tokens": float(self.num_answer_tokens),
        }


def show(report: DistillReport, head_dir: Path, version: str, console: Console) -> None:
    """Print one screen. `version`: what `draft.head.source` takes."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("draft position", "agrees", "overlap", "tokens per round"):
        table.add_column(name, justify="right", no_wrap=True)
    for place in range(1, NUM_POSITIONS + 1):
        table.add_row(
            str(place),
            f"{report.metrics.get(f'agreement_ratio_{place}', 0):.1%}",
            f"{report.metrics.get(f'overlap_ratio_{place}', 0):.1%}",
            f"{report.metrics.get(f'tokens_per_round_{place}', 1):.2f}",
        )
    console.print(table)
    lines = [
        f"learnt from {report.num_answer_tokens} tokens of {report.num_train_rows} answers in "
        f"{duration(report.train_s)}; judged by {report.num_valid_rows} others",
        f"says {report.vocab_size} tokens, {report.coverage_ratio:.2%} of what is said",
        f"head        {head_dir} ({report.head_bytes / 1e6:.1f} MB)",
        f"fingerprint {report.fingerprint[:SHORT]}",
        f"use it with draft=head draft.head.source={version}",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
