"""What is typed becomes settings, or one line that says what is near."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from outrider.config.folders import SHIPPED
from outrider.config.load import load
from outrider.config.schema import BulkJob, DrafterKind, Dtype, LengthPolicy
from outrider.core import UserError

GIVEN = ("input=a.jsonl", "job_dir=out")


def bulk(*words: str, config_dir: Path | None = None) -> BulkJob:
    return load(BulkJob, "bulk", [*GIVEN, *words], config_dir)


def refusal(*words: str) -> str:
    with pytest.raises(UserError) as caught:
        load(BulkJob, "bulk", words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_settings_are_frozen() -> None:
    settings = bulk()
    with pytest.raises(FrozenInstanceError):
        settings.draft.length.max = 3  # type: ignore[misc]


def test_a_preset_is_a_difference() -> None:
    plain, demo = bulk(), load(BulkJob, "bulk", ["preset=demo"])
    assert demo.bulk.input == str(SHIPPED / "data" / "sample.jsonl")
    assert demo.bulk.job_dir == "runs/demo"
    assert demo.model == plain.model
    assert demo.draft == bulk("draft=composite").draft
    assert demo.engine == replace(plain.engine, max_rows=demo.engine.max_rows)


def test_what_is_typed_wins_over_the_preset() -> None:
    assert bulk("preset=demo", "input=mine.jsonl").bulk.input == "mine.jsonl"
    assert bulk("preset=exact", "model.dtype=bfloat16").model.dtype is Dtype.BFLOAT16


def test_a_group_is_chosen_whole() -> None:
    fixed = bulk("draft=fixed", "draft.length.max=2").draft
    assert (fixed.length.policy, fixed.length.max) == (LengthPolicy.FIXED, 2)
    assert not fixed.breaker.enabled


def test_a_draft_model_has_the_keys_of_a_model() -> None:
    draft = bulk(
        "draft=composite_model", "draft.model.source=hub:a/b@c", "draft.model.kv_blocks=9"
    ).draft
    assert draft.drafter is DrafterKind.COMPOSITE
    assert draft.model is not None
    assert (draft.model.source, draft.model.kv_blocks) == ("hub:a/b@c", 9)


@pytest.mark.parametrize("spelling", ["float32", "FLOAT32", "Float32"])
def test_enums_are_typed_in_any_case(spelling: str) -> None:
    assert bulk(f"model.dtype={spelling}").model.dtype is Dtype.FLOAT32


def test_the_front_of_a_key_may_be_left_out_where_one_key_ends_so() -> None:
    settings = bulk("trace=true", "limit=3", "temperature=0.5", "length.max=4")
    assert settings.engine.trace
    assert settings.bulk.limit == 3
    assert settings.sampling.temperature == 0.5
    assert settings.draft.length.max == 4
    said = refusal(*GIVEN, "dtype=float32")
    assert said == "dtype: more than one key ends so: model.dtype, draft.model.dtype"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("draft.length.max=abc", "draft.length.max: expected a whole number, got 'abc'"),
        ("draft.length.max=(3", "draft.length.max: expected a whole number, got '(3'"),
        ("draft.length.max=1,2", "draft.length.max: expected a whole number, got '1,2'"),
        ("draft.length.max=", "draft.length.max: expected a whole number, got ''"),
        ("draft.lenght.max=3", "draft.lenght.max: no such key; did you mean draft.length.max?"),
        ("engine.draft_length.max=abc", "engine.draft_length.max: no such key; did you mean"),
        ("inptu=x", "inptu: no such key; did you mean bulk.input?"),
        ("+new.key=1", "new.key: no such key"),
        ("foo=1", "foo: no such key; --help lists them"),
        ("foo", "'foo': expected key=value"),
        ("=3", "'=3': expected key=value"),
        ("draft=ngrm", "draft=ngrm: no such choice; did you mean ngram? choose from composite, "),
        ("preset=zzz", "preset=zzz: no such choice; choose from demo, exact"),
        ("model.dtype=bfloat", "model.dtype: unknown value 'bfloat'; did you mean bfloat16?"),
        ("draft=model", "draft.model.source is missing: give draft.model.source=..."),
        ("draft.model.source=hub:a", "draft.model.source: draft.model is off here; choose another"),
        ("draft.length=3", "draft.length is a section: set its keys"),
        ("model.source=${nope}", "model.source: Interpolation key 'nope' not found"),
        ("model.kv_blocks=1.5", "model.kv_blocks: expected a whole number, got 1.5"),
    ],
)
def test_a_word_that_cannot_be_meant_is_one_line(word: str, said: str) -> None:
    """P19: a wrong type, a typo, a missing value: the key is named."""
    assert refusal(*GIVEN, word).startswith(said)


def test_a_missing_value_is_named() -> None:
    assert refusal("job_dir=out") == "bulk.input is missing: give bulk.input=..."


def can_be_typed(name: str) -> bool:
    is_quoted = name[0] in "'\"" and name[0] == name[-1]
    return bool(name.strip() and "${" not in name and name not in ("null", "???") and not is_quoted)


LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])
NAMES = st.text(LETTERS, min_size=1).filter(can_be_typed)


@given(st.tuples(NAMES, NAMES, NAMES))
@example(("\\'", "a\\", "a b, [c] = #d"))
@effort(max_examples=14, deadline=None)
def test_any_file_name_can_be_typed_as_it_is(names: tuple[str, str, str]) -> None:
    """Three at a time: a composition takes long."""
    words = [f"input={names[0]}", f"job_dir={names[1]}", f"tracking.experiment={names[2]}"]
    settings = load(BulkJob, "bulk", words)
    assert (settings.bulk.input, settings.bulk.job_dir, settings.tracking.experiment) == names


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_of_the_users_adds_files(tmp_path: Path) -> None:
    written(tmp_path, "preset/mine.yaml", "# @package _global_\nbulk:\n  limit: 7\n")
    written(tmp_path, "sampling/short.yaml", "defaults: [greedy, _self_]\nmax_tokens: 9\n")
    settings = bulk("preset=mine", "sampling=short", config_dir=tmp_path)
    assert (settings.bulk.limit, settings.sampling.max_tokens) == (7, 9)
    assert settings.sampling.temperature == 0.0


def test_a_file_of_the_users_never_hides_a_shipped_one(tmp_path: Path) -> None:
    written(tmp_path, "sampling/greedy.yaml", "max_tokens: 9\n")
    with pytest.raises(
        UserError, match=r"sampling/greedy\.yaml is shipped already; give it another"
    ):
        bulk(config_dir=tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_tokens: 9\nmax_tokns: 3\n", "sampling.max_tokns: no such key; did you mean max_to"),
        ("max_tokens: [\n", "mine.yaml"),
        ("max_tokens: lots\n", "sampling.max_tokens: expected a whole number, got 'lots'"),
        ("defaults: [nowhere]\n", "sampling/nowhere"),
    ],
)
def test_a_broken_file_of_the_users_is_named(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path, "sampling/mine.yaml", text)
    with pytest.raises(UserError) as caught:
        bulk("sampling=mine", config_dir=tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_dir_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--config-dir: no folder"):
        bulk(config_dir=tmp_path / "nowhere")
