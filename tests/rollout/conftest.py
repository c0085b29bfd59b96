"""Makes what the tests of this folder share importable, and the site of the serving tests."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "serving")]
