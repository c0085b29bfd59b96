"""What else a gateway serves, put in by whoever makes the service: it knows of none itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

if TYPE_CHECKING:
    from outrider.serving.service import Service


class Addition(Protocol):
    """Routes of its own, families on the page /metrics, and work while the gateway runs."""

    def add(self, api: FastAPI, service: Service) -> None:
        """Its routes."""
        ...

    def collect(self) -> Iterable[Metric]:
        """Its families, at each look at /metrics. Never raises: what is unknown is left out."""
        ...

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """While the gateway answers."""
        ...


MakeAddition = Callable[[], Addition]
"""Picklable; called where the gateway runs."""
