"""Distributions for verdicts: normal, Student's t, chi-square and binomial.

Each agrees with scipy to 12 digits or better (verified by the tests), without the second that
importing scipy takes.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_SMALLEST = 1e-300  # in place of a zero denominator (Lentz), near the smallest double
_PRECISE = 2.0**-52  # the relative spacing of doubles (IEEE 754)
_CLOSE = 1e-9  # a step so small leaves an error of its square
_MOST_TERMS = 100_000  # a bound on the loop; the fraction converges in O(sqrt(max(a, b))) terms
_LARGE = 150.0  # the gamma function ends at 171; from here on its ratio's series has 13 digits
_STEPS = 200  # a bound on the loop, chosen: halving alone gives all 52 bits in under 100 steps


def normal_cdf(z: float) -> float:
    """P(Z <= z) of a standard normal Z."""
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p, for p within (0, 1)."""
    return NormalDist().inv_cdf(p)


def t_cdf(t: float, freedom: float) -> float:
    """P(T <= t) of Student's t."""
    if abs(t) < 1:
        within = incomplete_beta(0.5, freedom / 2, t * t / (freedom + t * t))
        return (1 + math.copysign(within, t)) / 2
    beyond = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return beyond if t < 0 else 1 - beyond


@lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p, for p within (0, 1)."""
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    scale = math.exp(-_log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)

    def excess(t: float) -> tuple[float, float]:
        density = scale * math.exp(-(freedom + 1) / 2 * math.log1p(t * t / freedom))
        return (1 - p) - t_cdf(-t, freedom), density

    return increasing_root(excess, normal_quantile(p))


def increasing_root(function: Callable[[float], tuple[float, float]], start: float) -> float:
    """Where an increasing function is 0, from 0 up; it gives its value and its slope.

    Newton's method, safeguarded by bisection.
    """
    low, high, x = 0.0, math.inf, start
    for _ in range(_STEPS):
        value, slope = function(x)
        low, high = (x, high) if value < 0 else (low, x)
        newton = x - value / slope if slope > 0 else math.nan
        if abs(newton - x) <= _CLOSE * abs(x):
            return newton
        halved = (low + high) / 2 if high < math.inf else 2 * max(x, 1.0)
        x = newton if low < newton < high else halved
    return x


def chi_square_quantile(p: float, freedom: float) -> float:
    """The x with P(X <= x) = p of chi square, for p within (0, 1); Halley's method."""
    a = freedom / 2
    scale = math.lgamma(a)
    cube = 1 - 1 / (9 * a) + normal_quantile(p) / (3 * math.sqrt(a))
    first_term = math.exp((math.log(p) + math.lgamma(a + 1)) / a)
    x = a * cube**3 if cube > 0.5 else first_term  # Wilson and Hilferty 1931
    for _ in range(_STEPS):
        density = math.exp((a - 1) * math.log(x) - x - scale)
        newton = (_incomplete_gamma(a, x) - p) / density
        bend = newton * ((a - 1) / x - 1) / 2
        step = newton / (1 - min(max(bend, -0.5), 0.5))
        x = max(x - step, x / 4)
        if abs(step) <= _CLOSE * x:
            break
    return 2 * x


def _incomplete_gamma(a: float, x: float) -> float:
    """P(a, x), regularized, by its series (DLMF 8.7.1)."""
    term = total = 1.0
    n = a
    while term > _PRECISE / 4 * total:
        n += 1
        term *= x / n
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a + 1))


def binomial_cdf(k: int, n: int, p: float = 0.5) -> float:
    """P(X <= k) of the successes in n trials, each of probability p."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n or p <= 0 else incomplete_beta(n - k, k + 1, 1 - p)


def binomial_above(k: int, n: int, p: float) -> float:
    """P(X > k) of the successes in n trials, each of probability p; precise where it is small."""
    if k < 0:
        return 1.0
    return 0.0 if k >= n else incomplete_beta(k + 1, n - k, p)


@lru_cache(maxsize=1024)
def median_rank(n: int, level: float) -> int:
    """The place (from 0) of n ordered values where the narrowest interval of their median begins.

    It ends as far from the largest. Conover, Practical Nonparametric Statistics, section 3.2.
    """
    places = range(n // 2 + 1)
    return bisect_right(places, (1 - level) / 2, key=lambda k: binomial_cdf(k, n)) - 1


def incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), regularized, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    factor = math.exp(a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b)) / a
    return factor / _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The fraction below `incomplete_beta`, by Lentz's method."""
    value = ratio_up = 1.0
    ratio_down = 0.0
    for step in range(1, _MOST_TERMS):
        m = step // 2
        if step % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        ratio_down = 1 / ((1 + part * ratio_down) or _SMALLEST)
        ratio_up = (1 + part / ratio_up) or _SMALLEST
        value *= ratio_up * ratio_down
        if abs(ratio_up * ratio_down - 1) <= _PRECISE:
            break
    return value


def _log_beta(a: float, b: float) -> float:
    if 0.5 in {a, b}:
        return math.log(math.sqrt(math.pi) / _gamma_ratio(b if a == 0.5 else a))
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _gamma_ratio(a: float) -> float:
    """Gamma(a + 1/2) / Gamma(a), without the difference of two large logarithms (DLMF 5.11.13)."""
    if a < _LARGE:
        return math.gamma(a + 0.5) / math.gamma(a)
    return math.sqrt(a) * (1 + (-1 / 8 + (1 / 128 + (5 / 1024 - 21 / 32768 / a) / a) / a) / a)
