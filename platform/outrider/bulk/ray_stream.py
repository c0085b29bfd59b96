"""Ray Data as the job uses it: shard tasks stream in, engine actors work, records stream out.

Facts about Ray 2.60 that this relies on: actors of a pool are restarted and their tasks repeated
without limit unless told otherwise; a read task may yield many blocks, and with a target block
size of one byte each row is a block of its own, so that every shard is a task of its own and its
record arrives as soon as it is there; backpressure bounds the blocks in flight.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from outrider.bulk.folder import Task
from outrider.bulk.placement import cpus_per_worker
from outrider.bulk.worker import ShardWorker, WorkOrder
from outrider.cluster.cores import num_cores
from outrider.cluster.data import set_up_data
from outrider.cluster.environment import prepare_environment
from outrider.cluster.session import ray_session
from outrider.config.schema import Baseline, BulkSettings

prepare_environment()  # Ray reads it when imported

import ray.data  # noqa: E402
from ray.data import ActorPoolStrategy, Datasource, ReadTask  # noqa: E402
from ray.data.block import BlockMetadata  # noqa: E402

TASKS_PER_READ = 256


def bulk_session(settings: BulkSettings, log: Path) -> AbstractContextManager[None]:
    """Ray with cores for every worker."""
    return ray_session(log, num_cpus=cpus_per_worker(settings, num_cores()) * settings.num_workers)


class TaskSource(Datasource):
    """The shards to do, as a Ray Data source that is read lazily."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    def get_name(self) -> str:
        return "Shards"

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        starts = range(0, len(self._tasks), TASKS_PER_READ)
        return [_read_task(self._tasks[start : start + TASKS_PER_READ]) for start in starts]


def _read_task(tasks: Sequence[Task]) -> ReadTask:
    lines = [json.dumps(asdict(task)) for task in tasks]
    metadata = BlockMetadata(
        num_rows=len(lines), size_bytes=None, input_files=None, exec_stats=None
    )
    blocks: Callable[[], Iterator[pa.Table]] = lambda: (  # noqa: E731  (pickled by value)
        pa.table({"task": [line]}) for line in lines
    )
    return ReadTask(blocks, metadata)


def stream_records(order: WorkOrder, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Run the tasks on the pool; yield each record as it comes, in any order."""
    settings = order.job.bulk
    set_up_data(max_block_bytes=1)
    in_flight = 1 if settings.baseline is Baseline.ALL else 2
    pool = ActorPoolStrategy(
        size=min(settings.num_workers, len(tasks)),
        max_tasks_in_flight_per_actor=2,  # the next shard waits at the worker
        max_concurrent_calls_per_actor=in_flight,  # two: the batch never drains at a shard's end
        enable_true_multi_threading=True,
    )
    reads = -(-len(tasks) // TASKS_PER_READ)
    dataset = ray.data.read_datasource(
        TaskSource(tasks), num_cpus=0, override_num_blocks=reads
    ).map_batches(
        ShardWorker,
        fn_constructor_args=[order],
        batch_size=None,
        num_cpus=cpus_per_worker(settings, num_cores()),
        compute=pool,
    )
    for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
        for record in batch["record"]:
            yield json.loads(str(record))
