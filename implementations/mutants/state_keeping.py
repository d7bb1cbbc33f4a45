"""Faults of memory between calls: a result that depends on more than its inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import Mask, State, TorchMerge


class RandomLowBit(TorchMerge):
    """Now and then a result differs in its last bit from run to run, as a race between two roundings does.

    Source: vllm#53257 (bits that depend on more than the inputs).
    """

    def __init__(self) -> None:
        self.chance = torch.Generator().manual_seed(20260)

    def emit(self, v: Tensor, s: Tensor) -> State:
        v, s = super().emit(v, s)
        flips = (torch.rand(v.shape, generator=self.chance) < 0.125).to(v.device)
        bits = v.view(torch.int32 if v.element_size() == 4 else torch.int16)
        bits ^= (flips & v.isfinite() & (v != 0.0)).to(bits.dtype)
        return v, s


class SummedInRandomOrder(TorchMerge):
    """The states are added in whatever order they arrive, as atomic additions are: within the bound, never twice alike.

    Source: semantics law 19; the class of atomic accumulation.
    """

    def __init__(self) -> None:
        self.chance = torch.Generator().manual_seed(20261)

    def total(self, terms: Tensor) -> Tensor:
        return super().total(terms[:, torch.randperm(terms.shape[1], generator=self.chance).to(terms.device)])


class OrderDependsOnTheBatch(TorchMerge):
    """Few rows are summed in two halves to fill the device, many in one go: a row's bits depend on its company.

    Source: vllm#53257, aiter#4378.
    """

    def total(self, terms: Tensor) -> Tensor:
        half = terms.shape[1] // 2
        if half == 0 or terms.shape[0] > 1:
            return super().total(terms)
        return super().total(terms[:, :half]) + super().total(terms[:, half:])


class RememberedByShape(TorchMerge):
    """The first result for a shape is kept and returned for every later input of that shape.

    Source: sglang#5404 (a captured graph that does not follow its inputs).
    """

    def __init__(self) -> None:
        self.results: dict[object, State] = {}

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = self.results.setdefault((v.shape, v.dtype, v.device, base), super().merge(v, s, base))
        return v_new.clone(), s_new.clone()


class WorkspaceNotReset(TorchMerge):
    """The maximum of a shape's earlier calls stays in a workspace: a later call far below it underflows.

    Source: triton#781 (what an earlier run left behind), semantics law 19.
    """

    def __init__(self) -> None:
        self.workspace: dict[torch.Size, Tensor] = {}

    def maximum(self, s: Tensor) -> Tensor:
        m = super().maximum(s)
        kept = self.workspace.get(s.shape)
        m = m if kept is None else torch.maximum(m, kept.to(m.device))
        self.workspace[s.shape] = m.nan_to_num(nan=0.0, posinf=0.0, neginf=-torch.inf)
        return m


class TunedOnTheCallersData(TorchMerge):
    """In place: the first call for a shape is also the one that tunes the kernel, and merges twice.

    Source: triton#6547, triton#781.
    """

    def __init__(self) -> None:
        self.tuned: set[torch.Size] = set()

    def update(self, v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Mask, base: int | str) -> None:
        super().update(v, s, v_other, s_other, mask, base)
        if v.shape not in self.tuned:
            self.tuned.add(v.shape)
            super().update(v, s, v_other, s_other, mask, base)
