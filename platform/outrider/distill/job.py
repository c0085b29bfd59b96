"""One distillation: texts -> features -> training -> head -> record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from outrider.bulk.durable import disk_faults, only_one
from outrider.config.schema import DistillJob, DistillSettings
from outrider.core import Clock, Fault
from outrider.distill.backend import Backend, OneProcess
from outrider.distill.begun import Begun
from outrider.distill.card import CARD, write_card
from outrider.distill.checkpoint import Progress
from outrider.distill.course import course_of
from outrider.distill.material import Material, Target, gathered
from outrider.distill.moment import Moment
from outrider.distill.report import DistillReport
from outrider.distill.ticker import Ticker
from outrider.engine.head import DraftHead, load_head, save_head
from outrider.models.digest import weights_digest
from outrider.tracking.fingerprint import plain
from outrider.tracking.heads import FILES, HeadRegistry
from outrider.tracking.lifecycle import closing, status_of, terminate_as_exception
from outrider.tracking.provenance import Provenance
from outrider.tracking.tracker import Run, RunStatus, Tracker

# What does not change what is learnt (num_workers: but for rounding).
INCIDENTAL = frozenset(
    {"action", "out", "num_prompts", "input", "head_dir", "limit", "features_dir", "license"}
    | {"feature_tokens", "num_workers", "register"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """Goes on where it stopped: with the features, then with the training.

    `run` raises UserError and Fault with one line, KeyboardInterrupt and `Terminated` after the
    tracked run was closed as KILLED; what was done is kept in every case.
    """

    job: DistillJob
    target: Target
    tracker: Tracker
    registry: HeadRegistry | None
    provenance: Provenance
    words: Sequence[str]
    cache_dir: Path
    clock: Clock
    console: Console
    backend: Backend = field(default_factory=OneProcess)

    @property
    def settings(self) -> DistillSettings:
        return self.job.distill

    @property
    def head_dir(self) -> Path:
        return Path(self.settings.head_dir).absolute()

    @property
    def checkpoint(self) -> Path:
        return self.head_dir / "training" / "checkpoint.safetensors"

    def run(self) -> tuple[DistillReport, str]:
        """The report, and what `draft.head.source` takes."""
        log = self.checkpoint.with_name("ray.log")
        with terminate_as_exception(), self._locked(), self.backend.session(log):
            material = gathered(self.job, self.target, self.cache_dir, self.backend.lines)
            self._say(str(material))
            with closing(self._start_run(material)) as run, self._told():
                return self._learn(material, run)

    def _learn(self, material: Material, run: Run) -> tuple[DistillReport, str]:
        done = self.head_dir / "report.json"
        if done.exists():
            self._say(f"nothing to learn: {self.head_dir} is done; remove it to begin anew")
            load_head(self.head_dir, self.target.files)  # it is what it was
            report = DistillReport.load(done)
        else:
            report = self._trained(material, run)
            config = load_head(self.head_dir, self.target.files).config
            told = {"target": self.job.model.source, "license": self.settings.license}
            write_card(self.head_dir, report, config, **told)
            report.save(done)
            run.log_final(report.figures())
            for name in (*FILES, CARD, done.name):
                run.log_artifact(self.head_dir / name, "head")
        return report, self._registered(report, run)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.checkpoint.parent
        with disk_faults(folder):
            folder.mkdir(parents=True, exist_ok=True)
        taken = f"another job learns in {self.head_dir}: wait for it, or name another head_dir"
        with only_one(folder, taken):
            yield

    def _identity(self, material: Material) -> str:
        told: Any = plain(self.settings)
        lasting = {name: value for name, value in told.items() if name not in INCIDENTAL}
        what = {**lasting, "features": material.features.folder.name}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def _start_run(self, material: Material) -> Run:
        """A new one, or the folder's. UserError where the folder is another's."""
        identity, path = self._identity(material), self.checkpoint.with_name("begun.json")
        begun = Begun.read(path, identity)
        run = self._tracked(begun.run_id, material)
        replace(begun, run_id=run.run_id).save(path)
        return run

    def _tracked(self, run_id: str, material: Material) -> Run:
        name = f"distill {self.head_dir.name}"
        params: dict[str, object] = {
            "distill": plain(self.settings),
            "model": plain(self.job.model),
            "overrides": " ".join(self.words),
        }
        tags = {**self.provenance.to_tags(), **material.parents(self.provenance)}
        if run_id:
            return self.tracker.resume_run(run_id, name, "distill", params, tags)
        return self.tracker.start_run(name, "distill", params, tags)

    def _trained(self, material: Material, run: Run) -> DistillReport:
        self._compute_features(material)
        course = course_of(self.settings, material)
        trainer = course.trainer(self.clock)
        trainer.resume(self.checkpoint)
        updates = trainer.num_updates, trainer.progress.update
        ticker = self._ticker("training", "updates", *updates)

        def tell(moment: Moment) -> None:
            run.log_window(moment.metrics(), step=moment.update, at_s=self.clock.time())
            ticker.say(str(moment))

        head = self.backend.learn(course, trainer, self.checkpoint, tell, ticker.reach)
        return self._saved(head, trainer.progress, material, run)

    def _compute_features(self, material: Material) -> None:
        cache, total = material.features, material.num_tokens
        if not cache.missing:
            return
        done = total - cache.num_missing_tokens
        ticker = self._ticker("the target's features", "tokens", total, done)
        ticker.say(f"computing features of {len(cache.examples)} rows into {cache.folder}")
        order = material.order(self.settings.feature_tokens)
        self.backend.fill(order, lambda: ticker.reach(total - cache.num_missing_tokens))

    def _ticker(self, what: str, unit: str, total: int, done: int) -> Ticker:
        return Ticker(self.console, self.clock, what=what, unit=unit, total=total, done=done)

    def _saved(
        self, head: DraftHead, progress: Progress, material: Material, run: Run
    ) -> DistillReport:
        corpus, parents = material.corpus, material.parents(self.provenance)
        head.config = replace(
            head.config,
            provenance={
                "command": " ".join(["python jobs/distill.py", *self.words]),
                "data": f"{corpus.num_answer_tokens} tokens of the target's own answers",
                "figures": f"{progress.best_score:.3f} tokens per greedy round with drafts of 8",
                **parents,
            },
        )
        with disk_faults(self.head_dir):
            save_head(head.to(torch.bfloat16), self.head_dir)
        return DistillReport(
            fingerprint=weights_digest(self.head_dir, cache_dir=self.cache_dir),
            num_train_rows=len(corpus.train),
            num_valid_rows=min(len(corpus.valid), self.settings.max_valid_rows),
            num_answer_tokens=corpus.num_answer_tokens,
            num_dropped_rows=sum(corpus.dropped.values()),
            vocab_size=len(material.vocabulary.ids),
            coverage_ratio=material.vocabulary.coverage(corpus.valid),
            feature_layers=material.layers,
            num_updates=progress.update,
            best_update=progress.best_update,
            train_s=progress.seconds,
            head_bytes=sum((self.head_dir / name).stat().st_size for name in FILES),
            metrics=progress.best_metrics,
            parents=parents,
            run_id=run.run_id,
        )

    def _registered(self, report: DistillReport, run: Run) -> str:
        """What the head goes by. A store that is away costs the version only."""
        here = f"path:{self.head_dir}"
        if self.registry is None or not self.settings.register:
            return here
        run.flush()  # the run's id in the store
        tags, fingerprint = report.parents, report.fingerprint
        try:
            version = self.registry.register(self.head_dir, fingerprint, tags, run.run_id)
        except Fault as fault:
            self._say(f"not registered: {fault}; run the same command again when it is there")
            return here
        run.set_tags({"head.version": str(version.number), "head.fingerprint": fingerprint})
        return version.source

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say how to go on after Ctrl-C or SIGTERM."""
        try:
            yield
        except BaseException as error:
            if status_of(error) is RunStatus.KILLED:
                self._say(f"what is done is kept in {self.head_dir}: the same command goes on")
            raise

    def _say(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)
