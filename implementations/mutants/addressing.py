"""Faults of where a value is read: strides, layouts, blocks, offsets."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import Mask, State, TorchMerge


def read_with(x: Tensor, strides: tuple[int, ...], offset: int | None = None) -> Tensor:
    """x read with other strides, or from another offset; addresses outside its memory are wrapped into it."""
    at = int(x.storage_offset()) if offset is None else offset
    places = torch.full((1,) * x.dim(), at, device=x.device)
    for dim, (size, stride) in enumerate(zip(x.shape, strides, strict=True)):
        steps = torch.arange(size, device=x.device) * stride
        places = places + steps.view([-1 if d == dim else 1 for d in range(x.dim())])
    memory = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    return memory[places % max(len(memory), 1)] if x.numel() else x.contiguous()


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of that shape."""
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))


class StatesAddressedAsHeads(TorchMerge):
    """N states of H heads are read as if H came before N.

    Source: semantics, section 2 (N before H); xFormers puts them the other way.
    """

    def merge_states(self, v: Tensor, s: Tensor, lse_base: int | str = 2) -> State:
        if v.dim() == 4 and s.dim() == 3:
            rows, count, heads = s.shape
            v = v.reshape(rows, heads, count, v.shape[3]).transpose(1, 2)
            s = s.reshape(rows, heads, count).transpose(1, 2)
        return super().merge_states(v, s, lse_base)


class StridesOfVIgnored(TorchMerge):
    """v is read as if it were contiguous: a padded, sliced or transposed one gives other rows.

    Source: FlagGems#5235.
    """

    def read_v(self, v: Tensor) -> Tensor:
        return v if v.is_contiguous() else read_with(v, dense_strides(v.shape))


class RowStrideIsD(TorchMerge):
    """The step from one head to the next is taken to be D: a v padded behind each head is read wrong.

    Source: FlagGems#5235, vllm fork #17.
    """

    def read_v(self, v: Tensor) -> Tensor:
        strides = (*v.stride()[:-2], v.shape[-1], v.stride(-1))
        return v.contiguous() if strides == v.stride() else read_with(v, strides)


class StridesOfTheFirstForBoth(TorchMerge):
    """The second v is read with the strides of the first.

    Source: vllm fork #17, FlagAttention#45.
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        if v_b.stride() != v_a.stride() and v_b.numel():
            v_b = read_with(v_b, v_a.stride())
        return super().merge_two(v_a, s_a, v_b, s_b, base)


class ColumnStrideIsOne(TorchMerge):
    """The last dimension is taken to be dense: every second column of a wider v is read as its first half.

    Source: flash-attention#2388 (strides assumed, not passed).
    """

    def read_v(self, v: Tensor) -> Tensor:
        return v.contiguous() if v.stride(-1) == 1 or v.shape[-1] <= 1 else read_with(v, (*v.stride()[:-1], 1))


class StridesOfSIgnored(TorchMerge):
    """s is read as if it were contiguous: one given as the transpose of [H, S] is mixed up.

    Source: vllm#21996, flash-attention#2388.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return s if s.is_contiguous() else read_with(s, dense_strides(s.shape))


class STransposed(TorchMerge):
    """s of the two-state operations is read as [H, S], as other libraries lay it out.

    Source: vllm#57012, vllm-xpu-kernels#479.
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        s_a, s_b = (s.contiguous().view(s.shape[1], s.shape[0]).t() for s in (s_a, s_b))
        v_new, s_new = super().merge_two(v_a, s_a, v_b, s_b, base)
        return v_new, s_new.t().contiguous().view(s_new.shape)


class StorageOffsetIgnored(TorchMerge):
    """v is read from the start of its memory instead of from its first element.

    Source: mutation of the base address.
    """

    def read_v(self, v: Tensor) -> Tensor:
        return v.contiguous() if v.storage_offset() == 0 else read_with(v, v.stride(), offset=0)


class AlignedDown(TorchMerge):
    """Vector loads of 16 bytes begin at an aligned address: a misaligned row is read from up to 7 elements before it.

    Source: semantics, section 2 (misaligned strides); the class of every vectorised load.
    """

    def read_v(self, v: Tensor) -> Tensor:
        offset = int(v.storage_offset())
        misaligned = offset % (16 // v.element_size())
        return read_with(v, v.stride(), offset - misaligned) if misaligned else v.contiguous()


class LastHeadReadsTheNextRow(TorchMerge):
    """The s of a position's last head is taken from the first head of the next position: an index off by one.

    Source: flash-attention#176 (rows mixed).
    """

    def read_s(self, s: Tensor) -> Tensor:
        s = super().read_s(s).clone()
        s[:-1, ..., -1:] = s[1:, ..., :1].clone()
        return s


class NeighbourRowRead(TorchMerge):
    """Positions 8, 16, 24 and so on read the v of the position before them: blocks of eight overlap by one.

    Source: Megatron-LM#7103 (the class: a block's local index against a global bound).
    """

    def read_v(self, v: Tensor) -> Tensor:
        rows = torch.arange(v.shape[0], device=v.device)
        return super().read_v(v)[rows - ((rows % 8 == 0) & (rows > 0)).long()]


class RowsPermuted(TorchMerge):
    """Positions 2 k and 2 k + 1 of the result change places in v but not in s.

    Source: flash-attention#176 (rows mixed).
    """

    def emit(self, v: Tensor, s: Tensor) -> State:
        rows = torch.arange(v.shape[0], device=v.device)
        partner = (rows ^ 1).clamp(max=max(v.shape[0] - 1, 0))
        return super().emit(v[partner], s)


class HeadsFoldedAt64(TorchMerge):
    """Blocks of 64 heads: head 64 + h reads the s of head h.

    Source: sglang#23993, Megatron-LM#7103.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s)[..., torch.arange(s.shape[-1], device=s.device) % 64]


