"""Makes the toys importable, here and in the processes that Ray starts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
