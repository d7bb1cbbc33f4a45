"""The exact merge of given states.

    m = max s_i;  w_i = b^(s_i - m);  v = sum w_i v_i / sum w_i;  s = m + log_b sum w_i        (b = 2 or e)

with the special values of docs/semantics.md: an empty state (s = -inf) has no weight and its v is not looked at, NaN or
+inf in s makes the whole row NaN, and NaN or inf in the v of another state makes that component NaN, which stands for
"not finite".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oracles.precision import PRECISION, context


@dataclass(frozen=True)
class Exact:
    """One row: v, D numbers, and s, all mpf. NaN in v stands for "not finite"; s may be NaN or -inf."""

    v: tuple[Any, ...]
    s: Any


@dataclass(frozen=True)
class Weights:
    """The weights of one row's non-empty states.

    filled: which states these are. m: the largest s_i. gaps: s_i - m, in the base of s. w: b^(s_i - m), the largest is 1.
    d: the sum of w. log_d: its logarithm, in the base of s.
    """

    filled: tuple[int, ...]
    m: Any
    gaps: tuple[Any, ...]
    w: tuple[Any, ...]
    d: Any
    log_d: Any


def merge(
    v: Sequence[Sequence[Any]],
    s: Sequence[Any],
    base: int | str = 2,
    precision: int = PRECISION,
    dim: int | None = None,
) -> Exact:
    """The exact merge of N states of one row: v, N sequences of D numbers (float or mpf); s, N numbers in base `base`.

    base: 2 or "e". dim: D, needed where N = 0. Raises ValueError for another base, or if N = 0 and there is no dim.
    """
    ctx = context(precision)
    if dim is None:
        if not len(v):
            raise ValueError("v is empty; without states dim must say the head size D")
        dim = len(v[0])
    row = weigh(s, base, precision)
    if row is None:
        return Exact((ctx.nan,) * dim, ctx.nan)
    if not row.filled:
        return Exact((ctx.zero,) * dim, ctx.ninf)
    states = [[ctx.mpf(x) for x in v[i]] for i in row.filled]
    return Exact(
        tuple(_mean(ctx, row, [state[k] for state in states]) for k in range(dim)),
        row.m + row.log_d,
    )


def weigh(s: Sequence[Any], base: int | str, precision: int = PRECISION) -> Weights | None:
    """The weights of the states with log-sum-exps s [N], in base `base`; None if a NaN or +inf makes the row NaN."""
    ctx = context(precision)
    unit = natural_unit(base, precision)
    lses = [ctx.mpf(x) for x in s]
    if any(ctx.isnan(x) or x == ctx.inf for x in lses):
        return None
    filled = tuple(i for i, x in enumerate(lses) if x != ctx.ninf)
    m = max((lses[i] for i in filled), default=ctx.ninf)
    gaps = tuple(lses[i] - m for i in filled)
    w = tuple(ctx.exp(gap) if base == "e" else ctx.power(2, gap) for gap in gaps)
    heaviest = gaps.index(0) if filled else 0
    rest = ctx.fsum(w[:heaviest] + w[heaviest + 1 :])  # d - 1, with the digits that d has no room for
    return Weights(filled, m, gaps, w, 1 + rest, ctx.log1p(rest) / unit)


def natural_unit(base: int | str, precision: int = PRECISION) -> Any:
    """The natural logarithm of the base: a difference in s times this is one in natural units. Raises ValueError."""
    if base not in (2, "e"):
        raise ValueError(f"base is {base!r}; it must be 2 or 'e'")
    ctx = context(precision)
    return ctx.one if base == "e" else ctx.ln2 + 0


def _mean(ctx: Any, row: Weights, column: list[Any]) -> Any:
    """The weighted mean of one component, NaN if it is not finite in some state."""
    if not all(ctx.isfinite(x) for x in column):
        return ctx.nan
    return ctx.fdot(row.w, column) / row.d
