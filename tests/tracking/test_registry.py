"""One story, two registries: in memory and in MLflow, releases are versions with names."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient

from outrider.core import UserError
from outrider.testing import MemoryRegistry
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.registry import NAME, Alias, Registry
from outrider.tracking.release_record import ReleaseRecord

CHAMPION = f"models:/{NAME}@champion"


def record_of(fingerprint: str) -> ReleaseRecord:
    return ReleaseRecord(
        fingerprint=fingerprint,
        settings={"model": {"weights": "w"}, "engine": {"version": "1"}},
        config={"model": {"source": "path:/models/a"}, "sampling": {"temperature": 0.5}},
        lock_sha256="l" * 64,
        revision="abc",
        lineage={"weights": "w", "lock": "l" * 64},
    )


@pytest.fixture(params=["memory", "mlflow"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    if request.param == "memory":
        return MemoryRegistry()
    uri = request.getfixturevalue("store_uri")
    return MlflowRegistry(
        MlflowConnection(uri=uri, experiment="outrider", spool_dir=tmp_path / "spool")
    )


def status(registry: Registry) -> list[str]:
    return [str(version) for version in registry.versions()]


def test_a_release_is_registered_once_and_its_names_are_handed_on(registry: Registry) -> None:
    assert status(registry) == []
    with pytest.raises(UserError, match=r"@champion: no release is registered here yet"):
        registry.find(CHAMPION)

    numbers = [registry.register(record_of(name), run_id="").number for name in "aba"]
    assert numbers == [1, 2, 1]
    assert status(registry) == ["1", "2"]
    assert [version.fingerprint for version in registry.versions()] == ["a", "b"]

    registry.give(Alias.CHAMPION, 1)
    registry.give(Alias.CHALLENGER, 2)
    assert status(registry) == ["1 (champion)", "2 (challenger)"]
    registry.give(Alias.CHAMPION, 2)
    assert status(registry) == ["1 (previous)", "2 (champion)"]
    registry.give(Alias.CHAMPION, 2)
    assert status(registry) == ["1 (previous)", "2 (champion)"]
    assert registry.find(CHAMPION).number == 2
    registry.give(Alias.CHAMPION, 1)
    assert status(registry) == ["1 (champion)", "2 (previous)"]
    assert registry.find(f"models:/{NAME}/2").aliases == ("previous",)


def test_what_was_registered_comes_back_whole(registry: Registry) -> None:
    record = record_of("a")
    version = registry.register(record, run_id="")
    assert registry.record(version) == record
    assert version.tags["lineage.weights"] == "w"
    registry.set_tags(1, {"decision": "adopt"})
    found = registry.find(f"models:/{NAME}/1")
    assert found.tags["decision"] == "adopt"
    assert found.tags["lineage.lock"] == "l" * 64
    assert found.fingerprint == "a"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (CHAMPION, "no release has that alias; there are 1, 2 (challenger)"),
        (f"models:/{NAME}/7", "no release has that number; there are 1, 2 (challenger)"),
        (f"models:/{NAME}/latest", "a release is written models:/outrider@champion"),
        ("models:/another/1", "a release is written models:/outrider@champion"),
    ],
)
def test_a_release_that_is_not_there_is_refused_with_those_that_are(
    registry: Registry, uri: str, said: str
) -> None:
    for name in "ab":
        registry.register(record_of(name), run_id="")
    registry.give(Alias.CHALLENGER, 2)
    with pytest.raises(UserError) as refused:
        registry.find(uri)
    assert uri in str(refused.value)
    assert said in str(refused.value)


def test_a_name_is_given_only_to_what_can_bear_it(registry: Registry) -> None:
    registry.register(record_of("a"), run_id="")
    registry.give(Alias.CHAMPION, 1)
    with pytest.raises(UserError, match=r"^models:/outrider/1 is the champion"):
        registry.give(Alias.CHALLENGER, 1)
    with pytest.raises(UserError, match=r"^models:/outrider/2: no release has that number"):
        registry.give(Alias.CHAMPION, 2)
    assert status(registry) == ["1 (champion)"]


def test_status_has_the_aliases_that_mlflows_search_leaves_out(
    store_uri: str, tmp_path: Path
) -> None:
    """P12."""
    registry = MlflowRegistry(
        MlflowConnection(uri=store_uri, experiment="outrider", spool_dir=tmp_path / "spool")
    )
    for name in "abc":
        registry.register(record_of(name), run_id="")
    registry.give(Alias.CHAMPION, 2)
    registry.give(Alias.CHALLENGER, 3)
    searched = MlflowClient(store_uri).search_model_versions(f"name = '{NAME}'")
    assert [each.aliases for each in searched] == [[], [], []]
    assert status(registry) == ["1", "2 (champion)", "3 (challenger)"]
    client = MlflowClient(store_uri, store_uri)
    assert client.get_model_version_by_alias(NAME, "challenger").version in (3, "3")
