"""The float64 screen: the ratio of error over bound for many rows at once, sure but for a thin band around 1.

float64 is 2^29 times finer than the float32 that is judged, so a screened ratio near 1 is off by far less than GUARD
(derived in docs/numerics.md). Only rows within the band need mpmath. The formulas are those of oracles/exact.py,
oracles/bounds.py and oracles/ratio.py. They are written in PyTorch without a branch on what the numbers are, so that a
sweep has them on its own device, compiled into one kernel.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy
import torch
from numpy.typing import NDArray

from oracles.bounds import DEEPEST, FLUSH, FLUSHED_GAP, LEAST, UNIT, Arithmetic, U
from oracles.exact import natural_unit

Array = NDArray[numpy.float64]

GUARD = 2.0**-24
_NO_WEIGHT = -760.0  # e to this is 0 in float64
_MOST_ELEMENTS = 1 << 18  # of v in one pass: what it works on fits the cache


@dataclass(frozen=True)
class Ratios:
    """Error over bound: v [R, D] and s [R]; inf where the class of a result (NaN, infinite) is wrong."""

    v: Array
    s: Array


def screen(v: Array, s: Array, v_out: Array, s_out: Array, dtype: str, arithmetic: Arithmetic) -> Ratios:
    """The ratios of R rows: states v [R, N, D] and s [R, N], results v_out [R, D] and s_out [R], exact values in float64.

    s is in the base of `arithmetic`; v_out was stored in `dtype`. R, N and D may be 0. Raises ValueError for a base that is
    neither 2 nor "e".
    """
    rows, count, dim = v.shape
    step = max(1, _MOST_ELEMENTS // max(1, count * dim))
    ratios = Ratios(numpy.empty((rows, dim)), numpy.empty(rows))
    # copies: PyTorch shares no memory that may not be written
    states_v, states_s, of_v, of_s = (torch.from_numpy(numpy.array(array)) for array in (v, s, v_out, s_out))
    for first in range(0, rows, step):
        part = slice(first, first + step)
        told = screen_tensors(states_v[part], states_s[part], of_v[part], of_s[part], dtype, arithmetic)
        ratios.v[part], ratios.s[part] = told[0].numpy(), told[1].numpy()
    return ratios


def undecided(ratios: Ratios) -> NDArray[numpy.bool_]:
    """The rows [R] that float64 cannot decide: a ratio within GUARD of 1."""
    near_v, near_s = numpy.abs(ratios.v - 1.0) <= GUARD, numpy.abs(ratios.s - 1.0) <= GUARD
    rows: NDArray[numpy.bool_] = numpy.logical_or.reduce(near_v, axis=1) | near_s
    return rows


def screen_tensors(
    v: torch.Tensor, s: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, dtype: str, arithmetic: Arithmetic
) -> tuple[torch.Tensor, torch.Tensor]:
    """`screen` on float64 tensors of any one device: (v ratios [R, D], s ratios [R])."""
    natural_unit(arithmetic.base)  # refuses an unknown base
    errors = torch.tensor(chain_errors(s.shape[1], arithmetic), dtype=torch.float64, device=v.device)
    return evaluate(v, s, v_out, s_out, errors, dtype, arithmetic.base, arithmetic.log_error)


def evaluate(
    v: torch.Tensor,
    s: torch.Tensor,
    v_out: torch.Tensor,
    s_out: torch.Tensor,
    errors: torch.Tensor,
    dtype: str,
    base: int | str,
    log_error: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The arithmetic of `screen_tensors`, on its tensors, which `torch.compile` takes whole.

    errors: float64 [N + 1], those of `chain_errors`. base: 2 or "e". log_error: that of the `Arithmetic`.
    """
    unit = 1.0 if base == "e" else math.log(2.0)
    zero, inf = torch.zeros((), dtype=torch.float64, device=v.device), math.inf
    poisoned = (s.isnan() | s.isposinf()).any(dim=1)  # [R]
    filled = s.isfinite()  # [R, N]
    n = filled.sum(dim=1)  # [R]
    empty = ~poisoned & (n == 0)
    # amax refuses a dimension of size 0
    m = torch.where(filled, s, -inf).amax(dim=1) if s.shape[1] else s.new_full(s.shape[:1], -inf)
    m = torch.where(n == 0, zero, m)
    gap = torch.where(filled, s - m[:, None], zero)  # [R, N]
    # not exp2: PyTorch's gives the last numbers of an array other bits than the first
    w = torch.exp((gap * unit).clamp(min=_NO_WEIGHT))
    w = torch.where(filled, w, zero)
    d = torch.where(n == 0, 1.0, _summed(w))
    p = w / d[:, None]
    pt = p * _weight_errors(gap * -unit, errors[n], base)
    drift = _summed(pt)

    sound = v.isfinite()
    broken = (filled[:, :, None] & ~sound).any(dim=1)  # [R, D]
    v = torch.where(sound & filled[:, :, None], v, zero)  # an empty state's v is not looked at
    star = _weighted(p, v)  # [R, D]
    distance = (v - star[:, None]).abs()  # [R, N, D]
    bound = _weighted(pt, distance) / (1.0 - drift).clamp(min=0.0)[:, None]
    bound = bound + U * ((n + 1)[:, None] * _weighted(p, v.abs()) + (n + 3)[:, None] * star.abs())
    bound = bound + FLUSH * (1.0 + (3 * n - 2) / d)[:, None]
    lost = filled & (gap < FLUSHED_GAP[base])
    bound = bound + FLUSH * _weighted(lost.double(), distance)
    if dtype != "float32":
        bound = bound + UNIT[dtype] * (star.abs() + bound) + LEAST[dtype] / 2.0
    log_d = d.log() / unit
    s_bound = -torch.log1p(-(drift + n * U).clamp(max=1.0)) / unit + log_error * (1.0 + log_d)
    s_bound = s_bound + U * (m + log_d).abs()

    v_ratio = _finite((v_out - star).abs() / bound, v_out)
    s_ratio = _finite(((s_out - m) - log_d).abs() / s_bound, s_out)  # in this order the large parts cancel exactly
    v_ratio = torch.where(broken, _class_only(~v_out.isfinite()), v_ratio)
    v_ratio = torch.where(empty[:, None], _class_only(v_out == 0.0), v_ratio)
    v_ratio = torch.where(poisoned[:, None], _class_only(v_out.isnan()), v_ratio)
    s_ratio = torch.where(empty, _class_only(s_out.isneginf()), s_ratio)
    s_ratio = torch.where(poisoned, _class_only(s_out.isnan()), s_ratio)
    return v_ratio, s_ratio


