"""Faults of NaN and +inf, in s and in v."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class PlusInfinityTakenForEmpty(TorchMerge):
    """s = +inf counts as empty without a word, as FlashAttention-2 marks it; the policy claimed is NaN.

    Source: flash-attention#978, vllm#15492.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).masked_fill(s == math.inf, -math.inf)


class PlusInfinityWins(TorchMerge):
    """A state of s = +inf takes all the weight and s stays +inf, where it has to become NaN.

    Source: flash-attention#978 (+inf is not an LSE).
    """

    def weights(self, s: Tensor, m: Tensor, empty: Tensor, base: int | str) -> Tensor:
        return super().weights(s, m, empty, base).masked_fill(s == math.inf, 1.0)


class NanTakenForEmpty(TorchMerge):
    """s = NaN counts as empty: a fault upstream vanishes.

    Source: flashinfer#4401 (its side effect).
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).masked_fill(s.isnan(), -math.inf)


class NanOnTheRightDropped(TorchMerge):
    """Of two states a NaN in the second s is dropped, as a maximum does that returns its other operand.

    Source: flashinfer#4401 (its side effect), numerics (the GPU's maximum drops a NaN).
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        return super().merge_two(v_a, s_a, v_b, s_b.masked_fill(s_b.isnan(), -math.inf), base)


class NanOnlyInS(TorchMerge):
    """A NaN in s reaches the new s, while v is merged from the other states and looks sound.

    Source: flashinfer#4401 (its side effect).
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, _ = super().merge(v, s.masked_fill(s.isnan(), -math.inf), base)
        return v_new, super().merge(v, s, base)[1]


class InfinityBehindAnUnderflow(TorchMerge):
    """A state whose weight underflows is skipped: NaN or inf in its v stays hidden.

    Source: semantics, section 3 (never hidden by an underflowed weight).
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w, v, empty).masked_fill((w == 0.0)[..., None], -0.0)


class NanReplacedByZero(TorchMerge):
    """NaN in the result becomes 0, so that rows of empties look right.

    Source: rten#1321.
    """

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        return super().rounded(v.masked_fill(v.isnan(), 0.0), dtype)


class NanSpreadsOverHeads(TorchMerge):
    """A NaN in the v of one head makes every head of the position NaN: heads share a product with zeros.

    Source: flash-attention#176 (rows mixed).
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        return v_new.masked_fill(v_new.isnan().any(dim=1, keepdim=True), math.nan), s_new


class NanSpreadsOverColumns(TorchMerge):
    """One NaN component of v makes the whole row NaN, though the other components are sound.

    Source: semantics, section 3 (that component of the row).
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        return v_new.masked_fill(v_new.isnan().any(dim=-1, keepdim=True), math.nan), s_new
