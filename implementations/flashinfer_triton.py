"""FlashInfer's Triton merges, `flashinfer.triton.cascade`, in base 2.

v [S, H, D], [S, N, H, D] or [nnz, H, D], s without the D, contiguous and on a Hopper GPU: its checks say so. No dtype or
size is refused. Read in flashinfer-python 0.7.4. Its kernels go through v element by element, and no run of the laws on it
has been finished yet.
"""

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "flashinfer-python"
require("flashinfer", PACKAGE)
from flashinfer.triton import cascade  # noqa: E402  # after what says that it is missing


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states."""
    v, s = cascade.merge_state(v_a, s_a, v_b, s_b)
    return v, s


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None
) -> None:
    """The other state into the first."""
    cascade.merge_state_in_place(v, s, v_other, s_other, mask)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """N states."""
    out, lse = cascade.merge_states(v, s)
    return out, lse


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Segments of states."""
    out, lse = cascade.variable_length_merge_states(v, s, indptr)
    return out, lse


implementation = Implementation(
    name="flashinfer_triton",
    merge_state=merge_state,
    merge_state_in_place=merge_state_in_place,
    merge_states=merge_states,
    variable_length_merge_states=variable_length_merge_states,
    devices=("cuda",),
    strided=False,
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
)
