"""Features computed by a pool of Ray Data's actors: a shard's number goes in, the shard is on disk.

Each actor opens the target once. Ray starts a killed one anew and repeats its shards, without
limit unless told otherwise; what is on disk by then is taken as it is. Shards are whole or not
there, so a killed driver loses no more than its actors do.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from outrider.bulk.book import polled
from outrider.bulk.durable import counted, disk_faults
from outrider.cluster.data import set_up_data
from outrider.cluster.environment import prepare_environment
from outrider.core import Fault, UserError
from outrider.distill.feature_cache import SHARD_ROWS, Compute
from outrider.distill.material import FeatureOrder

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402
import ray.data  # noqa: E402
from ray.data import ActorPoolStrategy  # noqa: E402

MAX_STARTS = 3  # of one shard: what ends its actor must not do so for ever


def fill(
    order: FeatureOrder, on_shard: Callable[[], None], *, num_workers: int, cores: int
) -> None:
    """As `Backend.fill`, by at most `num_workers` actors of as many cores."""
    with order.cache.begun():
        missing = order.cache.missing
        if not missing:
            return
        records = _records(order, missing, num_workers=min(num_workers, len(missing)), cores=cores)
        with closing(polled(records, len(missing))) as heard:
            for record in heard:
                if record is not None:
                    _check(record)
                    on_shard()


def _records(
    order: FeatureOrder, missing: Sequence[int], *, num_workers: int, cores: int
) -> Iterator[dict[str, Any]]:
    """What the actors say of each shard, in any order."""
    set_up_data()
    shards = [{"shard": number} for number in missing]
    dataset = ray.data.from_items(shards, override_num_blocks=len(shards)).map_batches(
        ShardWriter,
        fn_constructor_args=[ray.put(order), cores],
        batch_size=None,
        num_cpus=cores,
        num_gpus=1 if order.device.type == "cuda" else None,
        compute=ActorPoolStrategy(size=num_workers, max_tasks_in_flight_per_actor=2),
    )
    for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
        for record in batch["record"]:
            yield json.loads(str(record))


def _check(record: Mapping[str, Any]) -> None:
    if "user_error" in record:
        raise UserError(record["user_error"])
    if "fault" in record:
        raise Fault(record["fault"])


class ShardWriter:
    """What lives in an actor. Faults are answers, not exceptions: Ray would wrap them."""

    def __init__(self, order: ray.ObjectRef, cores: int) -> None:
        self._order: FeatureOrder = ray.get(order)
        self._cores = cores
        self._name = f".{uuid.uuid4().hex[:8]}"
        self._compute: Compute | None = None

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
        return {"record": [json.dumps(self._record(int(number))) for number in batch["shard"]]}

    def _record(self, number: int) -> dict[str, Any]:
        try:
            self._write(number)
        except UserError as error:
            return {"user_error": str(error)}
        except Fault as error:
            return {"fault": str(error)}
        except Exception as error:  # noqa: BLE001  (the driver tells it and stops)
            reason = str(error).splitlines()[0] if str(error) else ""
            return {"fault": f"a worker failed: {type(error).__name__}: {reason}"}
        return {"shard": number}

    def _write(self, number: int) -> None:
        cache = self._order.cache
        if number not in cache.missing:  # of an actor that died before it could say so
            return
        starts = cache.folder / f"shard-{number:05}.starts.tmp"
        with disk_faults(starts):
            if counted(starts) > MAX_STARTS:
                raise Fault(
                    f"rows {number * SHARD_ROWS + 1} and on of the corpus ended their worker "
                    f"{MAX_STARTS} times: give a smaller distill.feature_tokens, or more memory"
                )
        if self._compute is None:
            self._compute = self._order.opened(self._cores)
        cache.write(number, self._compute, writer=self._name)
        starts.unlink(missing_ok=True)
