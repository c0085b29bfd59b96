"""Settings -> objects. The one package that knows all parts; it decides nothing."""

from outrider.wiring.bulk_job import bulk, engine_recipe
from outrider.wiring.comparison import compare
from outrider.wiring.figures import bench
from outrider.wiring.parts import tracker
from outrider.wiring.server import serve
from outrider.wiring.trials import trial

__all__ = ["bench", "bulk", "compare", "engine_recipe", "serve", "tracker", "trial"]
