"""The process's one OpenVINO, and how graphs are compiled for it."""

from __future__ import annotations

from functools import cache
from typing import Any

import openvino as ov


@cache
def core() -> Any:
    """One for the life of the process.

    The CPU plugin gives the thread that loads it a signal stack, and frees it with the last Core,
    from whatever thread: the next signal would then crash the process.
    """
    return ov.Core()


def compiled(model: Any, num_threads: int, **options: str) -> Any:
    """`model` for one round at a time on `num_threads` threads, which all graphs share."""
    return core().compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": num_threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            # Processes that pin would meet on the same cores while others idle
            "ENABLE_CPU_PINNING": False,
            **options,
        },
    )
