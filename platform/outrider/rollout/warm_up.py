"""A candidate answers a few prompts of its own before it meets traffic: what is made lazily is
made then, and one that can't answer at all never meets any.
"""

from __future__ import annotations

from outrider.core import Fault, UserError
from outrider.rollout.ports import Service

PROMPTS = ("Say hello.", "Count from one to ten.", "Name three colours, one a line.")
NUM_TOKENS = 16
MAX_TRIES = 30  # looks at which one was not answered


class WarmUp:
    """What a controller remembers of it; begun anew by the next one."""

    def __init__(self) -> None:
        self._num_failed = 0
        self.failure = ""  # why the candidate is given up; empty: it is not

    def answers(self, service: Service, release: str) -> bool:
        """Whether it answered all of them now. Gives it up after MAX_TRIES."""
        try:
            for prompt in PROMPTS:
                service.ask(release, _body(prompt))
        except (Fault, UserError) as error:
            self._num_failed += 1
            if self._num_failed >= MAX_TRIES:
                self.failure = f"it does not answer its own prompts: {error}"
            return False
        return True


def _body(prompt: str) -> dict[str, object]:
    messages = [{"role": "user", "content": prompt}]
    return {"messages": messages, "temperature": 0, "max_tokens": NUM_TOKENS}
