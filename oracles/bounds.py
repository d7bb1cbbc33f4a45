"""How far a float32 implementation may be from the exact merge: the bounds of docs/numerics.md, in its symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oracles.exact import Exact, Weights, merge, natural_unit, weigh
from oracles.precision import context

UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}  # relative error of rounding to the dtype
LEAST = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}  # least subnormal
U = 2.0**-24
FLUSH = 2.0**-126  # the least normal float32: what is below may be taken for zero
FLUSHED_GAP = {2: -125.0, "e": -125.0 * math.log(2.0)}  # weights whose gap is below this may come out below FLUSH
DEEPEST = 89.0  # natural gaps beyond this weigh less than 2^-128: FLUSH is all of their error


@dataclass(frozen=True)
class Arithmetic:
    """What an implementation computes with.

    base: of s, 2 or "e". exp_error: the relative error of its exponential. log_error: the error of its logarithm L, as a
    fraction of 1 + L. exp_chain: how many exponentials it multiplies to weigh a state; None means one less than there
    are non-empty states, as many as one pass needs.
    """

    base: int | str = 2
    exp_error: float = 2.0**-22
    log_error: float = 2.0**-22
    exp_chain: int | None = None

    def chain(self, states: int) -> tuple[int, int]:
        """(K, R) for that many non-empty states: exponentials multiplied to weigh one, and rescalings of the sums."""
        k = max(1, states - 1) if self.exp_chain is None else self.exp_chain
        return k, 0 if k == 1 else max(k - 1, states - 2)


@dataclass(frozen=True)
class Bound:
    """The largest allowed error of v, D numbers, and of s, all mpf."""

    v: tuple[Any, ...]
    s: Any


def local(
    v: Sequence[Sequence[Any]], s: Sequence[Any], dtype: str, arithmetic: Arithmetic, dim: int | None = None
) -> Bound:
    """The bound of one merge of the very states given: N rows of D numbers, N log-sum-exps; v is stored in `dtype`.

    dim: D, needed where N = 0. No error is allowed to a row of empty states. Where a value has to be NaN or not finite,
    the bound is infinite and means nothing. Assumes that sum w_i |v_i| stays below the largest float32.
    """
    ctx = context()
    right = merge(v, s, arithmetic.base, dim=dim)
    row = weigh(s, arithmetic.base)
    if row is None:
        return Bound((ctx.inf,) * len(right.v), ctx.inf)
    n = len(row.filled)
    if n == 0:
        return Bound((ctx.zero,) * len(right.v), ctx.zero)
    p = [w / row.d for w in row.w]
    pt = [share * error for share, error in zip(p, _weight_errors(row, arithmetic), strict=True)]
    drift = ctx.fsum(pt)
    lost = [float(gap) < FLUSHED_GAP[arithmetic.base] for gap in row.gaps]
    underflow = FLUSH * (1 + (3 * n - 2) / row.d)

    def component(k: int) -> Any:
        column, star = [ctx.mpf(v[i][k]) for i in row.filled], right.v[k]
        if not ctx.isfinite(star) or drift >= 1:
            return ctx.inf
        distances = [abs(value - star) for value in column]
        a = ctx.fdot(p, [abs(value) for value in column])
        error = ctx.fdot(pt, distances) / (1 - drift) + U * ((n + 1) * a + (n + 3) * abs(star))
        error += underflow + FLUSH * ctx.fsum(far for far, gone in zip(distances, lost, strict=True) if gone)
        return error if dtype == "float32" else error + UNIT[dtype] * (abs(star) + error) + LEAST[dtype] / 2

    unit = natural_unit(arithmetic.base)
    sum_error = drift + n * U
    s_error = -ctx.log1p(-sum_error) / unit if sum_error < 1 else ctx.inf
    s_error += arithmetic.log_error * (1 + row.log_d) + U * abs(right.s)
    return Bound(tuple(component(k) for k in range(len(right.v))), s_error)


def rounded(state: Exact, dtype: str) -> Bound:
    """The error of storing an exact state, v in `dtype` and s in float32: u_T |v| + eta_T / 2 and u |s| + eta / 2."""
    ctx = context()
    if state.s == ctx.ninf:
        return Bound((ctx.zero,) * len(state.v), ctx.zero)
    return Bound(tuple(_rounding(x, dtype) for x in state.v), _rounding(state.s, "float32"))


def inherited(states: Sequence[Exact], errors: Sequence[Bound], base: int | str) -> Bound:
    """What the exact merge of `states` inherits if each input is off by up to its entry of `errors`.

    With q_i = b^(b_s,i) - 1, weight i is off by a factor in [1 / (1 + q_i), 1 + q_i]; S = sum p_j / (1 + q_j) is the least
    that the weights can then sum to, and P_i the largest share that state i can then have.

        v: sum P_i b_v,i + min( sum p_i q_i |v_i - v*| / S, max |v_i - v*| )        s: log_b sum p_i (1 + q_i)

    Never more than the largest b_s,i in s. Empty states have no error to pass on. Raises ValueError if there are no
    states.
    """
    ctx = context()
    right = merge([state.v for state in states], [state.s for state in states], base)
    row = weigh([state.s for state in states], base)
    if row is None:
        return Bound((ctx.inf,) * len(right.v), ctx.inf)
    if not row.filled:
        return Bound((ctx.zero,) * len(right.v), ctx.zero)
    unit = natural_unit(base)
    p = [w / row.d for w in row.w]
    q = [ctx.expm1(errors[i].s * unit) for i in row.filled]
    least = [share / (1 + qi) for share, qi in zip(p, q, strict=True)]
    least_sum = ctx.fsum(least)
    most = [share * (1 + qi) for share, qi in zip(p, q, strict=True)]
    largest_shares = [high / (high + (least_sum - low)) for high, low in zip(most, least, strict=True)]
    pq = [share * qi for share, qi in zip(p, q, strict=True)]

    def component(k: int) -> Any:
        if not ctx.isfinite(right.v[k]):
            return ctx.inf
        distances = [abs(states[i].v[k] - right.v[k]) for i in row.filled]
        passed = ctx.fdot(largest_shares, [errors[i].v[k] for i in row.filled])
        return passed + min(ctx.fdot(pq, distances) / least_sum, max(distances))

    return Bound(tuple(component(k) for k in range(len(right.v))), ctx.log1p(ctx.fsum(pq)) / unit)


def add(a: Bound, b: Bound) -> Bound:
    """The sum of two bounds of the same D."""
    return Bound(tuple(x + y for x, y in zip(a.v, b.v, strict=True)), a.s + b.s)


def _weight_errors(row: Weights, arithmetic: Arithmetic) -> list[Any]:
    """t_i, the largest relative error of weight i: differences, exponentials and, where there is a chain, rescalings."""
    ctx = context()
    k, rescalings = arithmetic.chain(len(row.filled))
    per_unit = 2 if arithmetic.base == "e" else 1  # in base e the scale by log2 e rounds as well
    unit = natural_unit(arithmetic.base)
    common = k * ctx.log1p(arithmetic.exp_error) + rescalings * ctx.log1p(U)
    return [ctx.expm1(per_unit * U * min(-gap * unit, DEEPEST) + common) for gap in row.gaps]


def _rounding(x: Any, dtype: str) -> Any:
    ctx = context()
    return UNIT[dtype] * abs(x) + ctx.mpf(LEAST[dtype]) / 2 if ctx.isfinite(x) else ctx.inf
