"""Text to ids and back, and whether two models speak the same tokens."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from outrider.core import Tokenizer, UserError
from outrider.models import HfTokenizer, same_vocabulary

TURNS = [{"role": "user", "content": "When does the ferry leave?"}]


@dataclass(frozen=True)
class Words:
    """A tokenizer that is nothing but its vocabulary."""

    vocabulary: dict[str, int]
    eos_ids: frozenset[int] = field(default_factory=frozenset)

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary[word] for word in text.split()]

    def decode(self, token_ids: list[int]) -> str:
        words = {token_id: word for word, token_id in self.vocabulary.items()}
        return " ".join(words[token_id] for token_id in token_ids)


@pytest.fixture
def copied(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("text", ["", " a", "a  b\n\n c .", "won't , n't", "é 😀 漢字", "\t17 23"])
def test_text_survives_the_round_trip(tiny_folder: Path, text: str) -> None:
    tokenizer = HfTokenizer.load(tiny_folder)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_leave_no_trace_in_text(tiny_folder: Path) -> None:
    tokenizer = HfTokenizer.load(tiny_folder)
    assert tokenizer.decode([*tokenizer.encode("water"), 2]) == "water"


def test_a_conversation_ends_where_the_model_is_to_speak(tiny_folder: Path) -> None:
    tokenizer = HfTokenizer.load(tiny_folder)
    text = tokenizer.render_chat(TURNS)
    assert text == "<|im_start|>user\nWhen does the ferry leave?<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer.encode_chat(TURNS)
    assert ids == tokenizer.encode(text)
    assert ids[0] == tokenizer.vocabulary["<|im_start|>"]
    assert ids.count(tokenizer.vocabulary["<|im_end|>"]) == 1


def test_bos_is_added_to_raw_text_only_where_the_tokenizer_says_so(copied: Path) -> None:
    plain = HfTokenizer.load(copied).encode("water")
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
        ],
        "special_tokens": {
            "<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}
        },
    }
    change(copied / "tokenizer.json", post_processor=template)
    adding = HfTokenizer.load(copied)
    assert adding.encode("water") == [1, *plain]
    assert adding.encode_chat(TURNS).count(1) == 2  # the template's own two, none in front


def test_a_model_without_a_template_refuses_messages_only(copied: Path) -> None:
    (copied / "chat_template.jinja").unlink()
    tokenizer = HfTokenizer.load(copied)
    assert not tokenizer.has_chat_template
    assert tokenizer.encode("water")
    with pytest.raises(UserError, match="no chat template"):
        tokenizer.encode_chat(TURNS)


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0]['content'] + 1 }}",
        "{% if %}",
    ],
)
def test_a_template_that_refuses_is_that_requests_error(copied: Path, template: str) -> None:
    (copied / "chat_template.jinja").write_text(template)
    with pytest.raises(UserError, match="chat template refuses"):
        HfTokenizer.load(copied).render_chat(TURNS)


def test_the_end_is_what_the_generation_configuration_and_the_turn_say(copied: Path) -> None:
    change(copied / "generation_config.json", eos_token_id=[0, 5])
    assert HfTokenizer.load(copied).eos_ids == {0, 5, 2}
    (copied / "generation_config.json").unlink()
    change(copied / "config.json", eos_token_id=7)
    assert HfTokenizer.load(copied).eos_ids == {7, 2}
    change(copied / "config.json", eos_token_id=None)
    assert HfTokenizer.load(copied).eos_ids == {2}


def test_a_broken_tokenizer_is_one_clear_line(copied: Path) -> None:
    (copied / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(UserError, match="tokenizer in") as refusal:
        HfTokenizer.load(copied)
    assert "\n" not in str(refusal.value)


def test_the_same_tokens_in_any_order_agree(tiny_folder: Path) -> None:
    tokenizer = HfTokenizer.load(tiny_folder)
    backwards = Words(dict(reversed(list(tokenizer.vocabulary.items()))))
    same_vocabulary(tokenizer, backwards)


@pytest.mark.parametrize(
    ("draft", "first"),
    [
        ({"a": 0, "b": 1, "d": 2}, "'c': id 2 in the target, absent in the draft"),
        ({"a": 0, "b": 2, "c": 1}, "'b': id 1 in the target, id 2 in the draft"),
        ({"a": 0, "b": 1}, "'c': id 2 in the target, absent in the draft"),
        ({"a": 0, "b": 1, "c": 2, "d": 3}, "'d': absent in the target, id 3 in the draft"),
    ],
)
def test_other_tokens_are_refused_whatever_the_size(draft: dict[str, int], first: str) -> None:
    """E20."""
    target: Tokenizer = Words({"a": 0, "b": 1, "c": 2})
    with pytest.raises(UserError) as refusal:
        same_vocabulary(target, Words(draft))
    assert first in str(refusal.value)
    assert "draft.model.source" in str(refusal.value)
