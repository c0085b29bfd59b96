"""A search out of its settings: candidates, each against plain decoding, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from outrider.cluster.cores import num_cores
from outrider.cluster.environment import prepare_environment
from outrider.config.folders import Folders
from outrider.config.load import load
from outrider.config.overridden import overridden
from outrider.config.schema import Part, SweepJob
from outrider.core import SystemClock, UserError
from outrider.tracking.provenance import collect
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.evaluation import Evaluation, read_evaluation
from outrider.trial.halving import Halving
from outrider.trial.split import cases_of
from outrider.trial.sums import Terms
from outrider.trial.sweep import Sweep
from outrider.trial.sweep_axes import PLAIN, check_heard, combinations, plain_of
from outrider.trial.sweep_book import SweepBook
from outrider.trial.sweep_confirm import confirm_command
from outrider.trial.sweep_end import SweepEnd
from outrider.trial.sweep_folder import SweepFolder
from outrider.trial.sweep_gauge import Gauge
from outrider.trial.sweep_identity import heading_of, identity_of
from outrider.trial.sweep_plan import distinct, in_order
from outrider.trial.sweep_record import RungRecord
from outrider.trial.sweep_screen import WIDTH, SweepScreen
from outrider.trial.sweep_seats import SweepSeats
from outrider.wiring.contenders import ContenderMaker
from outrider.wiring.parts import with_pinned_sources
from outrider.wiring.stores import REPOSITORY, models_uri, registry, tracker

NAME = "sweep"  # of the command, as of its file in `conf/`


def sweep(settings: SweepJob, words: Sequence[str]) -> int:
    """Search, and show what is recommended."""
    notices = Console(stderr=True)

    def tell(line: str) -> None:
        notices.print(line, highlight=False, markup=False, style="dim", soft_wrap=True)

    given = overridden(SweepJob, Folders().groups(NAME), words)
    console = Console()
    if not console.is_terminal:  # a file or a pipe takes lines of any length
        console.width = max(WIDTH, console.width)
    screen = SweepScreen(
        console, settings.sweep.in_flight, lambda outcome: confirm_command(outcome, given)
    )
    made = make_sweep(settings, words, given, screen.rung, tell)
    progress = made.run().progress
    made.book.tracker.close()
    if progress.outcome is not None:
        screen.outcome(progress.outcome, progress.rungs[-1].num_prompts)
    return 0


def make_sweep(
    settings: SweepJob,
    words: Sequence[str],
    given: Mapping[str, str],
    show: Callable[[RungRecord], None],
    tell: Callable[[str], None],
) -> Sweep:
    """Everything that can be refused is refused here, before a model is loaded.

    `given`: full key -> the word that set it.
    """
    prepare_environment()  # Ray reads it when imported
    from outrider.cluster.session import ray_session

    check_heard(given)
    settings = with_pinned_sources(settings)
    chosen, folder = settings.trial, SweepFolder(Path(settings.sweep.folder))
    evaluation = read_evaluation(Path(chosen.evaluation), answer_tokens=chosen.answer_tokens)
    warmup = read_evaluation(Path(chosen.warmup), answer_tokens=chosen.answer_tokens)
    cases, cores = tuning_cases(settings, evaluation), chosen.cores or num_cores()
    plain, candidates = lineup(settings, words, given, evaluation, cores, tell)
    gauge = gauge_of(settings, plain, candidates, cases, warmup.cases, folder, cores, tell)
    store, records = tracker(settings.tracking), registry(settings.tracking)
    return Sweep(
        identity=identity_of(settings, evaluation, warmup, [plain, *candidates], cores),
        plain=plain,
        candidates=candidates,
        halving=halving_of(settings, len(cases)),
        criteria=settings.criteria,
        gauge=gauge,
        folder=folder,
        session=lambda: ray_session(folder.ray_log, num_cpus=1),
        book=SweepBook(
            tracker=store,
            heading=heading_of(settings, evaluation, plain, len(cases), cores),
            in_flight=settings.sweep.in_flight,
        ),
        end=SweepEnd(
            registry=records if settings.tracking.enabled else None,
            criteria=settings.criteria,
            folder=folder,
            in_flight=settings.sweep.in_flight,
            tell=tell,
        ),
        show=show,
        tell=tell,
    )


def gauge_of(
    settings: SweepJob,
    plain: Contender,
    candidates: Sequence[Contender],
    cases: Sequence[Case],
    warmup: Sequence[Case],
    folder: SweepFolder,
    cores: int,
    tell: Callable[[str], None],
) -> Gauge:
    """What decodes and measures, each contender in an actor of its own."""
    from outrider.trial.arena import ActorSide  # Ray: after `prepare_environment`

    chosen, clock = settings.trial, SystemClock()
    return Gauge(
        plain=plain,
        candidates=candidates,
        cases=cases,
        warmup=warmup,
        in_flight=settings.sweep.in_flight,
        num_passes=chosen.num_passes,
        near_tie=chosen.near_tie,
        terms=terms_of(settings, cores),
        folder=folder,
        seats=SweepSeats(
            open_side=lambda contender: ActorSide(contender, chosen.timeout_s),
            clock=clock,
            tell=tell,
        ),
        clock=clock,
        tell=tell,
    )


def halving_of(settings: SweepJob, num_cases: int) -> Halving:
    return Halving(
        keep_ratio=settings.sweep.keep_ratio,
        first_prompts=settings.sweep.first_prompts,
        all_prompts=num_cases,
        max_failure_ratio=settings.criteria.max_failure_ratio,
        max_mismatches=settings.criteria.max_mismatches,
    )


def terms_of(settings: SweepJob, cores: int) -> Terms:
    return Terms(
        confidence=settings.criteria.confidence,
        price_per_hour=settings.trial.price_per_hour,
        cores=cores,
    )


def tuning_cases(settings: SweepJob, evaluation: Evaluation) -> list[Case]:
    share = settings.trial.confirmation_share
    cases = in_order(cases_of(Part.TUNING, evaluation.cases, share))
    if not cases:
        raise UserError(f"trial.confirmation_share={share:g} leaves no prompts for tuning")
    return cases


def lineup(
    settings: SweepJob,
    words: Sequence[str],
    given: Mapping[str, str],
    evaluation: Evaluation,
    cores: int,
    tell: Callable[[str], None],
) -> tuple[Contender, list[Contender]]:
    """Plain decoding, and who is measured against it."""
    groups = Folders().groups(NAME)

    def compose(own: Sequence[str]) -> SweepJob:
        return with_pinned_sources(load(SweepJob, NAME, [*words, *own]))

    found = combinations(settings.sweep.axes, groups, settings, compose)
    maker = ContenderMaker(
        cores=cores,
        evaluation_sha256=evaluation.sha256,
        provenance=collect(REPOSITORY),
        store=models_uri(settings.tracking),
    )
    shared = [word for key, word in given.items() if not key.startswith(f"{NAME}.")]
    made = [
        maker.contender(one.name, one.job, [*shared, *one.words], baseline=PLAIN) for one in found
    ]
    plain = maker.contender(PLAIN, plain_of(settings), [*shared, "draft=none"], baseline="")
    return plain, distinct(made, tell)
