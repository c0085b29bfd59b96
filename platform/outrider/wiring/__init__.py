"""Settings -> objects. The one package that knows all parts; it decides nothing.

A job's parts are imported when it is asked for: a leaderboard needs no engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outrider.wiring.bulk_job import bulk, engine_recipe
    from outrider.wiring.comparison import compare
    from outrider.wiring.distillation import distill
    from outrider.wiring.figures import bench
    from outrider.wiring.rollouts import rollout
    from outrider.wiring.search import sweep
    from outrider.wiring.server import serve
    from outrider.wiring.stores import tracker
    from outrider.wiring.trials import trial

__all__ = [
    "bench",
    "bulk",
    "compare",
    "distill",
    "engine_recipe",
    "rollout",
    "serve",
    "sweep",
    "tracker",
    "trial",
]

HOMES = {
    "bench": "figures",
    "bulk": "bulk_job",
    "compare": "comparison",
    "distill": "distillation",
    "engine_recipe": "bulk_job",
    "rollout": "rollouts",
    "serve": "server",
    "sweep": "search",
    "tracker": "stores",
    "trial": "trials",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
