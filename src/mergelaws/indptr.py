"""What the host knows of the values of indptr, read back once for a tensor and its version.

Reading waits for the device. The layers of a decode step share an indptr, so they wait once. PyTorch counts a tensor's
version up whenever it writes to it; what writes to its memory unseen (another library's kernel, a replayed graph) must not
expect to be checked again. The kernels are right whatever indptr holds, and give (NaN, NaN) for a bad segment.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy
import torch

from mergelaws.kernels.tuning import chunk_of


class Ends(NamedTuple):
    """Of an indptr that does not decrease: its last entry, its longest segment, and how many chunks the segments have."""

    last: int
    longest: int
    chunks: int


class _Known(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    version: int
    ends: Ends


_KNOWN: dict[int, _Known] = {}  # by the tensor's id


def ends_of(indptr: torch.Tensor, items: int) -> Ends:
    """The ends of indptr, which must not decrease and must stay within [0, nnz]; reads them if they are not known."""
    known = _KNOWN.get(id(indptr))
    if (
        known is not None
        and known.tensor() is indptr
        and not indptr.is_inference()
        and known.version == indptr._version
    ):
        ends = known.ends
    else:
        ends = _read(indptr)
        _remember(indptr, ends)
    if ends.last > items:
        raise ValueError(f"indptr ends at {ends.last}; it must end at {items} or below, the number of rows of v")
    return ends


def last_known(indptr: torch.Tensor) -> Ends | None:
    """The ends of indptr when they were last read; they may have changed since. Reads nothing."""
    known = _KNOWN.get(id(indptr))
    return known.ends if known is not None and known.tensor() is indptr else None


def _read(indptr: torch.Tensor) -> Ends:
    ends = indptr.detach().cpu().numpy().astype(numpy.int64)
    falls = numpy.flatnonzero(ends[1:] < ends[:-1])
    if falls.size:
        at = int(falls[0])
        raise ValueError(f"indptr falls from {ends[at]} to {ends[at + 1]} at entry {at + 1}; it must not decrease")
    if ends[0] < 0:
        raise ValueError(f"indptr starts at {ends[0]}; it must start at 0 or above")
    counts = numpy.diff(ends)
    longest = int(counts.max(initial=0))
    return Ends(int(ends[-1]), longest, _chunks_in(counts, longest))


def _chunks_in(counts: numpy.typing.NDArray[numpy.int64], longest: int) -> int:
    total, least, chunk = 0, 0, chunk_of(1)
    while least < longest:
        here = counts[(counts > least) & (counts <= chunk * chunk)]
        total += int((-(-here // chunk)).sum())
        least, chunk = chunk * chunk, 2 * chunk
    return total


def _remember(indptr: torch.Tensor, ends: Ends) -> None:
    if indptr.is_inference():  # it has no version
        return
    number = id(indptr)
    _KNOWN[number] = _Known(weakref.ref(indptr, lambda _: _KNOWN.pop(number, None)), indptr._version, ends)