class RowsBeyondTheGrid(TorchMerge):
    """A grid dimension ends at 65535: positions from there on keep what was in memory.

    Source: xformers 503a5d77.
    """

    def written(self, result: Tensor) -> Tensor:
        out = torch.empty(result.shape, dtype=result.dtype, device=result.device)
        out[:65535] = result[:65535]
        return out

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target[:65535], result[:65535], None if mask is None else mask[:65535])


class HeadDimFoldedAt256(TorchMerge):
    """A row of threads covers 256 columns: column 256 + d gets the value of column d.

    Source: sglang#23993 (the class: a block too small), xformers 4c82fc33.
    """

    def read_v(self, v: Tensor) -> Tensor:
        return super().read_v(v)[..., torch.arange(v.shape[-1], device=v.device) % 256]


class TailBehindEightDropped(TorchMerge):
    """Columns behind the last full vector of eight are written as 0.

    Source: sglang#1281, flash-attention#1347.
    """

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        v = super().rounded(v, dtype)
        v[..., v.shape[-1] // 8 * 8 :] = 0.0
        return v

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        v_new, s_new = super().settle(v, s, empty, v_new, s_new)
        v_new[..., v_new.shape[-1] // 8 * 8 :] = 0.0
        return v_new, s_new


class TailBehindAPowerOfTwoUnwritten(TorchMerge):
    """D is rounded down to a power of two: the columns behind it keep what was in memory.

    Source: exllamav3#316, xformers 4c82fc33.
    """

    def written(self, result: Tensor) -> Tensor:
        if result.dim() == 2:
            return super().written(result)
        out = torch.empty(result.shape, dtype=result.dtype, device=result.device)
        width = 1 << (result.shape[-1].bit_length() - 1)
        out[..., :width] = result[..., :width]
        return out

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        width = 1 << (result.shape[-1].bit_length() - 1)
        kept = slice(None) if result.dim() == 2 else slice(width)
        super().store(target[..., kept], result[..., kept], mask)


class _Offsets(TorchMerge):
    def wraps(self, offsets: Tensor) -> Tensor:
        raise NotImplementedError

    def read_v(self, v: Tensor) -> Tensor:
        farthest = sum(max(size - 1, 0) * stride for size, stride in zip(v.shape, v.stride(), strict=True))
        dense = super().read_v(v)
        if farthest < 2**31:
            return dense
        offsets = torch.arange(v.shape[0], device=v.device) * v.stride(0) + (farthest - (v.shape[0] - 1) * v.stride(0))
        return dense[torch.where(self.wraps(offsets), 0, torch.arange(v.shape[0], device=v.device))]


class SignedOffsets(_Offsets):
    """Offsets are int32: rows that reach past 2^31 elements wrap to a negative address; here they read row 0.

    Source: vllm#45500, sglang#29597, flash-attention#1500.
    """

    def wraps(self, offsets: Tensor) -> Tensor:
        return offsets >= 2**31


class UnsignedOffsets(_Offsets):
    """Offsets are uint32: rows that reach past 2^32 elements wrap to the start; here they read row 0.

    Source: sglang#28788 (the class, one bit later).
    """

    def wraps(self, offsets: Tensor) -> Tensor:
        return offsets >= 2**32
