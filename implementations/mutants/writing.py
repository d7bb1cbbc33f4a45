"""Faults of where and when a result is written: guard zones, holes, inputs, in place, masks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from implementations.torch_reference import Mask, State, TorchMerge


def poke(x: Tensor, past: int) -> None:
    """Writes 0 to the memory of x, `past` elements behind its last one, or before its first if negative, if it can."""
    if x.numel() == 0:
        return
    last = x.storage_offset() + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    place = last + past if past > 0 else x.storage_offset() + past
    memory = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    if 0 <= place < len(memory):
        memory[place] = 0


class _Poking(TorchMerge):
    past, dims = 1, 3

    def written(self, result: Tensor) -> Tensor:
        out = super().written(result)
        if out.dim() == self.dims:
            poke(out, self.past)
        return out

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target, result, mask)
        if target.dim() == self.dims:
            poke(target, self.past)


class WritesBehindV(_Poking):
    """The element behind the end of v is overwritten: the last vector is stored without its mask.

    Source: flash-attention#2789.
    """


class WritesBeforeV(_Poking):
    """The element before the beginning of v is overwritten.

    Source: Megatron-LM#7103 (stores outside the block).
    """

    past = -1


class WritesBehindS(_Poking):
    """The element behind the end of s is overwritten.

    Source: flash-attention#2789.
    """

    dims = 2


class _Holes(TorchMerge):
    def hole(self, result: Tensor) -> tuple[Any, ...] | None:
        raise NotImplementedError

    def written(self, result: Tensor) -> Tensor:
        hole = self.hole(result)
        if hole is None:
            return super().written(result)
        out = torch.empty(result.shape, dtype=result.dtype, device=result.device)
        chosen = torch.ones(result.shape, dtype=torch.bool, device=result.device)
        chosen[hole] = False
        out[chosen] = result[chosen]
        return out

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        hole = self.hole(result)
        if hole is not None:
            result = result.clone()
            result[hole] = target[hole]
        super().store(target, result, mask)


class LastElementUnwritten(_Holes):
    """The very last element of v keeps what was in memory: a bound that is < where it has to be <=.

    Source: FlagGems#5235 (rows never written).
    """

    def hole(self, result: Tensor) -> tuple[Any, ...] | None:
        return (-1, -1, -1) if result.dim() == 3 and result.numel() else None


class OddColumnUnwritten(_Holes):
    """Columns are written in pairs: of an odd D the last column keeps what was in memory.

    Source: sglang#1281, 66RING/tiny-flash-attention#12.
    """

    def hole(self, result: Tensor) -> tuple[Any, ...] | None:
        return (..., -1) if result.dim() == 3 and result.shape[2] % 2 else None


class OddHeadUnwritten(_Holes):
    """Heads are taken two to a block: of an odd H from 3 on the last head keeps what was in memory.

    Source: Megatron-LM#7103.
    """

    def hole(self, result: Tensor) -> tuple[Any, ...] | None:
        return (slice(None), -1) if result.shape[1] % 2 and result.shape[1] > 1 else None


class EmptyInputsRepaired(TorchMerge):
    """-inf in an input is overwritten by -1e30 before the merge, in the caller's memory.

    Source: flashinfer#4450 (the sentinel), semantics law 14 (inputs keep their bits).
    """

    def read_s(self, s: Tensor) -> Tensor:
        dense = super().read_s(s).clone()
        if 0 not in s.stride():
            s.clamp_(min=-1e30)
        return dense


class ResultInTheFirstInput(TorchMerge):
    """Out of place, the first v serves as accumulator and holds the result afterwards.

    Source: semantics law 14 (inputs keep their bits).
    """

    def merge_state(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, lse_base: int | str = 2) -> State:
        v, s = super().merge_state(v_a, s_a, v_b, s_b, lse_base)
        if 0 not in v_a.stride():
            v_a.copy_(v)
        return v, s


class ScratchIsTheInput(TorchMerge):
    """N states: the maximum is subtracted from s where it lies, if it is contiguous.

    Source: semantics law 14 (inputs keep their bits).
    """

    def merge_states(self, v: Tensor, s: Tensor, lse_base: int | str = 2) -> State:
        result = super().merge_states(v, s, lse_base)
        if s.is_contiguous() and s.shape[1]:
            s -= s.amax(dim=1, keepdim=True)
        return result


class SWrittenBeforeV(TorchMerge):
    """In place: s is written first and v is then weighted by the new s.

    Source: local-inference-lab/vllm#468.
    """

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        v_old = v.clone()
        super().update(v, s, v_other, s_other, mask, base)
        v_late, _ = self.merge_two(v_old, s, v_other, s_other, base)
        self.store(v, v_late, mask)


class AliasReadAfterWriting(TorchMerge):
    """In place with the state itself as the other one: half of the columns are weighted by an s already overwritten.

    Source: local-inference-lab/vllm#468.
    """

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        v_old, s_old, other = v.clone(), s.clone(), v_other.clone()
        super().update(v, s, v_other, s_other, mask, base)
        if s_other.data_ptr() == s.data_ptr():
            v_late, _ = self.merge_two(v_old, s_old, other, s_other, base)
            half = v.shape[2] // 2
            self.store(v[..., half:], v_late[..., half:], mask)


class InPlaceForgetsS(TorchMerge):
    """In place: v is updated and s is not, so that the next merge weighs it too little.

    Source: mutation of the last store.
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        if target.dim() == 3:
            super().store(target, result, mask)


