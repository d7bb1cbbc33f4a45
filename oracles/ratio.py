"""Error over bound, element by element, and by class first: NaN, infinities, then numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oracles.bounds import Bound
from oracles.exact import Exact
from oracles.precision import context


def ratio(right: Exact, allowed: Bound, v: Sequence[float], s: float) -> tuple[list[float], float]:
    """|error| / bound of each component of v, and of s. inf where the class is wrong, 0 where the class is all there is.

    A row that is NaN by policy wants NaN everywhere; a component that is NaN in an ordinary row wants anything that is not
    finite; s = -inf wants -inf. No error is 0, whatever the bound.
    """
    ctx = context()
    if ctx.isnan(right.s):
        return [_class_only(math.isnan(x)) for x in v], _class_only(math.isnan(s))
    ratios = [_component(star, bound, x) for star, bound, x in zip(right.v, allowed.v, v, strict=True)]
    return ratios, _class_only(s == -math.inf) if right.s == ctx.ninf else _finite(right.s, allowed.s, s)


def _class_only(matches: bool) -> float:
    return 0.0 if matches else math.inf


def _component(star: Any, bound: Any, got: float) -> float:
    return _class_only(not math.isfinite(got)) if context().isnan(star) else _finite(star, bound, got)


def _finite(star: Any, bound: Any, got: float) -> float:
    if not math.isfinite(got):
        return math.inf
    ctx = context()
    error = abs(ctx.mpf(got) - star)
    if error == 0 or bound == ctx.inf:
        return 0.0
    return math.inf if bound == 0 else float(error / bound)
