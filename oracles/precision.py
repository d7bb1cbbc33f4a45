"""The arithmetic of the oracles: mpmath, in contexts of their own, so that nobody's global precision matters."""

from __future__ import annotations

import functools
from typing import Any

from mpmath import MPContext

PRECISION = 160  # bits: the difference of any two float32 below 2^11 is exact (11 + 149 bits)


@functools.cache
def context(precision: int = PRECISION) -> Any:
    """The mpmath context of `precision` bits. It is shared: leave its precision as it is."""
    private = MPContext()
    private.prec = precision
    return private
