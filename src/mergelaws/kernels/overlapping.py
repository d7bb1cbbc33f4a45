"""Overlapping a launch with the one before it: it is set up while the other still runs, and waits for what it wrote.

CUDA calls it programmatic dependent launch. Every kernel here that is launched so waits, in all its programs and before it
touches memory, until the launch before has ended and its writes are seen. So one launch has ended only when all before it
have, and whatever follows, of this project or not, finds the order of the stream as it always is.

It takes compute capability 9.0. Elsewhere, and under the interpreter, a launch begins when the one before has ended.
"""

from __future__ import annotations

import functools

import torch
import triton.language as tl

from mergelaws.backend import INTERPRETED
from mergelaws.kernels.inlining import inlined


@functools.cache
def overlaps_on(device: int) -> bool:
    """Whether launches on the CUDA device of this index may overlap."""
    return not INTERPRETED and torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (9, 0)


@inlined
def allow_successor(OVERLAPS: tl.constexpr):
    """From here on, once all programs have come here, the next launch may take the room that is free."""
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()


@inlined
def await_predecessor(OVERLAPS: tl.constexpr):
    """Waits until the launch before has ended and its writes are seen."""
    if OVERLAPS:
        tl.extra.cuda.gdc_wait()
