"""Text to ids and back, by the model's own tokenizer and chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from outrider.core import Tokenizer, UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Message = Mapping[str, Any]
"""One turn in OpenAI's form: `role` and `content`."""


class HfTokenizer:
    """A `core.Tokenizer` over a transformers tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, eos_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self._vocabulary: dict[str, int] = tokenizer.get_vocab()

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the tokenizer of a model folder. Raises UserError where it cannot be read."""
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        except Exception as error:  # its Rust half raises a bare Exception
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UserError(
                f"model.source: the tokenizer in {folder} cannot be read ({reason})"
            ) from error
        return cls(tokenizer, eos_ids_of(folder, tokenizer.eos_token_id))

    @property
    def eos_ids(self) -> frozenset[int]:
        return self._eos_ids

    @property
    def vocabulary(self) -> Mapping[str, int]:
        return self._vocabulary

    def to_json(self) -> str:
        """The tokenizer in the format of tokenizer.json. UserError: it has no such form."""
        fast = getattr(self._tokenizer, "backend_tokenizer", None)
        if fast is None:
            raise UserError("structured output needs a tokenizer with a tokenizer.json")
        return str(fast.to_str())

    @property
    def has_chat_template(self) -> bool:
        return self._tokenizer.chat_template is not None

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, with BOS where the model's tokenizer adds one itself."""
        return self._encode(text, with_special_tokens=True)

    def decode(self, token_ids: list[int]) -> str:
        """Return the text; special tokens leave no trace, spaces are kept as they are."""
        return str(
            self._tokenizer.decode(
                token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def render_chat(self, messages: Sequence[Message]) -> str:
        """Return the conversation as the model was taught to see it, up to its own turn.

        Raises UserError where the model has no template or the template refuses the messages.
        """
        from jinja2 import TemplateError

        if not self.has_chat_template:
            raise UserError(
                "this model has no chat template; give a prompt (/v1/completions), not messages"
            )
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    [dict(message) for message in messages],
                    add_generation_prompt=True,
                    tokenize=False,
                )
            )
        except (TemplateError, TypeError, KeyError, ValueError, AttributeError) as error:
            raise UserError(f"messages: the chat template refuses them: {error}") from error

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation; special tokens are those that the template writes."""
        return self._encode(self.render_chat(messages), with_special_tokens=False)

    def encode_more(self, text: str) -> list[int]:
        """Return the ids of text that goes on behind other text: no BOS, no EOS."""
        return self._encode(text, with_special_tokens=False)

    def _encode(self, text: str, *, with_special_tokens: bool) -> list[int]:
        return list(
            self._tokenizer.encode(text, add_special_tokens=with_special_tokens, verbose=False)
        )


def eos_ids_of(folder: Path, tokenizer_eos: int | None) -> frozenset[int]:
    """Return the ids that end a text: the generation configuration's (or else the model's) and
    the tokenizer's own, which for chat models is the end of a turn.
    """
    declared = _declared_eos(folder / "generation_config.json")
    if not declared:
        declared = _declared_eos(folder / "config.json")
    return declared | (frozenset() if tokenizer_eos is None else frozenset({tokenizer_eos}))


def _declared_eos(path: Path) -> frozenset[int]:
    if not path.exists():
        return frozenset()
    declared = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    if declared is None:
        return frozenset()
    return frozenset(declared if isinstance(declared, list) else [declared])


def same_vocabulary(target: Tokenizer, draft: Tokenizer) -> None:
    """Raise UserError unless both tokenizers give every token the same id.

    The maps are compared, not their sizes: two models may have as many tokens and other words.
    The width of the logits is not looked at, for it may be padded.
    """
    ours, theirs = target.vocabulary, draft.vocabulary
    if ours == theirs:
        return
    differing = [token for token in {*ours, *theirs} if ours.get(token) != theirs.get(token)]
    first = min(differing, key=lambda token: (ours.get(token, len(ours)), theirs.get(token, 0)))
    raise UserError(
        f"draft.model.source: {len(differing)} tokens of the draft differ from the target's; the "
        f"first is {first!r}: {_id_text(first, ours)} in the target, {_id_text(first, theirs)} in "
        "the draft; choose a draft of the same family"
    )


def _id_text(token: str, vocabulary: Mapping[str, int]) -> str:
    return f"id {vocabulary[token]}" if token in vocabulary else "absent"
