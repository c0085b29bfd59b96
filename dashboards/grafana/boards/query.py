"""PromQL over the catalogue's meters: a dashboard gets every name from here. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.telemetry.meter import Meter

PERIOD = "[$__rate_interval]"  # Grafana's: at least four scrapes, wider where the view is


def rate(meter: Meter, by: str = "", where: str = "") -> str:
    """Growth of a counter in a second, summed."""
    return f"{_summed(by)} (rate({_counter(meter, where)}{PERIOD}))"


def growth(meter: Meter, by: str = "", where: str = "") -> str:
    """Growth of a counter in an interval, summed."""
    return f"{_summed(by)} (increase({_counter(meter, where)}{PERIOD}))"


def level(meter: Meter, by: str = "", where: str = "", how: str = "sum") -> str:
    """A gauge, as it is."""
    return f"{_summed(by, how)} ({meter.shown}{_braced(where)})"


def total(meter: Meter, by: str = "", where: str = "") -> str:
    """A counter, as it stands."""
    return f"{_summed(by)} ({_counter(meter, where)})"


def quantile(share: float, meter: Meter, by: str, where: str = "") -> str:
    """Of a histogram."""
    rates = f"sum by ({by}, le) (rate({meter.shown}_bucket{_braced(where)}{PERIOD}))"
    return f"histogram_quantile({share:g}, {rates})"


def ratio(above: str, below: str) -> str:
    """Nothing where nothing is below the line."""
    return f"{above} / ({below} > 0)"


def state(meter: Meter, label: str, values: Sequence[str], by: str, where: str = "") -> str:
    """Which of `values` a gauge of ones and zeros by `label` holds: its place, from 0."""
    before = f"{where}, " if where else ""
    terms = (f'{i} * {meter.shown}{{{before}{label}="{each}"}}' for i, each in enumerate(values))
    return f"max by ({by}) ({' or '.join(terms)})"


def _counter(meter: Meter, where: str) -> str:
    return f"{meter.shown}_total{_braced(where)}"


def _summed(by: str, how: str = "sum") -> str:
    return f"{how} by ({by})" if by else how


def _braced(where: str) -> str:
    return f"{{{where}}}" if where else ""
