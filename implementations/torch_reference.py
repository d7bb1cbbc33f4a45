"""The merge in plain PyTorch, in steps: any dtype, device, stride, size and base; two passes, arithmetic in float32.

    m = max s_i;  w_i = 2^(s_i - m);  d = sum w_i;  v = sum w_i v_i / d;  s = m + log2 d        (base e: e and ln)

The states are summed in their order, one after the other, so that a row's bits depend on its own inputs alone. A term
that is left out counts as -0.0, the one number that changes no bit of a sum. The deliberately wrong implementations
in `mutants/` inherit from `TorchMerge` and override the one step that their fault is in.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from mergelaws.implementation import BITWISE_CLAIMS, OPERATIONS, Implementation

State = tuple[Tensor, Tensor]
Mask = Tensor | None
V_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class TorchMerge:
    """The four operations of semantics, section 2, each made of the steps below.

    Raises TypeError for a wrong dtype and ValueError for a wrong shape, device, base or indptr; the message names the
    argument, what it was and what it must be.
    """

    # The operations.

    def merge_state(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, lse_base: int | str = 2) -> State:
        """Merges two states: v [S, H, D], s [S, H]."""
        self.check_base(lse_base)
        self.check_pair(("v_a", "s_a", "v_b", "s_b"), v_a, s_a, v_b, s_b)
        return self.emit(*self.merge_two(v_a, s_a, v_b, s_b, lse_base))

    def merge_state_in_place(
        self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask = None, lse_base: int | str = 2
    ) -> None:
        """Merges (v_other, s_other) into (v, s), in the rows where mask [S] is true."""
        self.check_base(lse_base)
        self.check_pair(("v", "s", "v_other", "s_other"), v, s, v_other, s_other)
        self.check_writable("v", v)
        self.check_writable("s", s)
        self.check_mask(mask, v)
        self.update(v, s, v_other, s_other, mask, lse_base)

    def merge_states(self, v: Tensor, s: Tensor, lse_base: int | str = 2) -> State:
        """Merges N states: v [S, N, H, D], s [S, N, H] -> v [S, H, D], s [S, H]."""
        self.check_base(lse_base)
        self.check_v("v", v, 4)
        self.check_s("s", s, "v", v)
        return self.emit(*self.merge_many(self.read_v(v), self.read_s(s), lse_base))

    def variable_length_merge_states(self, v: Tensor, s: Tensor, indptr: Tensor, lse_base: int | str = 2) -> State:
        """Merges the states indptr[i] to indptr[i + 1] for each i: v [nnz, H, D], s [nnz, H] -> v [S, H, D], s [S, H]."""
        self.check_base(lse_base)
        self.check_v("v", v, 3)
        self.check_s("s", s, "v", v)
        self.check_indptr(indptr, v)
        starts, lengths = self.segments(indptr, v.shape[0])
        return self.emit(*self.merge_segments(self.read_v(v), self.read_s(s), starts, lengths, lse_base))

    # From operations to one dense merge.

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        v = torch.stack((self.read_v(v_a), self.read_v(v_b)), dim=1)
        s = torch.stack((self.read_s(s_a), self.read_s(s_b)), dim=1)
        return self.merge(v, s, base)

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        v_new, s_new = self.merge_two(v, s, v_other, s_other, base)
        self.store(v, v_new, mask)
        self.store(s, s_new, mask)

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        return self.merge(v, s, base)

    def segments(self, indptr: Tensor, rows: int) -> State:
        """Where each segment starts, and its length: two int64 [S]."""
        indptr = indptr.long()
        return indptr[:-1], indptr.diff()

    def merge_segments(self, v: Tensor, s: Tensor, starts: Tensor, lengths: Tensor, base: int | str) -> State:
        """Segments of one length are one dense merge, so that a segment has the bits of `merge_states`."""
        v_new = v.new_zeros((len(starts), *v.shape[1:]))
        s_new = s.new_zeros((len(starts), *s.shape[1:]))
        for length in lengths.unique().tolist():
            chosen = (lengths == length).nonzero()[:, 0]
            rows = starts[chosen, None] + torch.arange(length, device=v.device)  # [chosen, N]
            v_new[chosen], s_new[chosen] = self.merge_many(v[rows], s[rows], base)
        return v_new, s_new

    # The dense merge: v [S, N, H, D] in T, s [S, N, H] -> v [S, H, D] in T, s [S, H].

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if v.shape[1] == 0:
            return v.new_zeros(v[:, :0].sum(1).shape), s.new_full(s[:, :0].sum(1).shape, -math.inf)
        empty = self.empties(s)
        m = self.maximum(s)
        w = self.weights(s, m, empty, base)
        d = self.total(w)
        numerator = self.total(self.products(w, v, empty))
        v_new = self.one_nan(self.rounded(self.quotient(numerator, d), v.dtype))
        s_new = self.one_nan(self.lse(m, d, base))
        return self.settle(v, s, empty, v_new, s_new)

    def empties(self, s: Tensor) -> Tensor:
        return s == -math.inf

    def maximum(self, s: Tensor) -> Tensor:
        return s.amax(dim=1)  # NaN where there is one

    def weights(self, s: Tensor, m: Tensor, empty: Tensor, base: int | str) -> Tensor:
        """float32 [S, N, H]; 0 for the empties, NaN in a row whose s has +inf or NaN."""
        return self.exponential(s - m[:, None], base).masked_fill(empty, 0.0)

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        # Through float64 because torch.exp2 in float32 on a CPU gives a number other bits in the tail of a tensor.
        y = x.double() if base == "e" else x.double() * math.log(2.0)
        return y.exp().float()

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return d.double().log().float() if base == "e" else d.double().log2().float()

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        """float32 [S, N, H, D]; whatever the v of an empty state holds is left out."""
        return (w[..., None] * v.float()).masked_fill(empty[..., None], -0.0)

    def total(self, terms: Tensor) -> Tensor:
        """The sum over N, in order."""
        total = terms[:, 0]
        for i in range(1, terms.shape[1]):
            total = total + terms[:, i]
        return total

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return numerator / d[..., None]

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return m + self.logarithm(d, base)

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        return v.to(dtype)

    def one_nan(self, x: Tensor) -> Tensor:
        """A NaN's payload would tell the order of the operands: all are made the same."""
        return x.masked_fill(x.isnan(), math.nan)

    def settle(self, v: Tensor, s: Tensor, empty: Tensor, v_new: Tensor, s_new: Tensor) -> State:
        """A state that is alone is copied bit for bit; where there is none the result is (0, -inf)."""
        count = (~empty).sum(dim=1)  # [S, H]
        place = (~empty).to(torch.uint8).argmax(dim=1, keepdim=True)  # [S, 1, H]
        v_only, s_only = v.take_along_dim(place[..., None], dim=1)[:, 0], s.take_along_dim(place, dim=1)[:, 0]
        alone, none = (count == 1) & s_only.isfinite(), count == 0
        v_new = torch.where(alone[..., None], v_only, v_new).masked_fill(none[..., None], 0.0)
        return v_new, torch.where(alone, s_only, s_new).masked_fill(none, -math.inf)

    # Memory.

    def read_v(self, v: Tensor) -> Tensor:
        return v.contiguous()

    def read_s(self, s: Tensor) -> Tensor:
        return s.contiguous()

    def emit(self, v: Tensor, s: Tensor) -> State:
        """The results in memory of their own."""
        return self.written(v), self.written(s)

    def written(self, result: Tensor) -> Tensor:
        return torch.empty(result.shape, dtype=result.dtype, device=result.device).copy_(result)

    def store(self, target: Tensor, result: Tensor, mask: Mask) -> None:
        """Overwrites the rows of target where mask is true; all of them if it is None."""
        if mask is None:
            target.copy_(result)
        else:
            target[mask] = result[mask]

    # Arguments.

    def check_base(self, lse_base: int | str) -> None:
        if isinstance(lse_base, bool | float) or lse_base not in (2, "e"):
            raise ValueError(f"lse_base is {lse_base!r}; it must be 2 or 'e'")

    def check_pair(self, names: tuple[str, str, str, str], v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> None:
        self.check_v(names[0], v_a, 3)
        self.check_s(names[1], s_a, names[0], v_a)
        _tensor(names[2], v_b)
        if v_b.dtype != v_a.dtype:
            raise TypeError(f"{names[2]} is {v_b.dtype}; it must be {v_a.dtype}, the dtype of {names[0]}")
        _alike(names[2], v_b, v_a.shape, names[0], v_a)
        self.check_s(names[3], s_b, names[0], v_a)

    def check_v(self, name: str, v: Tensor, dims: int) -> None:
        _tensor(name, v)
        if v.dtype not in V_DTYPES:
            raise TypeError(f"{name} is {v.dtype}; it must be torch.float32, torch.float16 or torch.bfloat16")
        if v.dim() != dims or v.shape[-1] == 0:
            raise ValueError(
                f"{name} has shape {tuple(v.shape)}; it must have {dims} dimensions, the last one at least 1"
            )

    def check_s(self, name: str, s: Tensor, v_name: str, v: Tensor) -> None:
        _tensor(name, s)
        if s.dtype != torch.float32:
            raise TypeError(f"{name} is {s.dtype}; it must be torch.float32")
        _alike(name, s, v.shape[:-1], v_name, v)

    def check_writable(self, name: str, x: Tensor) -> None:
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise ValueError(f"{name} has strides {x.stride()}; it is written, so its elements must not overlap")

    def check_mask(self, mask: Mask, v: Tensor) -> None:
        if mask is None:
            return
        _tensor("mask", mask)
        if mask.dtype != torch.bool:
            raise TypeError(f"mask is {mask.dtype}; it must be torch.bool")
        _alike("mask", mask, v.shape[:1], "v", v)

    def check_indptr(self, indptr: Tensor, v: Tensor) -> None:
        _tensor("indptr", indptr)
        if indptr.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"indptr is {indptr.dtype}; it must be torch.int32 or torch.int64")
        if indptr.dim() != 1 or len(indptr) == 0:
            raise ValueError(f"indptr has shape {tuple(indptr.shape)}; it must be [S + 1], with at least one entry")
        _alike("indptr", indptr, indptr.shape, "v", v)
        ends = indptr.tolist()
        for entry, (begin, end) in enumerate(pairwise(ends), start=1):
            if end < begin:
                raise ValueError(f"indptr falls from {begin} to {end} at entry {entry}; it must not decrease")
        if ends[0] < 0 or ends[-1] > len(v):
            raise ValueError(
                f"indptr runs from {ends[0]} to {ends[-1]}; it must stay between 0 and {len(v)}, the rows of v"
            )


def _tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}; it must be a torch.Tensor")


def _alike(name: str, x: Tensor, shape: torch.Size, v_name: str, v: Tensor) -> None:
    if x.shape != shape:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; it must be {tuple(shape)}, as {v_name} has {tuple(v.shape)}"
        )
    if x.device != v.device:
        raise ValueError(f"{name} is on {x.device}; it must be on {v.device}, the device of {v_name}")


def offered(name: str, merge: TorchMerge, **claims: Any) -> Implementation:
    """`merge` as an implementation, with every claim that `TorchMerge` can make but for those given."""
    claims = {"lse_base": "either", "checks_arguments": True, "bitwise": frozenset(BITWISE_CLAIMS), **claims}
    base = claims["lse_base"]
    for operation in OPERATIONS:
        function = getattr(merge, operation)
        claims.setdefault(operation, function if base == "either" else partial(function, lse_base=base))
    return Implementation(name=name, **claims)


implementation = offered("torch", TorchMerge(), exp_chain=1)
