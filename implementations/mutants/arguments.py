"""Faults of what is accepted: wrong arguments that give a wrong result, or an error that does not say which."""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import Mask, State, TorchMerge


class SOfAnyDtypeConverted(TorchMerge):
    """s of another dtype is silently converted; in place it is the copy that is updated.

    Source: flashinfer cascade.py.
    """

    def merge_state(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, lse_base: int | str = 2) -> State:
        return super().merge_state(v_a, _float32(s_a), v_b, _float32(s_b), lse_base)

    def merge_state_in_place(
        self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask = None, lse_base: int | str = 2
    ) -> None:
        super().merge_state_in_place(v, _float32(s), v_other, _float32(s_other), mask, lse_base)


class SecondDtypeReinterpreted(TorchMerge):
    """The bits of the second v are read in the dtype of the first: bfloat16 1.0 is float16 1.875.

    Source: flashinfer csrc/cascade.cu.
    """

    def check_pair(self, names: tuple[str, str, str, str], v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> None:
        super().check_pair(names, v_a, s_a, self.reinterpreted(v_b, v_a), s_b)

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        return super().merge_two(v_a, s_a, self.reinterpreted(v_b, v_a), s_b, base)

    def reinterpreted(self, x: Tensor, like: Tensor) -> Tensor:
        tensors = isinstance(x, Tensor) and isinstance(like, Tensor)
        return x.contiguous().view(like.dtype) if tensors and {x.dtype, like.dtype} == _SIXTEEN_BITS else x


class OtherBroadcast(TorchMerge):
    """A second v and s of another shape are broadcast where they can be, instead of refused.

    Source: semantics law 17 (wrong shapes are errors).
    """

    def check_pair(self, names: tuple[str, str, str, str], v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> None:
        if isinstance(v_b, Tensor) and isinstance(s_b, Tensor) and 1 in (*v_b.shape[:1], *s_b.shape[:1]):
            v_b, s_b = v_b.expand_as(v_a), s_b.expand_as(s_a)
        super().check_pair(names, v_a, s_a, v_b, s_b)

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        return super().merge_two(v_a, s_a, v_b.expand_as(v_a), s_b.expand_as(s_a), base)


class MaskOfNumbers(TorchMerge):
    """A mask of integers is taken as it is, for a list of row numbers.

    Source: semantics law 17 (mask dtype); FastDeploy#5920 (masks).
    """

    def check_mask(self, mask: Mask, v: Tensor) -> None:
        if not isinstance(mask, Tensor) or mask.dtype == torch.bool:
            super().check_mask(mask, v)

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        super().store(target, result, mask if mask is None or mask.dtype == torch.bool else mask.long())


class DecreasingIndptrAccepted(TorchMerge):
    """An indptr that decreases, or leaves the buffer, is cut to size instead of refused.

    Source: semantics law 17 (indptr); flashinfer#942.
    """

    def check_indptr(self, indptr: Tensor, v: Tensor) -> None:
        super().check_indptr(indptr[:1] * 0, v)

    def segments(self, indptr: Tensor, rows: int) -> State:
        starts, lengths = super().segments(indptr.clamp(0, rows), rows)
        return starts, lengths.clamp(min=0)


class NamelessError(TorchMerge):
    """Wrong arguments are refused with one message for all of them, which names none.

    Source: semantics law 17 (a Python error that names the argument).
    """

    def merge_state(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, lse_base: int | str = 2) -> State:
        try:
            return super().merge_state(v_a, s_a, v_b, s_b, lse_base)
        except (TypeError, ValueError) as error:
            raise RuntimeError("CUDA error: invalid argument") from error


class RefusedTooLate(TorchMerge):
    """In place: the mask is looked at when v has already been merged and written.

    Source: semantics law 17 (nothing written).
    """

    def check_mask(self, mask: Mask, v: Tensor) -> None:
        pass

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        v_new, s_new = self.merge_two(v, s, v_other, s_other, base)
        usable = isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == s.shape[:1]
        self.store(v, v_new, mask if usable else None)
        super().check_mask(mask, v)
        self.store(s, s_new, mask)


def _float32(s: Tensor) -> Tensor:
    return s.float() if isinstance(s, Tensor) else s


_SIXTEEN_BITS = {torch.float16, torch.bfloat16}
