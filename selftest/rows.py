"""Rows of states in float64, drawn from the regimes of the properties, for whoever judges the judges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import torch
from numpy.typing import NDArray

from properties.cases import largest_v
from properties.regimes import LSE_REGIMES, V_REGIMES

Array = NDArray[numpy.float64]

BASES: tuple[int | str, ...] = (2, "e")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
COUNTS = (1, 2, 2, 3, 5, 8, 33, 40)  # N: two states are what is merged most


@dataclass(frozen=True)
class Rows:
    """R rows: v [R, N, D], values of `dtype`, and s [R, N], float32 values in base `base`; all held in float64."""

    v: Array
    s: Array
    dtype: str
    base: int | str


def every_regime(dtype: str, base: int | str, rows: int, dim: int, seed: int = 0) -> Iterator[Rows]:
    """`rows` rows of every pair of an s regime and a v regime, N from 1 to 40 in turn."""
    counts = itertools.cycle(COUNTS)
    for number, (lse, value) in enumerate(itertools.product(LSE_REGIMES, V_REGIMES)):
        random = numpy.random.default_rng((seed, number))
        count = next(counts)
        s = LSE_REGIMES[lse](random, (rows, count, 1))[:, :, 0]
        most = largest_v(DTYPES[dtype], count)
        v = numpy.clip(V_REGIMES[value](random, (rows, count, 1, dim), most)[:, :, 0], -most, most)
        yield Rows(stored(v, dtype), stored(s if base == 2 else s * numpy.log(2.0), "float32"), dtype, base)


def stored(values: Array, dtype: str) -> Array:
    """The values rounded to float32 and then to `dtype`, as a kernel stores them."""
    single = torch.from_numpy(numpy.ascontiguousarray(values)).float()
    return single.to(DTYPES[dtype]).double().numpy()
