"""From a request to a row: what is refused, and what a row begins with."""

from __future__ import annotations

from outrider.config.schema import EngineSettings
from outrider.core import Request, Tokenizer
from outrider.engine.admission import check_request, most_tokens
from outrider.engine.constraint import ConstraintCompiler
from outrider.engine.language_model import ModelShape
from outrider.engine.row import Row
from outrider.engine.sampling import TokenChooser
from outrider.engine.speculation import SpeculationPolicy


class Intake:
    """Opens rows for one model, its tokenizer and its constraints."""

    def __init__(
        self,
        shape: ModelShape,
        tokenizer: Tokenizer,
        policy: SpeculationPolicy,
        settings: EngineSettings,
        constraints: ConstraintCompiler,
    ) -> None:
        self._shape = shape
        self._tokenizer = tokenizer
        self._policy = policy
        self._settings = settings
        self._constraints = constraints
        # Logits may be padded beyond the tokenizer: a padded id must never be emitted.
        self.vocab_size = min(shape.vocab_size, max(tokenizer.vocabulary.values()) + 1)
        self._next_row_id = 0

    def check(self, request: Request) -> None:
        """Raise UserError where the request can never be served."""
        check_request(request, self._shape, self.vocab_size, self._tokenizer.eos_ids)
        if request.constraint is not None:
            self._constraints.check(request.constraint)

    def most_tokens(self, request: Request) -> int:
        """Prompt and longest possible output, in tokens."""
        return most_tokens(request, self._shape)

    def open(self, request: Request, now: float) -> Row:
        """A new row of a request that was checked; `now` in seconds."""
        self._next_row_id += 1
        return Row.open(
            self._next_row_id,
            request,
            self._chooser(request),
            eos_ids=self._tokenizer.eos_ids,
            context_length=self._shape.context_length,
            decode=self._tokenizer.decode,
            speculation=self._policy.row(self._next_row_id),
            now=now,
            matcher=None
            if request.constraint is None
            else self._constraints.open(request.constraint),
        )

    def _chooser(self, request: Request) -> TokenChooser:
        stop_ids = set(request.params.stop_token_ids)
        if not request.params.ignore_eos:
            stop_ids |= self._tokenizer.eos_ids
        # A tokenizer may know an EOS that the model cannot say.
        can_say = tuple(sorted(token for token in stop_ids if token < self.vocab_size))
        return TokenChooser(request.params, self._settings.rule.rule, can_say)
