"""Faults of the empty state, s = -inf."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class EmptyAndEmptyNan(TorchMerge):
    """Two empty states give NaN: (-inf) - (-inf) is not caught.

    Source: flashinfer#4051, vllm#27491, ATOM#1152.
    """

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        none = empty.all(dim=1)
        return v_new.masked_fill(none[..., None], math.nan), s_new.masked_fill(none, math.nan)


class EmptyRowKeepsV(TorchMerge):
    """Where all states are empty the v of the first is returned, whatever lies in it.

    Source: vllm#28181.
    """

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        return torch.where(empty.all(dim=1)[..., None], v[:, 0], v_new), s_new


class EmptyRowHasTheLowestS(TorchMerge):
    """A row of empties gets the lowest finite float for -inf, and is no longer empty to the next merge.

    Source: flashinfer#4450.
    """

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        return v_new, s_new.masked_fill(empty.all(dim=1), torch.finfo(torch.float32).min)


class _Sentinel(TorchMerge):
    sentinel = 0.0

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).masked_fill(s == -math.inf, self.sentinel)


class EmptyIsMinus5e4(_Sentinel):
    """An empty state gets s = -5e4: it outweighs real states below that.

    Source: flashinfer#4450.
    """

    sentinel = -5e4


class EmptyIsMinus1e4(_Sentinel):
    """An empty state gets s = -1e4.

    Source: flashinfer#4450, with the sentinel of burn#4697.
    """

    sentinel = -1e4


class EmptyIsMinus1e30(_Sentinel):
    """An empty state gets s = -1e30: only far larger |s|, or a row of nothing but empties, shows it.

    Source: flashinfer#4450, with the sentinel that Triton kernels use most.
    """

    sentinel = -1e30


class EmptyIsZero(_Sentinel):
    """An empty state gets s = 0.0, an ordinary LSE.

    Source: vllm#38416.
    """

    sentinel = 0.0


class EmptyIsMinus1e30AndBack(EmptyIsMinus1e30):
    """An empty state gets s = -1e30, and what comes out below -9e29 is made empty: rows of real s down there vanish.

    Source: flashinfer#4450 (no finite sentinel will do).
    """

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        low = s_new < -9e29
        return v_new.masked_fill(low[..., None], 0.0), s_new.masked_fill(low, -math.inf)


class EmptyVLeaks(TorchMerge):
    """An empty state's v is multiplied by its weight, 0: NaN or inf in an unwritten buffer reaches the result.

    Source: flashinfer#4975, aiter#4711, pytorch#101967.
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return w[..., None] * v.float()

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        none = empty.all(dim=1)
        return v_new.masked_fill(none[..., None], 0.0), s_new.masked_fill(none, -math.inf)


class EmptyHandledOnTheLeft(TorchMerge):
    """Of two states only the first is looked at for emptiness: NaN in the v of an empty second one leaks.

    Source: flashinfer#4975 (the class); ring-flash-attention#30 (a fault of one order only).
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_two(v_a, s_a, v_b, s_b, base)
        leak = ((s_b == -math.inf) & (s_a != -math.inf))[..., None] & ~v_b.isfinite()
        return v_new.masked_fill(leak, math.nan), s_new


class EmptyHandledInTheFirstPosition(TorchMerge):
    """Of N states only the first may be empty: the difference (-inf) - (-inf) starts a row with NaN at the second.

    Source: ik_llama.cpp#2344, ATOM#1152.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_many(v, s, base)
        late = self.empties(s[:, :2]).sum(dim=1) == 2
        return v_new.masked_fill(late[..., None], math.nan), s_new.masked_fill(late, math.nan)


class StopsAtTheFirstEmpty(TorchMerge):
    """The loop over N states ends at the first empty one: states behind it are not read.

    Source: ik_llama.cpp#2344.
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        behind = self.empties(s).int().cumsum(dim=1) > 0
        return super().merge_many(v, s.masked_fill(behind, -math.inf), base)


class DeepStateTakenForEmpty(TorchMerge):
    """Every s below -5e4 counts as empty, though such an LSE is an ordinary number.

    Source: flashinfer#4450.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).masked_fill(s < -5e4, -math.inf)


class ZeroVTakenForEmpty(TorchMerge):
    """A state whose v is all 0 counts as empty: an attention sink loses its weight.

    Source: vllm#26325.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return super().merge(v, s.masked_fill((v == 0.0).all(dim=-1), -math.inf), base)


class ZeroSTakenForEmpty(TorchMerge):
    """s = 0.0 is read as 'not set': a state whose weights sum to one is left out.

    Source: vllm#38416 (zero standing for empty), seen from the reader.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).masked_fill(s == 0.0, -math.inf)


class EmptinessOfTheFirstHead(TorchMerge):
    """Whether a state is empty is asked of its first head alone, as if all heads saw the same keys.

    Source: flash-attention#176 (rows mixed).
    """

    def empties(self, s: Tensor) -> Tensor:
        return super().empties(s)[..., :1].expand_as(s)


class NegativeZeroLost(TorchMerge):
    """Sums start from +0.0: merging with an empty state turns -0.0 into 0.0, so that it is no identity bit for bit.

    Source: semantics, section 3 (the other state, bit for bit).
    """

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        return v_new + 0.0, s_new + 0.0
