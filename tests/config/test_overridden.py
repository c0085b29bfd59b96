"""What a person typed, as the full keys that it sets."""

import pytest

from outrider.config.folders import Folders
from outrider.config.overridden import overridden
from outrider.config.schema import BulkJob, ServeJob


@pytest.mark.parametrize(
    ("word", "keys"),
    [
        ("engine.max_rows=4", ["engine.max_rows"]),
        ("max_rows=4", ["engine.max_rows"]),
        ("length.max=4", ["draft.length.max"]),
        ("+limit=3", ["bulk.limit"]),
        ("draft=fixed", ["draft"]),
        ("model={source: path:a}", ["model"]),
        ("release=models:/outrider/1", ["release"]),
        ("preset=exact", ["model.dtype"]),
        ("preset=demo", ["bulk.job_dir", "bulk.baseline", "engine.max_rows"]),
        ("data=sample", ["bulk.input"]),
        ("preset=null", ["preset"]),
    ],
)
def test_a_word_sets_these_keys(word: str, keys: list[str]) -> None:
    found = overridden(BulkJob, Folders().groups("bulk"), [word])
    assert found == dict.fromkeys(keys, word)


def test_a_file_of_the_users_may_set_every_section() -> None:
    found = overridden(BulkJob, Folders().groups("bulk"), ["preset=mine"])
    assert {"model", "engine", "draft", "sampling"} <= found.keys()


def test_the_last_word_on_a_key_counts() -> None:
    words = ["port=1", "serving.port=2"]
    assert overridden(ServeJob, Folders().groups("serve"), words) == {"serving.port": words[1]}
