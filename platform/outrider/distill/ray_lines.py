"""Lines of a file, read by Ray Data in ranges of bytes, in their order.

`ray.data.read_text` is not used: it ends a line at each of the characters that `str.splitlines`
knows (U+2028 inside of an answer is one), and its rows have no numbers. Nor is `read_json`: it has
one set of columns for all rows, and names no line that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from outrider.cluster.data import set_up_data
from outrider.cluster.environment import prepare_environment
from outrider.core import UserError

prepare_environment()  # Ray reads it when imported

import ray.data  # noqa: E402
from ray.data import Datasource, ReadTask  # noqa: E402
from ray.data.block import BlockMetadata  # noqa: E402
from ray.exceptions import RayError  # noqa: E402

RANGE_BYTES = 8 * 2**20
SCHEMA = pa.schema([("line", pa.large_binary())])


def ray_lines(path: Path, *, range_bytes: int = RANGE_BYTES) -> Generator[bytes, None, None]:
    """Each line as `open(path, "rb")` gives it.

    Raises OSError where the driver can't read the file, UserError where a worker can't.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
    if not size:
        return
    set_up_data(preserve_order=True)
    source = FileRanges(path.absolute(), size, range_bytes)
    dataset = ray.data.read_datasource(source, num_cpus=0, override_num_blocks=source.num_ranges)
    try:
        batches = dataset.iter_batches(batch_size=None, batch_format="pyarrow")
        for batch in batches:
            yield from batch["line"].to_pylist()
    except RayError as error:
        raise UserError(
            f"distill.input: a machine of the cluster can't read {path}: put it where all of "
            "them see it"
        ) from error


class FileRanges(Datasource):
    """A file as a Ray Data source; a line is of the range that it begins in."""

    def __init__(self, path: Path, size: int, range_bytes: int) -> None:
        super().__init__()
        self._path = path
        self._begins = range(0, size, range_bytes)
        self._size = size

    @property
    def num_ranges(self) -> int:
        return len(self._begins)

    def get_name(self) -> str:
        return "Lines"

    def estimate_inmemory_data_size(self) -> int | None:
        return self._size

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        step = self._begins.step
        return [_read_task(self._path, begin, begin + step) for begin in self._begins]


def _read_task(path: Path, begin: int, end: int) -> ReadTask:
    metadata = BlockMetadata(
        num_rows=None, size_bytes=end - begin, input_files=[str(path)], exec_stats=None
    )
    blocks: Callable[[], list[pa.Table]] = lambda: [  # noqa: E731  (pickled by value)
        pa.table({"line": list(_lines_of(path, begin, end))}, schema=SCHEMA)
    ]
    return ReadTask(blocks, metadata)


def _lines_of(path: Path, begin: int, end: int) -> Iterator[bytes]:
    """Those that begin at `begin` or behind, and before `end`."""
    with path.open("rb") as file:
        if begin:
            file.seek(begin - 1)
            file.readline()  # what began before
        while file.tell() < end and (line := file.readline()):
            yield line
