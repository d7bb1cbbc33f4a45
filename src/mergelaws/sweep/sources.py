"""Where the rows of a sweep come from. A source is a sequence of rows: the same ones for the same arguments, on any device.

`total` is how many there are, None if they do not end. `rows(first, count, device)` makes `count` of them from row `first` on.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy
import torch

from mergelaws.implementation import Implementation
from mergelaws.sweep.rows import DTYPES, Rows, filled_to, head_dim
from properties.call import TWO_STATES
from properties.cases import largest_v
from properties.regimes import LSE_REGIMES, V_REGIMES

ALL = 2**32


class Source(Protocol):
    """The rows of a sweep. total: how many, None if they do not end. batch: how many belong together, None if any number."""

    @property
    def total(self) -> int | None: ...  # noqa: D102
    @property
    def batch(self) -> int | None: ...  # noqa: D102

    def rows(self, first: int, count: int, device: str) -> Rows:
        """`count` rows from row `first` on."""
        ...


def spread(first: int, count: int, of: int, seed: int, device: str) -> torch.Tensor:
    """Numbers from 0 to 2^32 - 1, int64 [count]: all of them in order if `of` is 2^32, else one of each of `of` stretches.

    of: a power of two, so that the stretches are equal and nothing is left over.
    """
    index = torch.arange(first, first + count, dtype=torch.int64, device=device)
    step = ALL // of
    noise = (index + seed) * 6364136223846793005 + 1442695040888963407  # Knuth's MMIX generator; wraps around
    return index * step + ((noise >> 33) & 0x7FFFFFFF) % step


class Gaps:
    """Every float32 as s_b beside one s_a: v is (1, 1) and (0, -1), a share and a difference of shares."""

    batch = None

    def __init__(
        self, implementation: Implementation, dtype: str, base: int | str, s_a: float, count: int, seed: int
    ) -> None:
        self.total = count
        self._dtype, self._base, self._s_a, self._count, self._seed = dtype, base, s_a, count, seed
        self._dim = head_dim(implementation, 2)

    def rows(self, first: int, count: int, device: str) -> Rows:
        """s_b by its bits, as an unsigned number."""
        number = spread(first, count, self._count, self._seed, device)
        s_b = (number - ((number >> 31) << 32)).to(torch.int32).view(torch.float32)
        s = torch.stack([torch.full_like(s_b, self._s_a), s_b], dim=1)
        v = torch.tensor([[1.0, 1.0], [0.0, -1.0]], dtype=DTYPES[self._dtype], device=device)
        return Rows("merge_state", self._base, filled_to(v[None], self._dim).expand(count, 2, self._dim), s)


class Pairs:
    """Every pair of float16 bit patterns as v_a and v_b, with s_a = 0 and s_b = gap."""

    batch = None

    def __init__(self, implementation: Implementation, base: int | str, gap: float, count: int, seed: int) -> None:
        self.total = count
        self._base, self._gap, self._count, self._seed = base, gap, count, seed
        self._dim = head_dim(implementation, 1)

    def rows(self, first: int, count: int, device: str) -> Rows:
        """v_a is the upper half of the number, v_b the lower one."""
        number = spread(first, count, self._count, self._seed, device)
        halves = torch.stack([number >> 16, number & 0xFFFF], dim=1)
        v = (halves - ((halves >> 15) << 16)).to(torch.int16).view(torch.float16)[:, :, None]
        s = torch.tensor([0.0, self._gap], device=device).expand(count, 2)
        return Rows("merge_state", self._base, filled_to(v, self._dim), s)


@dataclass(frozen=True)
class Kind:
    """What the rows of a batch of `Random` share."""

    operation: str
    dtype: str
    base: int | str
    count: int
    lse: str
    value: str


class Random:
    """Rows of every regime of the properties, batch after batch: operations, dtypes, bases and N in turn."""

    total = None

    def __init__(self, implementation: Implementation, seed: int, batch: int = 1 << 14) -> None:
        self.batch = batch
        self._seed, self._dim = seed, head_dim(implementation, 2)
        most = implementation.max_states or 40
        kinds = [
            Kind(operation, dtype, base, count, lse, value)
            for operation, dtype, base, lse, value in itertools.product(
                implementation.operations, implementation.dtypes, implementation.bases, LSE_REGIMES, V_REGIMES
            )
            for count in ((2,) if operation in TWO_STATES else tuple(n for n in (1, 3, 8, 40) if n <= most))
        ]
        self._kinds = [kinds[i] for i in numpy.random.default_rng(seed).permutation(len(kinds))]

    def rows(self, first: int, count: int, device: str) -> Rows:
        """One batch, all of a kind."""
        number = first // self.batch
        kind = self._kinds[number % len(self._kinds)]
        random, shape = numpy.random.default_rng((self._seed, number)), (count, kind.count, 1)
        s = LSE_REGIMES[kind.lse](random, shape)[:, :, 0] * (math.log(2.0) if kind.base == "e" else 1.0)
        most = largest_v(DTYPES[kind.dtype], kind.count)
        v = numpy.clip(V_REGIMES[kind.value](random, (*shape, self._dim), most)[:, :, 0], -most, most)
        to_s = torch.from_numpy(s.astype(numpy.float32)).to(device)
        return Rows(kind.operation, kind.base, torch.from_numpy(v).to(DTYPES[kind.dtype]).to(device), to_s)
