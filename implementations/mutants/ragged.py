"""Faults of ragged merges: where segments begin, end, and what lies outside of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class SegmentsBeginOneLate(TorchMerge):
    """The first state of every segment is skipped: indptr is off by one at the beginning.

    Source: flashinfer#440 (the class).
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        return starts + (lengths > 0), (lengths - 1).clamp(min=0)


class SegmentsEndOneLate(TorchMerge):
    """Every segment that is not empty also reads the first state of the next: indptr is off by one at the end.

    Source: flashinfer#942 (the class).
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        return starts, lengths + ((lengths > 0) & (starts + lengths < rows))


class EmptySegmentsSkipped(TorchMerge):
    """An empty segment gets no row: the results behind it move up by one.

    Source: flashinfer#440.
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        order = (lengths == 0).to(torch.uint8).argsort(stable=True)
        return starts[order], lengths[order]


class EmptySegmentReadsAState(TorchMerge):
    """The loop reads before it asks: an empty segment gets the first state of the next.

    Source: flashinfer#440.
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        return starts, torch.where((lengths == 0) & (starts < rows), 1, lengths)


class RowsBeforeTheFirstRead(TorchMerge):
    """The first segment begins at row 0 instead of indptr[0].

    Source: flashinfer#942.
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        indptr = torch.cat((torch.zeros_like(indptr[:1]), indptr[1:])) if len(indptr) > 1 else indptr
        return super().segments(indptr, rows)


class RowsBehindTheLastRead(TorchMerge):
    """The last segment ends with the buffer instead of at indptr[-1].

    Source: flashinfer#942.
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        indptr = torch.cat((indptr[:-1], torch.full_like(indptr[:1], rows))) if len(indptr) > 1 else indptr
        return super().segments(indptr, rows)


class OutsideRowsTimesZero(TorchMerge):
    """Rows outside of a segment get the weight 0 and are multiplied: NaN anywhere in the buffer is everywhere.

    Source: flashinfer#942, flashinfer#4975.
    """

    def merge_segments(self, v: Tensor, s: Tensor, starts: Tensor, lengths: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_segments(v, s, starts, lengths, base)
        leak = (~v.isfinite()).any(dim=0)  # [H, D]
        return v_new.masked_fill(leak, math.nan), s_new


class IndptrTakenFromZero(TorchMerge):
    """Only the lengths of indptr are used, as if it began with 0.

    Source: flashinfer#942 (the class).
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        return super().segments(indptr - indptr[0], rows)


class RaggedMaximumOfTheBatch(TorchMerge):
    """All segments share one maximum: a segment far below the others underflows.

    Source: flash-attention#176 (rows mixed).
    """

    def merge_segments(self, v: Tensor, s: Tensor, starts: Tensor, lengths: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_segments(v, s, starts, lengths, base)
        finite = s[s.isfinite()]
        lost = s_new < finite.amax() - 126.0 if len(finite) else s_new.isnan()
        lost &= s_new.isfinite()
        return v_new.masked_fill(lost[..., None], math.nan), s_new.masked_fill(lost, -math.inf)


class LongSegmentsCut(TorchMerge):
    """Of a segment longer than 32 states the rest is not read.

    Source: flashinfer#4573 (review: one split per lane).
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        return starts, lengths.clamp(max=32)


class IndptrReadAsInt32(TorchMerge):
    """An int64 indptr is read through an int32 pointer: every second entry is the upper half, 0.

    Source: mutation of the index type; flashinfer takes int32 alone.
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        words = indptr.contiguous().view(torch.int32)[: len(indptr)]
        starts, lengths = super().segments(words, rows)
        return starts, lengths.clamp(min=0)


class SegmentsSortedByLength(TorchMerge):
    """Segments are sorted by length to balance the work, and the results stay in that order.

    Source: flash-attention#176 (rows mixed).
    """

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr, rows)
        order = lengths.argsort(descending=True, stable=True)
        return starts[order], lengths[order]
