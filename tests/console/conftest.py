"""Makes `http_site`, `rollout_stand`, `scene` and `stage` importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "serving"), str(HERE.parent / "rollout")]
