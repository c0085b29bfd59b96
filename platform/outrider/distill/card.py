"""The card of a head (README.md of its folder): whose it is, how it was made, what it reaches."""

from __future__ import annotations

from pathlib import Path

from outrider.bulk.durable import replacing
from outrider.distill.judgement import NUM_POSITIONS
from outrider.distill.report import DistillReport
from outrider.engine.head import HeadConfig

CARD = "README.md"

_TEXT = """\
---
license: {license}
tags: [speculative-decoding, eagle-3]
---
# A draft head for {target}
One decoder layer on layers {layers} of its target (EAGLE-3, arXiv 2503.01840). It says {says} of
{vocab} tokens ({coverage:.2%} of what the answers say). {megabytes:.1f} MB in bfloat16. It drafts
for exactly these weights: any other model is refused.

## Made by
```
{command}
```
from {tokens} tokens that the target itself wrote: {rows} answers, and {judged} others to judge by.
{updates} updates in {minutes:.0f} minutes; the head of update {best} was kept.

| what | digest |
|---|---|
{parents}

## How far drafts go
On the answers that it has not learnt from, a draft begun at each of their tokens. A position counts
where all before it were right. *Agrees*: with the target's likeliest token (temperature 0).
*Overlap*: sum of min(p, q), the acceptance at temperature 1.

| draft position | agrees | overlap | tokens a round, greedy |
|---|---|---|---|
{positions}
"""


def write_card(
    folder: Path, report: DistillReport, config: HeadConfig, *, target: str, license: str
) -> None:
    """`target`: where the model came from; `license`: an SPDX name, "" where nobody told it."""
    with replacing(folder / CARD) as out:
        out.write(card(report, config, target=target, license=license).encode())


def card(report: DistillReport, config: HeadConfig, *, target: str, license: str) -> str:
    return _TEXT.format(
        license=license or "unknown",
        target=target,
        layers=_listed(config.feature_layers),
        says=config.draft_vocab_size,
        vocab=config.vocab_size,
        coverage=report.coverage_ratio,
        megabytes=report.head_bytes / 1e6,
        command=config.provenance["command"],
        tokens=report.num_answer_tokens,
        rows=report.num_train_rows,
        judged=report.num_valid_rows,
        updates=report.num_updates,
        minutes=report.train_s / 60,
        best=report.best_update,
        parents="\n".join(f"| {name} | `{value}` |" for name, value in report.parents.items()),
        positions="\n".join(_position(report, place) for place in range(1, NUM_POSITIONS + 1)),
    )


def _position(report: DistillReport, place: int) -> str:
    metrics = report.metrics
    return (
        f"| {place} | {metrics[f'agreement_ratio_{place}']:.1%} "
        f"| {metrics[f'overlap_ratio_{place}']:.1%} | {metrics[f'tokens_per_round_{place}']:.2f} |"
    )


def _listed(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
