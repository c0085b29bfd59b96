"""Prefix affinity as a Ray Serve request router: the pure choice is in `affinity`."""

from __future__ import annotations

import random

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from outrider.openai.call import Call
from outrider.serving.affinity import favourite, prefix_key

NUM_OTHERS = 2  # of two at random the less loaded one: near the best, for two probes


class PrefixRouter(RequestRouter):
    """The prompt's favourite first, then the less loaded of two at random.

    Not first in, first out: Serve would hand the replica chosen for one prompt to another one.
    """

    def initialize_state(self, num_tokens: int, slack: int) -> None:
        """Called by Serve with `request_router_kwargs`."""
        self._num_tokens = num_tokens
        self._slack = slack

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Ranks, best first; Serve takes the least loaded of the first that has room."""
        if pending_request is not None:  # where all are full: wait before the next try
            pending_request.routing_context.should_backoff = True
        replicas = list(candidate_replicas)
        others = random.sample(replicas, min(NUM_OTHERS, len(replicas)))
        chosen = self._favourite(replicas, pending_request)
        return [others] if chosen is None else [[chosen], others]

    def _favourite(
        self, replicas: list[RunningReplica], pending: PendingRequest | None
    ) -> RunningReplica | None:
        call = pending.args[0] if pending is not None and pending.args else None
        if not isinstance(call, Call) or not self._num_tokens:
            return None
        cache = self.replica_queue_len_cache
        by_name = {replica.replica_id.unique_id: replica for replica in replicas}
        loads = {name: cache.get(each.replica_id) or 0 for name, each in by_name.items()}
        name = favourite(prefix_key(call, self._num_tokens), loads, self._slack)
        return None if name is None else by_name[name]
