"""Attention over a set of keys, straight from the definition: no maximum is subtracted, for an mpf does not overflow.

    s = log_b sum_j exp(x_j);  v = sum_j exp(x_j) v_j / sum_j exp(x_j)

It shares no formula with oracles/exact.py, so that each can be held against the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracles.exact import Exact
from oracles.precision import PRECISION, context


def attention(
    scores: Sequence[Any],
    values: Sequence[Sequence[Any]],
    base: int | str = 2,
    precision: int = PRECISION,
    dim: int | None = None,
) -> Exact:
    """The state of one query over some keys: natural-log scores x_j and values v_j [D] in, (v, s in base `base`) out.

    A score of -inf is a masked key: its value is not looked at. No keys left give (0, -inf); where there are none at
    all, dim must say D, else ValueError. A score that is NaN or +inf makes everything NaN, a value that is not finite
    its component.
    """
    ctx = context(precision)
    if dim is None:
        if not len(values):
            raise ValueError("values is empty; without keys dim must say the head size D")
        dim = len(values[0])
    numerators = [ctx.zero] * dim
    denominator = ctx.zero
    for score, value in zip(scores, values, strict=True):
        probability = ctx.exp(ctx.mpf(score))  # unnormalised
        if not ctx.isfinite(probability):
            return Exact((ctx.nan,) * dim, ctx.nan)
        if probability == 0:
            continue
        denominator += probability
        for d in range(dim):
            component = ctx.mpf(value[d])
            numerators[d] += probability * component if ctx.isfinite(component) else ctx.nan
    if denominator == 0:
        return Exact((ctx.zero,) * dim, ctx.ninf)
    if base not in (2, "e"):
        raise ValueError(f"base is {base!r}; it must be 2 or 'e'")
    s = ctx.log(denominator) if base == "e" else ctx.log(denominator, 2)
    return Exact(tuple(x / denominator for x in numerators), s)
