"""Regimes: the families of log-sum-exps s and outputs v that states are drawn from, from the plainest to the wildest.

Each regime is a function of a NumPy generator and a shape. An s regime returns float64 [S, N, H] in base 2; a v regime
returns float64 [S, N, H, D] for the largest magnitude `most` that the caller allows. Seed 0 means plain small numbers,
so that a shrunken case can be read; other seeds are random. Every regime's rows differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[numpy.float64]

# Two weights of one row are 2^gap apart. Half an ulp of 1, half an ulp of a 16-bit v, the least normal weight, the least
# subnormal one, and a gap that overflows float32 are where kernels change their behaviour.
EDGES = (0.5, 1.0, 8.0, 11.0, 23.0, 24.0, 25.0, 80.0, 125.5, 126.0, 127.5, 148.0, 149.0, 150.5, 200.0, 1e4, 3e38)


def _signed(random: Generator, shape: tuple[int, ...], least: float, most: float) -> Array:
    """Numbers of either sign, their sizes spread evenly over the decades from 10^least to 10^most."""
    sizes: Array = 10.0 ** random.uniform(least, most, shape)
    return numpy.copysign(sizes, random.normal(0.0, 1.0, shape))


def _near(random: Generator, shape: tuple[int, ...]) -> Array:
    """s within a few units of each other, as real scores give."""
    return random.normal(0.0, 3.0, shape)


def _equal(random: Generator, shape: tuple[int, ...]) -> Array:
    """One s for all states of a row: equal weights."""
    rows, count, heads = shape
    return numpy.repeat(random.normal(0.0, 20.0, (rows, 1, heads)), count, axis=1)


def _ulps(random: Generator, shape: tuple[int, ...]) -> Array:
    """s a few ulps apart, at any magnitude from 1e-3 to 1e6."""
    rows, _, heads = shape
    centre = random.choice([-1.0, 1.0], (rows, 1, heads)) * 10.0 ** random.uniform(-3, 6, (rows, 1, heads))
    return centre * (1.0 + random.integers(-4, 5, shape) * 2.0**-23)


def _wide(random: Generator, shape: tuple[int, ...]) -> Array:
    """Gaps from 0 to 300: weights on both sides of the underflow."""
    return random.uniform(-300.0, 0.0, shape)


def _edges(random: Generator, shape: tuple[int, ...]) -> Array:
    """Gaps at and right beside the edges of the arithmetic, around any centre."""
    rows, _, heads = shape
    centre = random.choice([0.0, 0.0, 1.0, -40.0, 1000.25], (rows, 1, heads))
    gaps = random.choice(EDGES, shape) * (1.0 + random.integers(-2, 3, shape) * 2.0**-23)
    return centre - numpy.where(random.random(shape) < 0.4, 0.0, gaps)


def _offset(random: Generator, shape: tuple[int, ...]) -> Array:
    """Ordinary gaps far from zero, where one unit in the last place of s is a good part of a weight."""
    rows, _, heads = shape
    centre = random.choice([-1.0, 1.0], (rows, 1, heads)) * 10.0 ** random.uniform(1, 7, (rows, 1, heads))
    return centre + random.normal(0.0, 3.0, shape)


def _huge(random: Generator, shape: tuple[int, ...]) -> Array:
    """|s| from 1 to 3e38 of either sign: differences up to 6e38."""
    return _signed(random, shape, 0, 38.4771)  # to 3e38


def _tiny(random: Generator, shape: tuple[int, ...]) -> Array:
    """|s| from 1e-30 to 1e-3, where s is about to be rounded away."""
    return _signed(random, shape, -30, -3)


def _dominant(random: Generator, shape: tuple[int, ...]) -> Array:
    """Nearly all of the mass on one state, any of them."""
    rows, count, heads = shape
    s = random.normal(0.0, 3.0, shape)
    if count:
        winner = random.integers(0, count, (rows, 1, heads))
        numpy.put_along_axis(s, winner, random.uniform(15.0, 60.0, (rows, 1, heads)), axis=1)
    return s


def _some_empty(random: Generator, shape: tuple[int, ...]) -> Array:
    """Each state empty with even odds, whole rows among them."""
    return numpy.where(random.random(shape) < 0.5, -numpy.inf, random.normal(0.0, 5.0, shape))


def _mostly_empty(random: Generator, shape: tuple[int, ...]) -> Array:
    """One state that is not empty, in any position."""
    rows, count, heads = shape
    s = numpy.full(shape, -numpy.inf)
    if count:
        alone = random.integers(0, count, (rows, 1, heads))
        numpy.put_along_axis(s, alone, random.normal(0.0, 30.0, (rows, 1, heads)), axis=1)
    return s


def _all_empty(random: Generator, shape: tuple[int, ...]) -> Array:
    """No state that is not empty."""
    return numpy.full(shape, -numpy.inf)


LSE_REGIMES: dict[str, Callable[[Generator, tuple[int, ...]], Array]] = {
    "near": _near,
    "equal": _equal,
    "ulps apart": _ulps,
    "wide": _wide,
    "edges": _edges,
    "offset": _offset,
    "huge": _huge,
    "tiny": _tiny,
    "dominant": _dominant,
    "some empty": _some_empty,
    "mostly empty": _mostly_empty,
    "all empty": _all_empty,
}


def _ordinary(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """What attention gives."""
    return random.normal(0.0, 1.0, shape)


def _constant(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """All states of a row agree, element by element: the weights must not matter."""
    rows, count, heads, dim = shape
    return numpy.repeat(random.normal(0.0, 1.0, (rows, 1, heads, dim)), count, axis=1)


def _cancelling(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """Large and of both signs, so that little is left of the sum."""
    size = 10.0 ** random.uniform(0, 3, shape[:1] + (1,) + shape[2:])
    near: Array = size * (1.0 + 0.01 * random.normal(0.0, 1.0, shape))
    return numpy.copysign(near, random.normal(0.0, 1.0, shape))


def _mixed(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """Magnitudes from the least to the largest that the dtype takes: a light state may rule the sum."""
    top = float(numpy.log10(most))
    return _signed(random, shape, -top, top)


def _limits(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """At the largest magnitude that the dtype takes, of either sign."""
    return most * random.choice([-1.0, 1.0], shape) * random.uniform(0.5, 1.0, shape)


def _small(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """Around the least normal number of float16, subnormals and zeros of either sign among them."""
    size = random.choice([0.0, 1.0, 1.0, 1.0], shape) * 10.0 ** random.uniform(-8, -4, shape)
    return numpy.copysign(size, random.normal(0.0, 1.0, shape))


def _sinks(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """Some states have v = 0 and are not empty: attention sinks."""
    sink = random.random(shape[:3] + (1,)) < 0.4
    return numpy.where(sink, 0.0, random.normal(0.0, 1.0, shape))


def _scalable(random: Generator, shape: tuple[int, ...], most: float) -> Array:
    """From 1/4 to 16 and of one sign per column: sums stay that large, so powers of two can be taken in and out."""
    rows, _, heads, dim = shape
    sign = random.choice([-1.0, 1.0], (rows, 1, heads, dim))
    return sign * 2.0 ** random.uniform(-2, 4, shape)


V_REGIMES: dict[str, Callable[[Generator, tuple[int, ...], float], Array]] = {
    "ordinary": _ordinary,
    "constant": _constant,
    "sinks": _sinks,
    "cancelling": _cancelling,
    "mixed": _mixed,
    "limits": _limits,
    "small": _small,
    "scalable": _scalable,
}


def plain_lses(shape: tuple[int, ...]) -> Array:
    """0, 1, 2, ... over the states of a row, and one step more from row to row."""
    rows, count, heads = shape
    row = numpy.arange(rows * heads, dtype=numpy.float64).reshape(rows, 1, heads)
    return row + numpy.arange(count, dtype=numpy.float64).reshape(1, count, 1)


def plain_values(shape: tuple[int, ...]) -> Array:
    """1, 2, 3, ... over everything: no two elements of a tensor are the same, up to 2048."""
    return numpy.arange(numpy.prod(shape), dtype=numpy.float64).reshape(shape) % 2048 + 1.0