def _weight_errors(depth: torch.Tensor, chain: torch.Tensor, base: int | str) -> torch.Tensor:
    """t [R, N] of weights that lie `depth` [R, N] natural units below the largest; chain [R] is what its errors add."""
    per_unit = 2.0 if base == "e" else 1.0
    return torch.expm1(per_unit * U * depth.clamp(max=DEEPEST) + chain[:, None])


@functools.lru_cache(256)
def chain_errors(most: int, arithmetic: Arithmetic) -> tuple[float, ...]:
    """What the chain of exponentials and rescalings adds to log(1 + t), for 0 to `most` non-empty states."""
    chains = [arithmetic.chain(count) for count in range(most + 1)]
    return tuple(k * math.log1p(arithmetic.exp_error) + rescalings * math.log1p(U) for k, rescalings in chains)


def _weighted(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """sum_i weights_i values_i: [R, N] and [R, N, D] to [R, D]."""
    return _summed(weights[:, :, None] * values)


def _summed(terms: torch.Tensor) -> torch.Tensor:
    """The sum over N of [R, N, ...], half onto half: in an order that depends on N alone, whatever rows are beside."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        halves = terms[:, :half] + terms[:, half : 2 * half]
        terms = torch.cat([halves, terms[:, 2 * half :]], dim=1) if terms.shape[1] % 2 else halves
    return terms.sum(dim=1)


def _finite(ratio: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The ratio where the result is a number, inf where it is not; no error is 0."""
    return torch.where(out.isfinite(), torch.where(ratio.isnan(), 0.0, ratio), math.inf)


def _class_only(matches: torch.Tensor) -> torch.Tensor:
    return torch.where(matches, 0.0, math.inf).double()
