"""The whole loop, on a tiny model, as a user would walk it with the commands in `jobs/`.

A bulk job's answers teach a draft head, which is registered; a release that drafts with it is
measured against plain decoding, beside a service that decodes plainly is brought in step by step,
and is champion in the end: with what it came from on record, and the tokens as they were.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mlflow import MlflowClient

from outrider import wiring
from outrider.bench.background_load import BackgroundLoad
from outrider.bench.http_client import Wish
from outrider.bench.http_server import started
from outrider.bench.workload import load_workload
from outrider.cluster.session import ray_session
from outrider.config.load import load
from outrider.config.schema import BenchJob, BulkJob, CompareJob, DistillJob, RolloutJob
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.registry import NAME, Version
from outrider.trial.judgement import Decision
from outrider.trial.record import Entrant
from outrider.trial.tables import read_observations
from outrider.wiring.rollouts import Rollouts
from outrider.wiring.trials import make_trial

SERVE = Path(__file__).resolve().parents[1] / "jobs" / "serve.py"
HEAD = "mlflow:models:/outrider-draft@champion"
DRAFTING = (  # always, also where it does not pay: a tiny model has nothing to gain
    f"draft=composite draft.head.source={HEAD} draft.length.policy=fixed draft.length.max=3 "
    "breaker.enabled=false"
)
NUM_PROMPTS = 60
ANY_SPEED = "0.0001"  # times plain decoding's: this machine may be busy
ANY_COST = "10000"
CRITERIA = (
    *(f"criteria.{name}={ANY_SPEED}" for name in ("min_speedup", "min_group_speedup")),
    *(f"criteria.max_{name}_ratio={ANY_COST}" for name in ("first_token", "inter_token", "total")),
    *(f"criteria.max_memory_ratio={ANY_COST}", "criteria.min_pairs=4"),
)
PLAN = (
    *("plan=quick", "plan.weights=[0.5]", "plan.min_samples=10", "plan.min_s=0.2"),
    *("plan.max_s=400", "plan.keep_s=0.2", "rollout.tick_s=0.2"),
)
GATES = (  # errors and answers alone
    *("gates.min_speed_ratio=0", "gates.min_acceptance_ratio=0"),
    *("gates.min_tokens_per_round_ratio=0", "gates.max_first_token_ratio=0"),
    *("gates.max_inter_token_ratio=0", "gates.max_total_ratio=0", "gates.max_error_increase=0.5"),
)


@dataclass(frozen=True)
class Place:
    """A folder with a model's address, prompts and an MLflow store; each command's words."""

    folder: Path
    model: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder}/runs.db"

    @property
    def client(self) -> MlflowClient:
        return MlflowClient(self.uri, self.uri)

    @property
    def exact(self) -> list[str]:
        """The model in float64, where no two ways to compute a token differ."""
        return [
            *(f"model.source=path:{self.model}", f"tracking.uri={self.uri}"),
            *("model.runtime=torch", "model.dtype=float64", "model.num_threads=1"),
        ]

    @property
    def answers(self) -> Path:
        return self.folder / "answers"

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    @property
    def registry(self) -> MlflowRegistry:
        spool = self.folder / "spool"
        return MlflowRegistry(
            MlflowConnection(uri=self.uri, experiment="outrider", spool_dir=spool)
        )


@pytest.fixture
def place(
    tmp_path: Path,
    fresh_store: Path,
    taught_folder: Path,
    text_by_heart: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    shutil.copy(fresh_store, tmp_path / "runs.db")
    made = Place(tmp_path, taught_folder)
    starts = [text_by_heart[start : start + 24] for start in range(NUM_PROMPTS)]
    made.write("prompts.jsonl", [{"id": f"p{n}", "prompt": text} for n, text in enumerate(starts)])
    for name, count in (("evaluation", 8), ("warmup", 2)):
        made.write(
            f"{name}.jsonl",
            [
                {
                    "id": f"{name}{n}",
                    "kind": "chat",
                    "messages": [{"role": "user", "content": starts[7 * n]}],
                }
                for n in range(count)
            ],
        )
    return made


@pytest.fixture
def joined(place: Place, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bulk jobs and trials run on the Ray that is there."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    with ray_session(place.folder / "ray.log", num_cpus=1):
        yield


def written(place: Place) -> dict[str, Any]:
    """The report of a bulk job that answers the prompts by plain decoding."""
    words = [
        *(f"input={place.folder}/prompts.jsonl", f"job_dir={place.answers}", "draft=none"),
        *("sampling.max_tokens=24", "cpus_per_worker=1", f"beacons_dir={place.folder}/beacons"),
        *place.exact,
    ]
    assert wiring.bulk(load(BulkJob, "bulk", words), words) == 0
    report: dict[str, Any] = json.loads((place.answers / "report.json").read_text())
    assert (report["num_rows_done"], report["num_rows_failed"]) == (NUM_PROMPTS, 0)
    return report


def learnt(place: Place) -> None:
    """A head out of those answers, registered."""
    words = [
        *(f"input={place.answers}", f"head_dir={place.folder}/head", "valid_share=0.2"),
        *("max_tokens=64", "batch_tokens=256", "train_dtype=float32", "num_steps=3"),
        *("learning_rate=0.01", "num_epochs=8", "eval_updates=20"),
        *place.exact,
    ]
    assert wiring.distill(load(DistillJob, "distill", words), words) == 0


def measured(place: Place) -> Entrant:
    """A release that drafts with the registered head, against plain decoding."""
    words = [
        *(f'releases=["{DRAFTING}"]', f"evaluation={place.folder}/evaluation.jsonl"),
        *(f"trial.warmup={place.folder}/warmup.jsonl", "in_flight=[2]", "answer_tokens=16"),
        *("sampling.max_tokens=24", *CRITERIA, *place.exact),
    ]
    trial = make_trial(load(BenchJob, "bench", words), words, print)
    record = replace(trial, folder=place.folder / "trial").run()
    trial.tracker.close()
    seen = read_observations(place.folder / "trial" / "observations.parquet")
    ours = [one for one in seen if one.contender == DRAFTING]
    assert {(one.parity, one.error) for one in ours} == {("equal", "")}
    assert sum(one.accepted for one in ours) > 0
    return record.entrants[1]


def brought_in(place: Place, url: str, version: int) -> Status:
    """The rollout of a registered version, to its end."""
    words = [
        *(f"release=models:/outrider/{version}", f"url={url}", f"tracking.uri={place.uri}"),
        *(f"database=sqlite:///{place.folder}/rollouts.db", "answer_tokens=16"),
        *(f"evaluation={place.folder}/evaluation.jsonl", *PLAN, *GATES),
    ]
    command = Rollouts(load(RolloutJob, "rollout", words), print)
    assert command.start() == 0
    found = command.newest()
    phases = [move.phase for move in command.store.moves(found.status.rollout_id)]
    way = [Phase.SHADOW, Phase.CANARY, Phase.CONFIRMING, Phase.PROMOTING, Phase.PROMOTED]
    assert [phase for phase in phases if phase in way] == way
    return found.status


def traffic(place: Place, url: str) -> BackgroundLoad:
    prompts = load_workload(place.folder / "evaluation.jsonl", lambda messages: [])
    wish = Wish(max_tokens=12, ignore_eos=True)
    return BackgroundLoad(url, prompts, wish, in_flight=2, kind="chat")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check_answers(place: Place, url: str, release: str) -> None:
    """The service says what plain decoding wrote, and drafts."""
    asked, answers = rows(place.folder / "prompts.jsonl"), rows(place.answers / "output.jsonl")
    accepted = 0
    for row, line in list(zip(asked, answers, strict=True))[:5]:
        body = {"prompt": row["prompt"], "max_tokens": 24, "temperature": 0}
        answer = httpx.post(f"{url}/v1/completions", json=body, timeout=120)
        assert answer.headers["x-outrider-release"] == release
        choice = line["response"]["body"]["choices"][0]
        assert answer.json()["choices"][0]["text"] == choice["text"]
        accepted += answer.json()["usage"]["speculation"]["accepted"]
    assert accepted > 0


def check_lineage(place: Place, champion: Version, report: dict[str, Any]) -> None:
    """From the release that serves to the head, and to what that was learnt from."""
    head = place.client.get_model_version_by_alias("outrider-draft", "champion")
    assert place.registry.record(champion).config["draft"]["head"]["source"] == (
        f"mlflow:models:/outrider-draft/{head.version}"
    )
    assert champion.tags["lineage.draft_weights"] == head.tags["fingerprint"]
    assert champion.tags["lineage.weights"] == head.tags["lineage.weights"]
    assert head.tags["parent.weights"] == head.tags["lineage.weights"]
    assert head.tags["parent.releases"] == report["fingerprint"]
    assert head.tags["parent.run"] == report["run_id"]
    assert head.tags["parent.corpus_input"] == report["input"]["digest"]
    run = place.client.get_run(head.run_id)
    assert (run.data.tags["head.version"], run.info.status) == (str(head.version), "FINISHED")


@pytest.mark.timeout(600)
# Ray Data sets what it deprecates itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
def test_what_a_service_wrote_in_bulk_becomes_the_draft_of_its_champion(
    place: Place, joined: None
) -> None:
    report = written(place)
    (stable,) = place.registry.versions()
    words = [f"champion={stable.number}", f"tracking.uri={place.uri}"]
    assert wiring.compare(load(CompareJob, "compare", words)) == 0

    learnt(place)
    entrant = measured(place)
    assert entrant.judgement is not None
    assert entrant.judgement.decision is Decision.ADOPT, entrant.judgement
    assert entrant.version is not None

    script = [
        *(sys.executable, str(SERVE), f"release={stable.uri}", f"tracking.uri={place.uri}"),
        *(f"log_dir={place.folder}/requests", "fallback=false", "console.enabled=false"),
    ]
    with started(script, log=place.folder / "server.log", tell=print) as server:
        before = httpx.get(f"{server.url}/admin/status", timeout=60).json()
        assert before["fingerprint"] == stable.fingerprint == report["fingerprint"]
        with traffic(place, server.url) as load_:
            status = brought_in(place, server.url, entrant.version)
        assert not load_.errors
        after = httpx.get(f"{server.url}/admin/status", timeout=60).json()
        release = f"v{entrant.version}"
        assert (after["plan"]["stable"], after["fingerprint"]) == (release, entrant.fingerprint)
        assert after["releases"][release]["fingerprint"] == status.candidate.fingerprint
        (replica,) = [each for each in after["replicas"] if each["release"] == release]
        assert replica["by_drafter"]["head"]["accepted"] > 0
        check_answers(place, server.url, release)

    names = {each.number: each.aliases for each in place.registry.versions()}
    assert names == {stable.number: ("previous",), entrant.version: ("champion",)}
    champion = place.registry.find(f"models:/{NAME}@champion")
    assert champion.fingerprint == entrant.fingerprint
    check_lineage(place, champion, report)
