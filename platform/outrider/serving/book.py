"""What ended while a candidate is tried: a ring of lines, read by whoever judges."""

from __future__ import annotations

import secrets
from collections import deque
from itertools import islice

from outrider.serving.http_errors import FIRST_SERVER_STATUS
from outrider.serving.leaving import LEFT
from outrider.serving.request_entry import RequestEntry
from outrider.serving.sample import Comparison, Cursor, Reading, Sample
from outrider.serving.split import Arm

MOST_LINES = 20_000  # a candidate's figures of hours; older ones are overwritten
MOST_READ = 1000  # at once: the gateway answers users meanwhile
FIRST_ERROR_STATUS = 400

Line = Sample | Comparison


class Book:
    """Lines of one epoch. It is open while there is a candidate."""

    def __init__(self, most_lines: int = MOST_LINES) -> None:
        self._lines: deque[Line] = deque(maxlen=most_lines)
        self.begin()
        self.close()

    def begin(self) -> None:
        """Of another candidate: what was written of the last one is gone."""
        self._lines.clear()
        self._epoch = secrets.token_hex(8)
        self._number = 0  # of the last line
        self.num_shadows_dropped = 0
        self.num_over_limit = 0
        self._is_open = True

    def close(self) -> None:
        """No request that begins from now on is written down."""
        self._is_open = False

    @property
    def epoch(self) -> str:
        """What a request that begins now belongs to; empty where nobody is tried."""
        return self._epoch if self._is_open else ""

    def add(self, line: Line, epoch: str) -> None:
        """Nothing where it began in another epoch: its arm was another's."""
        if epoch == self._epoch:
            self._lines.append(line)
            self._number += 1

    def read(self, cursor: Cursor, most: int = MOST_READ) -> Reading:
        """What came behind the cursor, at most so many lines; all of the epoch for another's."""
        first = self._number - len(self._lines) + 1
        begin = cursor.number + 1 if cursor.epoch == self._epoch else 1
        skipped = max(begin - first, 0)
        lines = list(islice(self._lines, skipped, skipped + most))
        last = max(begin, first) + len(lines) - 1
        return Reading(
            cursor=Cursor(epoch=self._epoch, number=last),
            samples=tuple(line for line in lines if isinstance(line, Sample)),
            comparisons=tuple(line for line in lines if isinstance(line, Comparison)),
            num_lost=max(first - begin, 0),
            num_shadows_dropped=self.num_shadows_dropped,
            num_over_limit=self.num_over_limit,
        )


def sample_of(entry: RequestEntry, *, is_shadow: bool = False) -> Sample | None:
    """None where the client left, asked wrongly or found every place taken: no release's fault."""
    if entry.status == LEFT or FIRST_ERROR_STATUS <= entry.status < FIRST_SERVER_STATUS:
        return None
    is_error = entry.status >= FIRST_SERVER_STATUS
    return Sample(
        arm=Arm(entry.arm),
        kind=entry.kind,
        is_shadow=is_shadow,
        error=(entry.error or "server_error") if is_error else "",
        finish_reason=entry.finish_reasons.partition(",")[0],
        mode=entry.mode,
        num_prompt_tokens=entry.num_prompt_tokens,
        num_tokens=entry.num_completion_tokens,
        num_rounds=entry.num_rounds,
        drafted=entry.drafted,
        accepted=entry.accepted,
        queue_s=entry.queue_s,
        first_token_s=entry.first_token_s if entry.stream else None,
        total_s=entry.total_s,
    )
