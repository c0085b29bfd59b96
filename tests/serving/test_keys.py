"""Keys: who is admitted, what is refused, and that nothing of them is kept in the open."""

from __future__ import annotations

from pathlib import Path

import pytest

from outrider.core import UserError
from outrider.serving.keys import Keys


def test_every_key_of_the_file_is_admitted_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# team a\n one \n\ntwo\n")
    keys = Keys.read(str(path), "serving.keys_file")
    assert [keys.admit(f"Bearer {key}") for key in ("one", "two", " two")] == [True] * 3
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer three",
        "Basic one",
        "one",
        "Bearer # team a",
    ):
        assert not keys.admit(wrong), wrong
    assert "one" not in repr(vars(keys))


def test_without_a_file_everybody_is_admitted() -> None:
    assert Keys.read("", "serving.keys_file").admit(None)


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_a_file_without_a_key_admits_nobody_but_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(UserError, match=r"serving\.keys_file: no key in"):
        Keys.read(str(path), "serving.keys_file")
    with pytest.raises(UserError, match=r"serving\.keys_file: can't read"):
        Keys.read(str(tmp_path / "missing"), "serving.keys_file")
