"""A job cut off at any moment keeps what is done and does the rest once; nothing doubles."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from scripted_engine import ScriptedEngine
from workshop import Workshop, read_lines, request

from outrider.bulk.folder import Task
from outrider.bulk.parts import part_path, read_footer
from outrider.core import UserError

ROWS = [request(f"r{n}", temperature=n % 2) for n in range(10)]  # shards of 4, 4 and 2


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path, ROWS)


@pytest.fixture
def undisturbed(tmp_path: Path) -> bytes:
    root = tmp_path / "undisturbed"
    root.mkdir()
    shop = Workshop(root, ROWS)
    shop.run()
    return shop.output()


def test_output_is_in_input_order_with_one_row_per_id(shop: Workshop) -> None:
    shop.run()
    assert [row["custom_id"] for row in read_lines(shop.folder.output)] == [
        f"r{n}" for n in range(10)
    ]
    assert shop.folder.errors.read_bytes() == b""


@pytest.mark.parametrize("num_shards", [0, 1, 2])
def test_a_resumed_job_gives_the_bytes_of_an_undisturbed_one(
    shop: Workshop, undisturbed: bytes, num_shards: int
) -> None:
    """P04."""
    shop.run(stop_after=num_shards)
    assert len(list(shop.folder.parts.iterdir())) == num_shards
    assert len(shop.begin()[2]) == 3 - num_shards
    shop.run()
    assert shop.output() == undisturbed


def test_what_an_interrupted_job_did_is_readable(shop: Workshop) -> None:
    """P04."""
    shop.run(stop_after=1)
    lines = read_lines(part_path(shop.folder.parts, 0, 1))
    assert [line["custom_id"] for line in lines[:-1]] == ["r0", "r1", "r2", "r3"]


def test_a_part_that_was_not_recorded_is_adopted(shop: Workshop, undisturbed: bytes) -> None:
    """P03: the driver was killed between the part's final name and its record."""
    index, manifest, tasks = shop.begin()
    manifest.save()
    shop.worker(index).work(tasks[1])  # no record
    before = part_path(shop.folder.parts, 1, 1).stat()

    _, again, left = shop.begin()
    assert [task.shard for task in left] == [0, 2]
    assert again.shards[1].num_done == 4
    shop.run()
    assert shop.output() == undisturbed
    assert part_path(shop.folder.parts, 1, 1).stat().st_ino == before.st_ino


def test_a_folder_without_manifest_but_with_parts_is_foreign(shop: Workshop) -> None:
    shop.folder.root.mkdir()
    (shop.folder.root / "notes.txt").touch()
    with pytest.raises(UserError, match=r"notes\.txt.*name a new or empty folder"):
        shop.begin()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-20],  # cut
        lambda raw: raw.replace(b'"r5"', b'"r6"'),  # another id
        lambda raw: raw.replace(b'"text":"', b'"text":"x', 1),  # another text
        lambda raw: raw.replace(b'"fingerprints":["f1"]', b'"fingerprints":["f0"]'),
        lambda raw: raw.replace(b'{"part":', b'{"pert":'),
        lambda raw: b"",
    ],
)
def test_an_unrecorded_part_that_is_not_whole_or_not_ours_is_redone(
    shop: Workshop, undisturbed: bytes, damage: object
) -> None:
    """P03."""
    index, manifest, tasks = shop.begin()
    manifest.save()
    shop.worker(index).work(tasks[1])
    path = part_path(shop.folder.parts, 1, 1)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]

    left = shop.begin()[2]
    assert Task(1, 2, None) in left
    shop.run()
    assert shop.output() == undisturbed


def test_leftovers_of_a_dead_worker_are_removed(shop: Workshop) -> None:
    shop.run(stop_after=1)
    (shop.folder.parts / "part-00001.1.77.tmp").write_bytes(b"half")
    shop.begin()
    assert [path.name for path in shop.folder.parts.iterdir()] == ["part-00000.1.jsonl"]


def test_the_first_writer_of_a_part_wins(shop: Workshop) -> None:
    """A worker thought dead finishes after the one that replaced it, or before it."""
    index, _, tasks = shop.begin()
    first = shop.worker(index).work(tasks[0])
    path = part_path(shop.folder.parts, 0, 1)
    before = path.read_bytes()
    assert shop.worker(index).work(tasks[0]) == first
    assert path.read_bytes() == before
    assert not list(shop.folder.parts.glob("*.tmp"))


def test_a_done_job_has_nothing_left_to_do(shop: Workshop) -> None:
    shop.run()
    assert shop.begin()[2] == []


def test_a_removed_part_is_done_again(shop: Workshop, undisturbed: bytes) -> None:
    shop.run()
    part_path(shop.folder.parts, 0, 1).unlink()
    assert shop.begin()[2] == [Task(0, 1, None)]
    shop.run()
    assert shop.output() == undisturbed


def test_a_part_changed_by_hand_is_named(shop: Workshop) -> None:
    shop.run()
    path = part_path(shop.folder.parts, 1, 1)
    path.write_bytes(path.read_bytes().replace(b'"text":"', b'"text":"x', 1))
    with pytest.raises(UserError, match=r"part-00001\.1\.jsonl was changed"):
        shop.run()


