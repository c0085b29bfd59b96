"""Bounds that hold at every look: one may look as often as one likes and stop at any time. Pure.

Two arms with `n_c` and `n_s` requests differ by D = mean_c - mean_s, known with the information
I = 1 / (v_c / n_c + v_s / n_s). However requests were divided between the arms, as long as answers
did not decide it, Cov(D now, D later) = Var(D later); so W = I (D - d) is a Brownian motion in the
time I, with the drift (true difference - d) (Jennison and Turnbull 1997, "Group-sequential
analysis incorporating covariate information"). Unequal arms need no other treatment.

For a drift <= 0, exp(t W - t^2 I / 2) is a supermartingale for each t >= 0, and so is its mixture
over t = |N(0, s^2)| (Robbins 1970, "Statistical methods related to the law of the iterated
logarithm"; Howard et al. 2021, "one-sided normal mixture"; the sibling of the mSPRT of Johari et
al. 2017, "Peeking at A/B tests"):

    E = 2 / sqrt(1 + u) * exp(u z^2 / (2 (1 + u))) * Phi(z sqrt(u / (1 + u))),
    z = W / sqrt(I),  u = s^2 I,

so by Ville's inequality P(E ever reaches 1/alpha) <= alpha. Variances are estimated: the bound is
asymptotic (Waudby-Smith et al. 2021, "Time-uniform central limit theory and asymptotic confidence
sequences"). For want of requests it would be wrong at the beginning, where chance is greatest;
therefore each arm needs `START` of them, and z is read as a Student t with Welch's degrees of
freedom. What is left errs to one side: of times that are skewed even as logarithms, an arm with few
requests looks too fast rather than too slow. `outrider.rollout.simulation` measures it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

START = 20  # requests of each arm
_LEAST_SPREAD = 0.01  # of one request: figures that never differed yet might
_FARTHEST = 10.0  # of a bound, as a logarithm: nothing is told beyond it
_LARGEST_EXPONENT = 500.0

_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class Stream:
    """One arm's figure, or that of many simulated arms."""

    num: Array
    mean: Array
    variance: Array  # of one request, unbiased


@dataclass(frozen=True, slots=True)
class Gap:
    """Candidate's mean less `factor` times stable's."""

    difference: Array
    variance: Array  # of the difference
    degrees: Array  # of freedom, Welch's

    @property
    def information(self) -> Array:
        return 1.0 / self.variance


def gap(candidate: Stream, stable: Stream, factor: float = 1.0) -> Gap:
    ours = _variance(candidate) / candidate.num
    theirs = factor**2 * _variance(stable) / stable.num
    variance = ours + theirs
    squares = ours**2 / _at_least_1(candidate.num - 1) + theirs**2 / _at_least_1(stable.num - 1)
    return Gap(candidate.mean - factor * stable.mean, variance, variance**2 / squares)


def evidence(z: Array, information: Array, scale: float) -> Array:
    """E above: against "the difference is at most d". `scale` is s, the effect one looks for."""
    u = scale**2 * information
    shrunk = u / (1.0 + u)
    tail = 0.5 * (1.0 + _erf(z * np.sqrt(shrunk / 2.0)))
    return np.asarray(2.0 / np.sqrt(1.0 + u) * np.exp(0.5 * shrunk * z**2) * tail)


def radius(seen: Gap, scale: float, alpha: float) -> Array:
    """`difference - radius` is ever above the true difference with chance <= alpha; so is
    `difference + radius` below it. alpha < 1/2.

    E = 1/alpha is y^2 / 2 + log Phi(y) = c with y = z sqrt(u / (1 + u)) and
    c = log(1 / (2 alpha)) + log(1 + u) / 2. Phi(sqrt(2c)) <= Phi(y) makes it a closed form that
    is too wide by less than a thousandth.
    """
    u = scale**2 * seen.information
    c = math.log(0.5 / alpha) + 0.5 * np.log1p(u)
    y = np.sqrt(2.0 * (c - np.log(0.5 * (1.0 + _erf(np.sqrt(c))))))
    z = y * np.sqrt((1.0 + u) / u)
    return np.minimum(_student(z, seen.degrees) * np.sqrt(seen.variance), _FARTHEST)


def _at_least_1(degrees: Array) -> Array:
    return np.maximum(degrees, 1.0)


def _variance(stream: Stream) -> Array:
    return np.maximum(stream.variance, _LEAST_SPREAD**2)


def _student(z: Array, degrees: Array) -> Array:
    """The t that is as unlikely as z (Wallace 1959, "Bounds on normal approximations to Student's
    and the chi-square distributions", turned round).
    """
    corrected = z * (8.0 * degrees + 3.0) / (8.0 * degrees + 1.0)
    exponent = np.minimum(corrected**2 / degrees, _LARGEST_EXPONENT)
    return np.asarray(np.sqrt(degrees * np.expm1(exponent)))