class InPlaceUpdatesACopy(TorchMerge):
    """In place: a v that is not contiguous is made so, and the copy is updated.

    Source: flashinfer cascade.py (s is cast to a copy).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target.contiguous(), result, mask)


class InPlaceWritesTheOther(TorchMerge):
    """In place: the merged s is written to the other state too.

    Source: semantics law 14 (only the outputs are written).
    """

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        super().update(v, s, v_other, s_other, mask, base)
        if 0 not in s_other.stride():
            self.store(s_other, s, mask)


class MaskIgnored(TorchMerge):
    """Every row is updated, whatever the mask says.

    Source: FastDeploy#5920.
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target, result, None)


class MaskInverted(TorchMerge):
    """The mask is taken for the rows to leave alone.

    Source: FastDeploy#5920 (the class).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target, result, None if mask is None else ~mask)


class MaskOfHeads(TorchMerge):
    """The mask is indexed by the head instead of the position.

    Source: FastDeploy#5920 (the class).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        if mask is None or 0 in target.shape:
            super().store(target, result, None)
        else:
            heads = mask[torch.arange(target.shape[1], device=mask.device) % len(mask)]
            super().store(target.transpose(0, 1), result.transpose(0, 1), heads)


class MaskOfVOnly(TorchMerge):
    """Masked rows keep their v, while s is updated in all rows.

    Source: FastDeploy#5920 (the class).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target, result, mask if target.dim() == 3 else None)


class MaskOfBlocks(TorchMerge):
    """The mask is asked once for four rows: all of them are updated if the first is.

    Source: FastDeploy#5920 (the class).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        rows = torch.arange(len(target), device=target.device)
        super().store(target, result, None if mask is None else mask[rows // 4 * 4])


class MaskByMultiplication(TorchMerge):
    """old (1 - mask) + new mask: NaN on the side that is masked out leaks into the row.

    Source: FastDeploy#5920; 0 x NaN as in flashinfer#4975.
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        if mask is not None:
            kept = mask.view(-1, *([1] * (target.dim() - 1))).to(target.dtype)
            result = target * (1 - kept) + result * kept
        super().store(target, result, None)


class MaskReadAsContiguous(TorchMerge):
    """The stride of the mask is ignored: a slice or column of a larger mask is read from neighbouring bytes.

    Source: flash-attention#2388 (strides assumed, not passed).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        if mask is not None and len(mask):
            start = mask.storage_offset()
            memory = mask.as_strided((mask.untyped_storage().nbytes(),), (1,), 0)
            mask = memory[(torch.arange(len(mask), device=mask.device) + start) % len(memory)]
        super().store(target, result, mask)


class MaskedRowsRewritten(TorchMerge):
    """Rows that are masked out are read, added to 0 and written back: -0.0 becomes 0.0.

    Source: semantics law 14 (masked rows keep their bits).
    """

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        if mask is not None:
            target += 0.0
        super().store(target, result, mask)