def test_rows_that_failed_by_a_fault_are_retried_and_the_others_kept(tmp_path: Path) -> None:
    rows = [request("a"), request("b", "flaky"), "not json", request("d")]
    shop = Workshop(tmp_path, rows)
    shop.run()
    first = read_lines(part_path(shop.folder.parts, 0, 1))
    assert [e["code"] for e in read_lines(shop.folder.errors)] == ["engine_error", "invalid_json"]

    mended = shop.but(engine=ScriptedEngine(mended=True))
    index, _, tasks = mended.begin()
    assert tasks == [Task(0, 2, 1)]
    worker = mended.worker(index)
    worker.work(tasks[0])
    second = read_lines(part_path(shop.folder.parts, 0, 2))
    assert (second[0], second[3]) == (first[0], first[3])
    assert [e["code"] for e in read_lines(shop.folder.errors)] == ["engine_error", "invalid_json"]
    mended.run()
    assert [row["custom_id"] for row in read_lines(shop.folder.output)] == ["a", "b", "d"]
    assert [e["code"] for e in read_lines(shop.folder.errors)] == ["invalid_json"]
    found = read_footer(part_path(shop.folder.parts, 0, 2))
    assert found is not None
    assert sum(arm.num_rows for arm in found[1].arms.values()) == 3


def test_another_configuration_is_refused_by_what_differs(shop: Workshop) -> None:
    """P06."""
    shop.run(stop_after=1)
    changed = shop.but(sampling={"temperature": 0.7}, fingerprint="f2")
    with pytest.raises(UserError, match=r"sampling\.temperature: unset -> 0\.7.*new_attempt"):
        changed.begin()


def test_another_input_is_refused(shop: Workshop) -> None:
    """P06."""
    shop.run(stop_after=1)
    with pytest.raises(UserError, match="input: "):
        shop.but(rows=ROWS[:-1]).begin()


def test_a_new_attempt_keeps_done_rows_and_names_both_configurations(shop: Workshop) -> None:
    """P06."""
    shop.run(stop_after=1)
    kept = part_path(shop.folder.parts, 0, 1).read_bytes()
    changed = shop.but(
        sampling={"top_p": 0.7}, fingerprint="f2", bulk={"new_attempt": True}, rows=ROWS
    )
    manifest, _ = changed.run()
    assert part_path(shop.folder.parts, 0, 1).read_bytes() == kept
    assert part_path(shop.folder.parts, 1, 2).exists()
    assert [state.fingerprints for _, state in sorted(manifest.shards.items())] == [
        ["f1"],
        ["f2"],
        ["f2"],
    ]
    assert list(manifest.configurations) == ["f1", "f2"]
    assert len(read_lines(shop.folder.output)) == 10


def test_a_new_attempt_tries_every_failed_row_again(tmp_path: Path) -> None:
    rows = [request("a"), request("b", "x" * 5000)]
    shop = Workshop(tmp_path, rows)
    shop.run()
    assert shop.begin()[2] == []
    wider = shop.but(
        engine=ScriptedEngine(context_length=9000), fingerprint="f2", bulk={"new_attempt": True}
    )
    manifest, made = wider.run()
    assert made is not None
    assert (made.num_done, made.num_failed) == (2, 0)
    assert manifest.shards[0].fingerprints == ["f1", "f2"]


def test_a_new_attempt_with_a_longer_input_keeps_the_shards_that_are_the_same(
    shop: Workshop,
) -> None:
    shop.run()
    longer = shop.but(rows=[*ROWS, request("new")], bulk={"new_attempt": True})
    assert [task.shard for task in longer.begin()[2]] == [2]
    longer.run()
    assert len(read_lines(shop.folder.output)) == 11


def test_two_drivers_on_one_folder_are_refused(shop: Workshop) -> None:
    with shop.folder.locked(), pytest.raises(UserError, match="another job is running"):
        shop.begin()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": "cake"}'])
def test_a_foreign_or_damaged_manifest_is_refused_in_one_line(
    shop: Workshop, content: bytes
) -> None:
    shop.run(stop_after=1)
    shop.folder.manifest.write_bytes(content)
    with pytest.raises(UserError, match=r"manifest\.json can't be used") as caught:
        shop.begin()
    assert "\n" not in str(caught.value)


def test_a_manifest_of_another_version_is_refused(shop: Workshop) -> None:
    shop.run(stop_after=1)
    value = json.loads(shop.folder.manifest.read_text())
    shop.folder.manifest.write_text(json.dumps(value | {"version": 99}))
    with pytest.raises(UserError, match="version is 99"):
        shop.begin()


def test_the_manifest_is_replaced_whole(shop: Workshop) -> None:
    shop.run(stop_after=1)
    before = os.stat(shop.folder.manifest).st_ino  # noqa: PTH116
    shop.run()
    assert shop.folder.manifest.stat().st_ino != before
    assert not shop.folder.manifest.with_name("manifest.json.tmp").exists()
