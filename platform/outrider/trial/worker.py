"""One contender's engine in this process: a batch comes in, what was seen of it goes out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outrider.bulk.ports import ChatTokenizer
from outrider.core import Clock, Fault, Request, SystemClock, UserError
from outrider.engine.margin import rivals_margin, top2_margin
from outrider.trial.case import Case
from outrider.trial.closed_loop import ClosedLoop, Seen
from outrider.trial.contender import Contender
from outrider.trial.failure import Failure
from outrider.trial.observation import Measured, Observation
from outrider.trial.plan import Batch
from outrider.trial.side import Lost, Rivals
from outrider.trial.tally import Labels, answered, labels, turn_of, unanswered
from outrider.trial.usage import UsageMeter

if TYPE_CHECKING:  # torch: not for the driver, whose actors hold workers
    from outrider.engine.runner import Runner


@dataclass(kw_only=True)
class Worker:
    """A `Side` in this process. Every turn begins with an empty prefix cache, as the first did."""

    name: str
    runner: Runner
    tokenizer: ChatTokenizer
    timeout_s: float
    clock: Clock = field(default_factory=SystemClock)
    usage: UsageMeter = field(default_factory=UsageMeter)
    _asked: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def open(cls, contender: Contender, *, timeout_s: float) -> Worker:
        """Loads the models; UserError or Fault where they can't be."""
        runner, tokenizer = contender.open_engine()
        return cls(name=contender.name, runner=runner, tokenizer=tokenizer, timeout_s=timeout_s)

    def decode(self, batch: Batch) -> Measured:
        asked = [self._request(case) for case in batch.cases]  # before anything is timed
        try:
            self.runner.reset_prefix_cache()
            return self._timed(batch, asked)
        except Fault as fault:
            raise Lost(str(fault)) from fault

    def margin(self, case: Case, prefix: tuple[int, ...], rivals: Rivals) -> float:
        request = self._request(case)
        if request is None:
            return float("inf")
        submit = self.runner.submit
        try:
            if request.params.is_greedy:
                return top2_margin(submit, request, prefix)
            return rivals_margin(submit, request, prefix, rivals)
        except Fault as fault:
            raise Lost(str(fault)) from fault

    def close(self) -> None:
        self.runner.close()

    def _request(self, case: Case) -> Request | None:
        """None where the template refuses the conversation."""
        try:
            ids = tuple(self.tokenizer.encode_chat(case.messages))
        except (UserError, UnicodeError, TypeError):
            return None
        return case.request(ids, f"{case.name}.{next(self._asked)}")

    def _timed(self, batch: Batch, asked: Sequence[Request | None]) -> Measured:
        loop = ClosedLoop(
            runner=self.runner,
            clock=self.clock,
            in_flight=batch.in_flight,
            timeout_s=self.timeout_s,
        )
        requests = [request for request in asked if request is not None]
        mark, began_s = self.usage.begin(), self.clock.monotonic()
        ended = loop.run(requests)
        seconds, used = self.clock.monotonic() - began_s, self.usage.since(mark)
        seen = {r.request_id: one for r, one in zip(requests, ended, strict=True)}
        observations = tuple(
            self._observation(labels(self.name, batch, case), request, seen, began_s)
            for case, request in zip(batch.cases, asked, strict=True)
        )
        turn = turn_of(self.name, batch, observations, seconds, used)
        return Measured(observations=observations, turns=(turn,))

    def _observation(
        self, told_by: Labels, request: Request | None, seen: Mapping[str, Seen], began_s: float
    ) -> Observation:
        if request is None:
            return unanswered(told_by, Failure.REFUSED)
        num_prompt_tokens = len(request.prompt_ids)
        one = seen[request.request_id]
        return answered(told_by, one, num_prompt_tokens=num_prompt_tokens, began_s=began_s)
