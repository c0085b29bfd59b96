"""The Grafana dashboards as code: `python dashboards/grafana/generate.py` writes them as JSON."""

from boards.bulk import bulk
from boards.lineage import lineage
from boards.rollout import rollout
from boards.serving import serving

__all__ = ["bulk", "lineage", "rollout", "serving"]
