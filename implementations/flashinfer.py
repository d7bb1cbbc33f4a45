"""FlashInfer's CUDA kernels, `flashinfer.merge_state` and its siblings, in base 2; compiled by FlashInfer on first use.

A block has a thread for each 16 bytes of a position, 1024 at most: with 16-bit v that is H * D / 8, so that 32 heads are
claimed for D up to 256. Not run yet: written from the signatures of flashinfer-python 0.7.4.
"""

from typing import Any

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "flashinfer-python"
require("flashinfer", PACKAGE)


def merge_state(v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor) -> Any:
    """Two states."""
    import flashinfer  # noqa: PLC0415  # seconds, and only where it is called

    return flashinfer.merge_state(v_a, s_a, v_b, s_b)


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None
) -> None:
    """The other state into the first."""
    import flashinfer  # noqa: PLC0415

    flashinfer.merge_state_in_place(v, s, v_other, s_other, mask)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> Any:
    """N states."""
    import flashinfer  # noqa: PLC0415

    return flashinfer.merge_states(v, s)


implementation = Implementation(
    name="flashinfer",
    merge_state=merge_state,
    merge_state_in_place=merge_state_in_place,
    merge_states=merge_states,
    dtypes=("float16", "bfloat16"),
    head_dims=(64, 128, 256),
    max_heads=32,
    devices=("cuda",),
    strided=False,
    empty_v="finite",
    nan_lse="any",
)
