"""Ray Data as our jobs use it: silent, and without a time after which it gives up."""

from __future__ import annotations

import logging

from outrider.cluster.environment import prepare_environment

prepare_environment()  # Ray reads it when imported

from ray.data import DataContext  # noqa: E402
from ray.data.context import DEFAULT_TARGET_MAX_BLOCK_SIZE  # noqa: E402

NOISY = ("ray", "ray.data", "ray._private.worker")


def set_up_data(
    *,
    max_block_bytes: int | None = DEFAULT_TARGET_MAX_BLOCK_SIZE,
    preserve_order: bool = False,
) -> None:
    """For the datasets of this process that are made from now on.

    `max_block_bytes`: of what one task gives out at once. `preserve_order`: rows come out as they
    went in; without it what is done first comes first.
    """
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    context.target_max_block_size = max_block_bytes
    context.execution_options.preserve_order = preserve_order
    context.execution_no_progress_timeout_s = -1  # a long task of a slow model is no hang
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
