"""Faults of the maximum that is subtracted before the exponential."""

from __future__ import annotations

from torch import Tensor

from implementations.torch_reference import TorchMerge


class NoMaximum(TorchMerge):
    """Nothing is subtracted: 2^s overflows from s = 128 on and underflows below -149.

    Source: TransformerEngine#716.
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s.new_zeros(s[:, 0].shape)


class MaximumOfTheFirst(TorchMerge):
    """The first s is subtracted instead of the largest: overflows in one order of the states only.

    Source: ring-flash-attention#30.
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s[:, 0]


class MaximumOfTheLast(TorchMerge):
    """The last s is subtracted instead of the largest.

    Source: ring-flash-attention#30, the other order.
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s[:, -1]


class MinimumForMaximum(TorchMerge):
    """The smallest s is subtracted: right until two states are 128 apart.

    Source: mutation of the formula (semantics, section 1).
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s.amin(dim=1)


class MaximumStartsAtZero(TorchMerge):
    """The running maximum starts at 0 instead of -inf: a row whose s are all below -150 has no weight left.

    Source: burn#4697 (a floor under the maximum), here with the floor 0.
    """

    def maximum(self, s: Tensor) -> Tensor:
        return super().maximum(s).clamp(min=0.0)


class MaximumFlooredAtMinus1e4(TorchMerge):
    """The maximum is held above -1e4, so that an empty row gives no NaN; a real row below that loses its weight.

    Source: burn#4697.
    """

    def maximum(self, s: Tensor) -> Tensor:
        return super().maximum(s).clamp(min=-1e4)


class MaximumOfTheBatch(TorchMerge):
    """One maximum for all rows of the call: a row far below the others underflows, a NaN anywhere is everywhere.

    Source: flash-attention#176 (rows mixed).
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s.amax().expand_as(s[:, 0]) if s.numel() else super().maximum(s)


class MaximumSharedByHeads(TorchMerge):
    """One maximum for all heads of a position: a head far below the others underflows.

    Source: flash-attention#176 (rows mixed).
    """

    def maximum(self, s: Tensor) -> Tensor:
        return s.amax(dim=(1, 2))[:, None].expand_as(s[:, 0]) if s.numel() else super().maximum(s)


class MaximumOfThirtyTwoLanes(TorchMerge):
    """A warp takes the maximum over its 32 lanes: a state past the 32nd may be 128 above it and overflow.

    Source: flashinfer#4573 (review: one split per lane).
    """

    def maximum(self, s: Tensor) -> Tensor:
        return super().maximum(s[:, :32])
