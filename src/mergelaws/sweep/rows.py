"""Rows to merge, many at once, and what an implementation makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import torch

from mergelaws.implementation import Implementation

State = tuple[torch.Tensor, torch.Tensor]

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Rows:
    """R rows of N states for `operation`: v [R, N, D], s float32 [R, N] in `base`, on one device."""

    operation: str
    base: int | str
    v: torch.Tensor
    s: torch.Tensor

    @property
    def dtype(self) -> str:
        """The name of the dtype of v."""
        return str(self.v.dtype).removeprefix("torch.")

    def merged(self, implementation: Implementation) -> State:
        """(v [R, D], s [R]) as the implementation merges them, each row a position with one head."""
        v, s = self.v[:, :, None], self.s[:, :, None]  # [R, N, 1, D], [R, N, 1]
        merge = getattr(implementation, self.operation)
        keywords = {"lse_base": self.base} if implementation.lse_base == "either" else {}
        with numpy.errstate(all="ignore"):
            if self.operation == "merge_states":
                v_out, s_out = merge(v.contiguous(), s.contiguous(), **keywords)
            elif self.operation == "variable_length_merge_states":
                count, (rows, _, _, dim) = v.shape[1], v.shape
                indptr = torch.arange(rows + 1, dtype=torch.int32, device=v.device) * count
                v_out, s_out = merge(v.reshape(-1, 1, dim), s.reshape(-1, 1), indptr, **keywords)
            else:
                turn = implementation.s_layout == "HS"
                sums = [(s[:, i].t() if turn else s[:, i]).contiguous() for i in (0, 1)]
                given = v[:, 0].contiguous(), sums[0], v[:, 1].contiguous(), sums[1]
                if self.operation == "merge_state":
                    v_out, s_out = merge(*given, **keywords)
                else:
                    v_out, s_out = given[0].clone(), given[1].clone()
                    merge(v_out, s_out, *given[2:], None, **keywords)
                s_out = s_out.t() if turn else s_out
        return v_out.reshape(len(self.s), -1), s_out.reshape(-1)


def head_dim(implementation: Implementation, wished: int) -> int:
    """The head size to ask with: as wished if the implementation takes any, or else the least that it takes."""
    return wished if implementation.head_dims is None else min(implementation.head_dims)


def filled_to(v: torch.Tensor, dim: int) -> torch.Tensor:
    """v [R, N, d] with its columns used again up to `dim` of them."""
    return v if v.shape[2] == dim else v.repeat(1, 1, -(-dim // v.shape[2]))[:, :, :dim]
