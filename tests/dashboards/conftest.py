"""Makes the dashboards' generator and the stages of other tests importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
sys.path += [
    str(HERE),
    str(HERE.parent / "serving"),
    str(HERE.parent / "console"),
    str(REPOSITORY / "dashboards" / "grafana"),
]
