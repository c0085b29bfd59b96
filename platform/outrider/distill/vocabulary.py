"""The words that a head can say: few are needed, and its last product is as wide as they are.

FR-Spec (Zhao et al. 2025, arXiv 2502.14856): most of what a model says is said with few of its
tokens; a draft that can't say the rest is rejected there, which costs acceptance only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from outrider.distill.corpus import Example


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Ids of the target, growing."""

    ids: tuple[int, ...]

    def coverage(self, examples: Iterable[Example]) -> float:
        """Ratio of the answers' tokens that it has."""
        known, num, covered = set(self.ids), 0, 0
        for example in examples:
            answer = example.tokens[example.num_prompt :]
            num += len(answer)
            covered += sum(token in known for token in answer)
        return covered / num if num else 0.0


def vocabulary_of(
    examples: Iterable[Example], eos_ids: Collection[int], vocab_size: int
) -> Vocabulary:
    """The ends of a text, then the most frequent of the answers, then those of the prompts.

    Fewer than `vocab_size` where the texts have fewer.
    """
    answered: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for example in examples:
        asked.update(example.tokens[: example.num_prompt])
        answered.update(example.tokens[example.num_prompt :])
    ranked = sorted(
        (answered.keys() | asked.keys()) - set(eos_ids),
        key=lambda token: (-answered[token], -asked[token], token),
    )
    chosen = [*sorted(eos_ids), *ranked]
    return Vocabulary(tuple(sorted(chosen[:vocab_size])))
