"""Correct implementations of different form: the suite has to let every one of them pass."""

from __future__ import annotations

from implementations.variants import (
    float64_inside,
    lerp,
    natural_log,
    normalise_first,
    online,
    pairwise_tree,
    plain_torch,
    sorted_by_s,
)
from mergelaws.implementation import Implementation

_MODULES = (online, pairwise_tree, natural_log, float64_inside, normalise_first, lerp, sorted_by_s, plain_torch)

VARIANTS: dict[str, Implementation] = {module.implementation.name: module.implementation for module in _MODULES}
