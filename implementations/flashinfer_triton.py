"""FlashInfer's Triton merges, `flashinfer.triton.cascade`, in base 2; its wrapper demands a Hopper GPU.

Not run yet: written from the source of flashinfer-python 0.7.4. Under Triton's interpreter its kernels take a program step
for every element of v, too slow for the laws.
"""

from typing import Any

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "flashinfer-python"
require("flashinfer", PACKAGE)


def merge_state(v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor) -> Any:
    """Two states."""
    from flashinfer.triton import cascade  # noqa: PLC0415  # seconds, and only where it is called

    return cascade.merge_state(v_a, s_a, v_b, s_b)


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None
) -> None:
    """The other state into the first."""
    from flashinfer.triton import cascade  # noqa: PLC0415

    cascade.merge_state_in_place(v, s, v_other, s_other, mask)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> Any:
    """N states."""
    from flashinfer.triton import cascade  # noqa: PLC0415

    return cascade.merge_states(v, s)


def variable_length_merge_states(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor) -> Any:
    """Segments of states."""
    from flashinfer.triton import cascade  # noqa: PLC0415

    return cascade.variable_length_merge_states(v, s, indptr)


implementation = Implementation(
    name="flashinfer_triton",
    merge_state=merge_state,
    merge_state_in_place=merge_state_in_place,
    merge_states=merge_states,
    variable_length_merge_states=variable_length_merge_states,
    devices=("cuda",),
    strided=False,
    empty_v="finite",
    zero_sizes=False,
)
