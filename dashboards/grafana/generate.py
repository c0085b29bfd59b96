"""Writes the dashboards as JSON beside this file: `python dashboards/grafana/generate.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from boards import bulk, lineage, rollout, serving

HERE = Path(__file__).parent


def texts() -> dict[str, str]:
    """Text of each file, by its name."""
    made = {each.uid: each for each in (serving(), rollout(), bulk(), lineage())}
    return {
        f"{(uid or '').removeprefix('outrider-')}.json": _text(each) for uid, each in made.items()
    }


def _text(dashboard: object) -> str:
    return json.dumps(dashboard, cls=JSONEncoder, sort_keys=True, indent=1) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")
