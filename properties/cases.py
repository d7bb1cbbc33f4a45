"""Cases: recipes for states, small enough to print on a line, that build the same tensors every time.

A recipe says the regime or the very numbers, not the tensors: Hypothesis draws it, shrinks it and prints it, and a patch
that records it stays one line long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy
import torch
from numpy.random import PCG64, Generator

from properties import call, record, subject
from properties.regimes import LSE_REGIMES, V_REGIMES, Array, plain_lses, plain_values

GARBAGE = {"zero": 0.0, "seven": 7.0, "big": None, "nan": math.nan, "inf": math.inf}

State = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class States:
    """N = count states for each of S = rows positions and H = heads heads, of head size D = dim.

    s and v are each a regime's name, or the numbers themselves, one per state and used again from the start if there
    are fewer: then all rows are alike and v is constant along D. base is the base of s. garbage, a key of GARBAGE, says
    what the v of an empty state holds ("as given": what v says). Seed 0 makes plain numbers of a regime where it has no special ones.
    """

    dtype: str = "float32"
    base: int | str = 2
    rows: int = 1
    heads: int = 1
    dim: int = 1
    count: int = 2
    s: str | tuple[float, ...] = "near"
    v: str | tuple[float, ...] = "ordinary"
    garbage: str = "zero"
    seed: int = 0

    def tensors(self) -> State:
        """(v [S, N, H, D] in dtype, s float32 [S, N, H] in base), contiguous, on the subject's device."""
        record.regime("s " + (self.s if isinstance(self.s, str) else "explicit"))
        record.regime("v " + (self.v if isinstance(self.v, str) else "explicit"))
        s = self._lses()
        v = self._values()
        if self.garbage != "as given":
            junk = GARBAGE[self.garbage]
            empty = torch.isneginf(s)[..., None].expand_as(v)
            v[empty] = largest_v(v.dtype, self.count) if junk is None else junk
        return v.to(subject.device()), s.to(subject.device())

    def _lses(self) -> torch.Tensor:
        shape = (self.rows, self.count, self.heads)
        if isinstance(self.s, tuple):
            s = _cycled(self.s, self.count)[None, :, None] + numpy.zeros(shape)
        elif self.seed == 0 and self.s == "near":
            s = plain_lses(shape)
        else:
            s = LSE_REGIMES[self.s](self._random(0), shape)
        if self.base == "e" and not isinstance(self.s, tuple):
            s = s * math.log(2.0)
        return torch.from_numpy(s.astype(numpy.float32))

    def _values(self) -> torch.Tensor:
        shape = (self.rows, self.count, self.heads, self.dim)
        dtype: torch.dtype = getattr(torch, self.dtype)
        most = largest_v(dtype, self.count)
        if isinstance(self.v, tuple):
            v = _cycled(self.v, self.count)[None, :, None, None] + numpy.zeros(shape)
        elif self.seed == 0 and self.v == "ordinary":
            v = plain_values(shape)
        else:
            v = numpy.clip(V_REGIMES[self.v](self._random(1), shape, most), -most, most)
        return torch.from_numpy(v).to(dtype)

    def _random(self, stream: int) -> Generator:
        return Generator(PCG64([self.seed, stream]))


@dataclass(frozen=True)
class Problem:
    """States, and the operation that merges them. The two-state operations take the first two states."""

    operation: str = "merge_state"
    states: States = States()

    @property
    def base(self) -> int | str:
        """The base of s, 2 or "e"."""
        return self.states.base

    def tensors(self) -> State:
        """The states' tensors, (v [S, N, H, D], s [S, N, H])."""
        return self.states.tensors()

    def merged(self, v: torch.Tensor, s: torch.Tensor) -> State:
        """(v [S, H, D], s [S, H]): what the operation makes of the states v [S, N, H, D], s [S, N, H]."""
        return call.merge(self.operation, v, s, self.base)


@dataclass(frozen=True)
class Segments:
    """A ragged problem: segments of `lengths` states each, `before` and `after` states outside all of them."""

    states: States = States()
    lengths: tuple[int, ...] = (2,)
    before: int = 0
    after: int = 0
    wide_index: bool = False

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(v [nnz, H, D], s [nnz, H], indptr [S + 1]); the states outside the segments are NaN."""
        items = self.before + sum(self.lengths) + self.after
        v, s = replace(self.states, rows=1, count=items).tensors()
        v, s = v[0], s[0]
        first, last = self.before, items - self.after
        for tensor in (v, s):
            tensor[:first] = math.nan
            tensor[last:] = math.nan
        ends = numpy.cumsum([self.before, *self.lengths])
        index = torch.int64 if self.wide_index else torch.int32
        return v, s, torch.tensor(ends, dtype=index, device=v.device)


def largest_v(dtype: torch.dtype, count: int) -> float:
    """The largest |v| that cases hold: a float32 sum of `count` of them, or a difference of two, stays finite."""
    most = torch.finfo(dtype).max
    return most if dtype == torch.float16 else most / (4.0 * max(count, 1))


def _cycled(numbers: tuple[float, ...], count: int) -> Array:
    return numpy.array([numbers[i % len(numbers)] for i in range(count)], dtype=numpy.float64)
