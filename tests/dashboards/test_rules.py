"""Rules and alerts as Prometheus' own tool checks and plays them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import asked
import pytest
import yaml

from outrider.config.schema import ServingSettings
from outrider.telemetry.meters import METERS

FOLDER = asked.FOLDER / "prometheus"
PROMTOOL = shutil.which("promtool")
STORIES = sorted((FOLDER / "tests").glob("*.yml"))
ALERTS = asked.rules("alerts.yml")

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="Prometheus is not installed")


def promtool(*words: str) -> str:
    assert PROMTOOL is not None
    ended = subprocess.run(
        [PROMTOOL, *words], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    return said


@needs_promtool
def test_rules_and_the_scrape_config_are_what_prometheus_reads(tmp_path: Path) -> None:
    said = promtool("check", "rules", "--lint-fatal", "rules.yml", "alerts.yml")
    assert said.count("SUCCESS") == 2
    whole = {"rule_files": [str(FOLDER / "rules.yml"), str(FOLDER / "alerts.yml")]}
    whole |= yaml.safe_load((FOLDER / "scrape.yml").read_text(encoding="utf-8"))
    written = tmp_path / "prometheus.yml"
    written.write_text(yaml.safe_dump(whole), encoding="utf-8")
    promtool("check", "config", str(written))


@needs_promtool
def test_each_alert_fires_on_its_story_and_not_on_its_neighbours() -> None:
    assert promtool("test", "rules", *map(str, STORIES)).count("SUCCESS") == len(STORIES) > 0


def test_no_alert_is_without_a_story() -> None:
    told = "\n".join(path.read_text(encoding="utf-8") for path in STORIES)
    for rule in ALERTS:
        assert f'alertname="{rule["alert"]}"' in told, rule["alert"]


def test_an_alert_says_what_is_wrong_how_urgent_it_is_and_what_to_do() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(names) == len(set(names)) > 0
    boards = {f"/d/outrider-{name}" for name in asked.BOARDS}
    for rule in ALERTS:
        told = rule["annotations"]
        assert rule["labels"]["severity"] in {"page", "ticket"}, rule["alert"]
        assert told["summary"].endswith("."), rule["alert"]
        assert told["description"].endswith("."), rule["alert"]
        assert (told["dashboard"] in boards, told["console"]) == (True, "/console"), rule["alert"]


def test_the_readme_lists_every_alert() -> None:
    text = (asked.FOLDER / "README.md").read_text(encoding="utf-8")
    for rule in ALERTS:
        assert f"| {rule['alert']} | {rule['labels']['severity']} |" in text, rule["alert"]


@pytest.mark.parametrize("expression", sorted(set(asked.expressions())))
def test_every_name_is_in_the_catalogue(expression: str) -> None:
    for metric in asked.names(expression):
        assert asked.meter_name(metric) in METERS, metric


def test_a_recorded_figure_is_named_after_its_labels_and_its_meter() -> None:
    recorded = [rule["record"] for rule in asked.rules("rules.yml")]
    assert len(recorded) == len(set(recorded)) > 0
    wanted = {name for text in asked.expressions() for name in asked.names(text) if ":" in name}
    assert wanted <= set(recorded)
    for name in recorded:
        assert asked.meter_name(name) in METERS, name


def test_the_page_is_looked_for_where_serving_puts_it() -> None:
    written = yaml.safe_load((FOLDER / "scrape.yml").read_text(encoding="utf-8"))
    (job,) = written["scrape_configs"]
    default = ServingSettings()
    assert job["static_configs"][0]["targets"] == [f"{default.host}:{default.port}"]
    assert {"job": job["job_name"]} == {"job": "outrider"}
