"""Faults of how many states are read: dropped, read twice, or rounded to a tile."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class PaddingCounted(TorchMerge):
    """N is padded to a power of two with (0, 0.0), a state of weight 1, instead of (0, -inf).

    Source: vllm#38416.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        count = s.shape[1]
        padding = (1 << max(count - 1, 0).bit_length()) - count if count else 0
        v = torch.cat((v, v.new_zeros(v.shape[0], padding, *v.shape[2:])), dim=1)
        return super().merge_many(v, torch.cat((s, s.new_zeros(s.shape[0], padding, s.shape[2])), dim=1), base)


class LastStateDropped(TorchMerge):
    """The loop over N states ends one too early.

    Source: mutation of the loop.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return super().merge_many(v[:, :-1], s[:, :-1], base)


class FirstStateTwice(TorchMerge):
    """The first state initialises the accumulator and the loop begins with it again.

    Source: rocm-libraries#12227 (a key set counted twice).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return super().merge_many(torch.cat((v[:, :1], v), dim=1), torch.cat((s[:, :1], s), dim=1), base)


class CountRoundedDown(TorchMerge):
    """N is rounded down to a multiple of four, the unrolling of the loop; fewer than four are right.

    Source: triton#630 (the class: a tile that N does not fill).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        count = s.shape[1] // 4 * 4 or s.shape[1]
        return super().merge_many(v[:, :count], s[:, :count], base)


class LastStateFillsTheTile(TorchMerge):
    """Reads past N are held to the last state, which so fills the tile of four and counts up to four times.

    Source: flash-attention#2789 (indices wrapped in place of a mask).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        count = s.shape[1]
        lanes = torch.arange(-(-count // 4) * 4, device=s.device).clamp(max=max(count - 1, 0))
        return super().merge_many(v[:, lanes], s[:, lanes], base)


class OneStateIsEmpty(TorchMerge):
    """N = 1 launches no reduction: the result is the empty state.

    Source: aiter#3606.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return super().merge_many(v[:, 1:], s[:, 1:], base) if s.shape[1] == 1 else super().merge_many(v, s, base)


class OddStateDropped(TorchMerge):
    """A tree of pairs forgets the state that has no partner: wrong for odd N from 3 on.

    Source: mutation of the pairwise tree.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        even = s.shape[1] // 2 * 2 or s.shape[1]
        return super().merge_many(v[:, :even], s[:, :even], base)


class ThirtyTwoLanes(TorchMerge):
    """One state a lane: the states after the 32nd are not read.

    Source: flashinfer#4573 (review: one split per lane).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return super().merge_many(v[:, :32], s[:, :32], base)


class BoundaryStateTwice(TorchMerge):
    """Tiles of 32 overlap by one: the 32nd state counts twice where there are more.

    Source: rocm-libraries#12227 (a key set counted twice).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        lanes = [i for start in range(0, s.shape[1], 32) for i in range(max(start - 1, 0), min(start + 32, s.shape[1]))]
        return super().merge_many(v[:, lanes], s[:, lanes], base)


class SecondStageUnweighted(TorchMerge):
    """More than 64 states: chunks of 64 are merged and their v averaged without weights.

    Source: mutation of the two-stage reduction.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_many(v, s, base)
        if s.shape[1] <= 64:
            return v_new, s_new
        parts = [self.merge(v[:, i : i + 64], s[:, i : i + 64], base)[0].float() for i in range(0, s.shape[1], 64)]
        return torch.stack(parts).mean(dim=0).to(v.dtype), s_new


class NoStatesNan(TorchMerge):
    """N = 0 divides 0 by 0.

    Source: sglang#23636 (a grid of 0), flashinfer#440 (requests of length zero).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_many(v, s, base)
        return (v_new, s_new) if s.shape[1] else (v_new.fill_(math.nan), s_new.fill_(math.nan))


class NoRowsRefused(TorchMerge):
    """S = 0 or H = 0 raises, as a launch of no blocks does.

    Source: sglang#23636.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if s.shape[0] == 0 or s.shape[2] == 0:
            raise RuntimeError("invalid configuration argument: the grid is empty")
        return super().merge(v, s, base)
