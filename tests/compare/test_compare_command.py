"""jobs/compare.py over a real MLflow store, and what it says where there is nothing to show."""

import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from toy_trial import FIXED, NGRAM, record_trial

from outrider import wiring
from outrider.compare.command import Comparison
from outrider.config.load import load
from outrider.config.schema import CompareJob
from outrider.core import UserError
from outrider.testing import MemoryHistory, MemoryRegistry, MemoryTracker
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.registry import Alias
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import RunStatus

REPOSITORY = Path(__file__).parents[2]


class Memory:
    """The command over a store in memory."""

    def __init__(self) -> None:
        self.tracker = MemoryTracker()
        self.registry = MemoryRegistry()

    def say(self, *words: str) -> str:
        screen = Console(file=StringIO(), width=100)
        Comparison(
            settings=load(CompareJob, "compare", words).compare,
            history=MemoryHistory(self.tracker),
            registry=self.registry,
            screen=screen,
        ).run()
        return screen.file.getvalue()


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    record_trial(memory.tracker, memory.registry)
    return memory


def test_the_board_fits_100_columns(memory: Memory) -> None:
    memory.registry.give(Alias.CHALLENGER, 2)
    said = memory.say()
    assert max(len(line) for line in said.splitlines()) <= 100
    assert "1.40 1.32-1.48" in said
    assert "challenger" in said


def test_a_new_champion_hands_its_old_name_on(memory: Memory) -> None:
    assert memory.say("champion=2") == "models:/outrider/2: no alias -> champion\n"
    said = memory.say(f"champion='{FIXED.name}'", "challenger=models:/outrider/2")
    assert "models:/outrider/2: champion -> previous" in said
    assert "models:/outrider/3: no alias -> champion" in said
    assert "models:/outrider/2: previous -> challenger, previous" in said
    assert "already" in memory.say("champion=3")


def test_a_diff_fits_100_columns_and_says_what_it_did(memory: Memory) -> None:
    said = memory.say("action=diff", "releases=[models:/outrider/2,models:/outrider/3]")
    assert max(len(line) for line in said.splitlines()) <= 100
    assert "draft.length.max" in said
    assert "-42.9%" in said
    assert "apart" in said


def test_the_report_is_of_the_newest_trial_that_meets_what_was_asked(
    memory: Memory, tmp_path: Path
) -> None:
    record_trial(memory.tracker, memory.registry, [NGRAM], name="second", part="confirmation")
    out = tmp_path / "new" / "report.html"
    assert "second" in memory.say("action=report", f"out={out}")
    assert "toy trial" in memory.say("action=report", f"out={out}", 'where=["part=tuning"]')
    assert "toy trial" in memory.say("action=report", f"out={out}", "releases=[models:/outrider/3]")
    assert "toy trial" in memory.say("action=report", f"out={out}", 'where=["trial=run-0"]')
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_search_does_not_stand_among_trials(memory: Memory, tmp_path: Path) -> None:
    search = memory.tracker.start_run("search", "sweep", {})
    tags = {"release.fingerprint": NGRAM.fingerprint, "part": "tuning", "rung": "1"}
    rung = memory.tracker.start_run("in a rung", "contender", {"in_flight": 1}, tags, search)
    rung.log_final({"speedup_ratio": 9.0})
    rung.close(RunStatus.FINISHED)
    assert "in a rung" not in memory.say()
    assert "1.40 1.32-1.48" in memory.say()
    assert "in a rung" in memory.say("kinds=[sweep]")
    assert "toy trial" in memory.say("action=report", f"out={tmp_path / 'report.html'}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("champion=9",), "no release has that number; there are 1, 2, 3"),
        (("champion=nobody",), "compare.champion: no release, run or contender is called"),
        (("action=report", 'where=["part=confirmation"]'), "no finished trial meets it"),
        (("action=report", "releases=[nobody]"), "compare.releases: no release"),
        (("kinds=[sweep]",), "no run of kind sweep is recorded yet: python jobs/bench.py"),
    ],
)
def test_what_is_not_there_is_one_line(memory: Memory, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError) as caught:
        memory.say(*words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("action=diff",), "compare.releases: action=diff compares two, got 0"),
        (("kinds=[trial]",), "compare.kinds: expected some of contender, bulk, serve, sweep"),
        (("out=' '",), "compare.out: must not be empty"),
        (("top=0",), "compare.top: must be at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_key(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError) as caught:
        load(CompareJob, "compare", words)
    assert str(caught.value).startswith(said)


def test_the_command_over_a_real_store(
    tmp_path: Path, fresh_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(fresh_store, tmp_path / "outrider.db")
    uri = sqlite_uri(tmp_path / "outrider.db")
    connection = MlflowConnection(uri=uri, experiment="outrider", spool_dir=tmp_path / "spool")
    tracker = MlflowTracker(uri=uri, experiment="outrider", spool_dir=tmp_path / "spool")
    record_trial(tracker, MlflowRegistry(connection))
    tracker.close()
    given = (f"tracking.uri={uri}", "champion=models:/outrider/2")
    assert "models:/outrider/2: no alias -> champion" in run(tmp_path, *given).stdout
    board(f"tracking.uri={uri}", 'where=["in_flight=8"]')
    shown = capsys.readouterr().out
    assert "2 champion" in shown
    assert "0.90 0.85-0.95" in shown
    out = tmp_path / "report.html"
    board(f"tracking.uri={uri}", "action=report", f"out={out}")
    assert "Draft length over time" in out.read_text(encoding="utf-8")


def board(*words: str) -> None:
    """The command in this process."""
    assert wiring.compare(load(CompareJob, "compare", words)) == 0


def test_a_store_that_is_not_there_is_one_line_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "absent.db"
    ended = run(tmp_path, f"tracking.uri={sqlite_uri(path)}", "champion=3")
    assert ended.returncode == 2
    assert ended.stderr.startswith("outrider: no runs yet")
    assert ended.stderr.count("\n") == 1
    assert not path.exists()
    with pytest.raises(UserError, match=r"^tracking\.enabled=false"):
        board("tracking=off")


def test_looking_at_figures_loads_no_engine() -> None:
    code = "import sys; from outrider.wiring import compare; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    ).stdout.split()
    assert not {"torch", "ray", "openvino", "transformers", "matplotlib"} & set(loaded)


def run(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "jobs" / "compare.py"), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
