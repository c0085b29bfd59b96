"""The command line of a job: words in, exit status out.

0 done; 1 a fault; 2 something the user can mend; 130 Ctrl-C; 143 SIGTERM. One line on stderr says
what went wrong; `--traceback` shows the rest.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Generic, NoReturn, TypeVar

from outrider.config.interruption import Terminated, interruption_in
from outrider.core import Fault, UserError

T = TypeVar("T")

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
AGAIN = "run again with --traceback to see where"


@dataclass(frozen=True)
class Job(Generic[T]):
    """One command: the root of its settings, its file in `conf/`, what it says of itself."""

    name: str
    settings: type[T]
    description: str
    run: Callable[[T, Sequence[str]], int] = field(repr=False)  # (settings, words) -> exit status


def main(job: Job[T], words: Sequence[str] | None = None) -> int:
    """Run `job` as the command line says and return the exit status."""
    words = sys.argv[1:] if words is None else list(words)
    wants_traceback = "--traceback" in words
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(job, words)
    except BaseException as error:  # noqa: BLE001  the edge: one line instead of a traceback
        status, said = _ending(interruption_in(error))
        if wants_traceback:
            traceback.print_exception(error)
    sys.stderr.write(f"outrider: {' '.join(said.split())}\n")
    return status


def _ending(error: BaseException) -> tuple[int, str]:
    """The exit status that `error` deserves, and what is said. Raises what is not ours to end."""
    match error:
        case UserError() | Fault():
            return error.exit_status, str(error)
        case KeyboardInterrupt():
            return INTERRUPTED, "interrupted"
        case Terminated():
            return Terminated.exit_status, "terminated"
        case Exception():
            return Fault.exit_status, f"{type(error).__name__}: {error}; {AGAIN}"
    raise error


def _run(job: Job[T], words: Sequence[str]) -> int:
    flags = _flags(words)
    from outrider.config.load import load  # after the flags: Hydra costs a third of a second

    if flags.help:
        from outrider.config.manual import manual

        sys.stdout.write(manual(job.settings, job.name, job.description, flags.config_dir))
        return 0
    settings = load(job.settings, job.name, flags.words, flags.config_dir)
    if flags.cfg:
        sys.stdout.write(_yaml(settings))
        return 0
    return job.run(settings, flags.words)


def _flags(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--cfg", action="store_true")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("--config-dir", type=Path, default=None)
    return parser.parse_intermixed_args(words)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")


def _yaml(settings: object) -> str:
    import yaml

    from outrider.config.typed import plain

    return yaml.safe_dump(plain(settings), sort_keys=False, allow_unicode=True)


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM unwinds as Ctrl-C does, so that `finally` blocks run; 143 is the exit status."""
    raise SystemExit(TERMINATED)
