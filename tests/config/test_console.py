"""The command line as a user meets it: exit status, one line, before anything heavy is imported."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from outrider.config.console import Job, main
from outrider.config.interruption import Terminated
from outrider.config.schema import BulkJob
from outrider.core import Fault, UserError

REPOSITORY = Path(__file__).resolve().parents[2]
GIVEN = ("input=a.jsonl", "job_dir=out")
PROBE = """
import runpy, sys
job, *sys.argv[1:] = sys.argv[1:]
try:
    runpy.run_path(job, run_name="__main__")
except SystemExit as ended:
    heavy = [name for name in ("ray", "torch", "mlflow", "transformers") if name in sys.modules]
    print("STATUS", ended.code, *heavy)
"""


def command(*words: str, job: str = "bulk", cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(REPOSITORY / "jobs" / f"{job}.py"), *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*GIVEN, "draft.length.max=abc"), "draft.length.max: expected a whole number, got 'abc'"),
        ((*GIVEN, "draft.lenght.max=3"), "draft.lenght.max: no such key; did you mean draft.len"),
        (("job_dir=out",), "bulk.input is missing: give bulk.input=..."),
        ((*GIVEN, "draft=ngrm"), "draft=ngrm: no such choice; did you mean ngram?"),
        ((*GIVEN, "draft.length.max=-1"), "draft.length.max: must be at least 0, got -1"),
        (("--helpp",), "unrecognized arguments: --helpp (see --help)"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_status_2(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """P19."""
    ended = command(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"outrider: {said}")
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--help",), ("draft.length.max=abc",), ("--cfg", *GIVEN)])
def test_nothing_heavy_is_imported_before_the_settings_are_good(words: tuple[str, ...]) -> None:
    line = [sys.executable, "-c", PROBE, str(REPOSITORY / "jobs" / "bulk.py"), *words]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.splitlines()[-1].split() in (["STATUS", "0"], ["STATUS", "2"])


def test_cfg_prints_a_configuration_that_loads_again(tmp_path: Path) -> None:
    import yaml

    from outrider.config.load import load
    from outrider.config.typed import typed

    ended = command(*GIVEN, "draft=fixed", "--cfg", "model.dtype=FLOAT32", cwd=tmp_path)
    assert ended.returncode == 0
    expected = load(BulkJob, "bulk", [*GIVEN, "draft=fixed", "model.dtype=float32"])
    assert typed(BulkJob, yaml.safe_load(ended.stdout)) == expected


@pytest.mark.parametrize(("name", "draft"), [("bulk", "ngram"), ("bench", "composite")])
def test_help_is_readable(name: str, draft: str, tmp_path: Path) -> None:
    ended = command("--help", job=name, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"python jobs/{name}.py" in ended.stdout
    assert f"draft=[{draft}]" in ended.stdout
    assert "draft.length.max=15" in ended.stdout
    assert max(len(line) for line in ended.stdout.splitlines()) <= 100


def broken_by(signal_: BaseException) -> Exception:
    """What a library raises where a signal came within one of its lines."""
    try:
        try:
            raise signal_
        finally:
            raise AttributeError("the event loop was half made")
    except AttributeError as error:
        return error


def job(run: object) -> Job[BulkJob]:
    return Job("bulk", BulkJob, "A job.", run)  # type: ignore[arg-type]


def test_the_job_gets_its_settings_and_the_words_typed() -> None:
    seen: list[tuple[str, Sequence[str]]] = []

    def run(settings: BulkJob, words: Sequence[str]) -> int:
        seen.append((settings.bulk.input, tuple(words)))
        return 0

    assert main(job(run), [*GIVEN, "--traceback", "limit=3"]) == 0
    assert seen == [("a.jsonl", (*GIVEN, "limit=3"))]


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UserError("line 3: not JSON"), 2, "outrider: line 3: not JSON\n"),
        (Fault("the disk is full"), 1, "outrider: the disk is full\n"),
        (ValueError("a\nb"), 1, "outrider: ValueError: a b; run again with --traceback to see wh"),
        (KeyboardInterrupt(), 130, "outrider: interrupted\n"),
        (Terminated(), 143, "outrider: terminated\n"),
        (broken_by(KeyboardInterrupt()), 130, "outrider: interrupted\n"),
        (broken_by(Terminated()), 143, "outrider: terminated\n"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    def run(settings: BulkJob, words: Sequence[str]) -> int:
        raise error

    assert main(job(run), GIVEN) == status
    printed = capsys.readouterr().err
    assert printed.startswith(said)
    assert printed.count("\n") == 1
    assert main(job(run), [*GIVEN, "--traceback"]) == status
    assert "Traceback" in capsys.readouterr().err


def test_sigterm_unwinds_and_ends_as_143() -> None:
    steps: list[str] = []

    def run(settings: BulkJob, words: Sequence[str]) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 5)
        finally:
            steps.append("closed")
        return 0

    with pytest.raises(SystemExit) as ended:
        main(job(run), GIVEN)
    assert ended.value.code == 143
    assert steps == ["closed"]
