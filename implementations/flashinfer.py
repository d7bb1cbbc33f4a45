"""FlashInfer's CUDA merges, `flashinfer.merge_state` and its siblings, in base 2, compiled by FlashInfer on first use.

v [S, H, D] or [S, N, H, D], s [S, H] or [S, N, H], contiguous: its checks say so. D is 64, 128, 256 or 512, v float16 or
bfloat16: its dispatch has no others. A block has a thread for each 16 bytes of a position's heads (32 threads a head from
D = 256 on), 1,024 at most, so up to 32 heads are claimed. Read in flashinfer-python 0.7.4.
"""

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "flashinfer-python"
require("flashinfer", PACKAGE)
import flashinfer  # noqa: E402  # after what says that it is missing


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states."""
    v, s = flashinfer.merge_state(v_a, s_a, v_b, s_b)
    return v, s


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None
) -> None:
    """The other state into the first."""
    flashinfer.merge_state_in_place(v, s, v_other, s_other, mask)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """N states."""
    out, lse = flashinfer.merge_states(v, s)
    return out, lse


_ALIGNED = "a contiguous tensor that begins off a 16-byte boundary is a CUDA error, misaligned address; alignment is not documented"
_ZERO = "sizes of zero are refused by the launch, and not documented"

implementation = Implementation(
    name="flashinfer",
    merge_state=merge_state,
    merge_state_in_place=merge_state_in_place,
    merge_states=merge_states,
    dtypes=("float16", "bfloat16"),
    head_dims=(64, 128, 256, 512),
    max_heads=32,
    devices=("cuda",),
    strided=False,
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    differs=(
        ("test_strides_do_not_matter_in_place", _ALIGNED),
        ("test_strides_of_many_states_do_not_matter", _ALIGNED),
        ("test_strides_of_two_states_do_not_matter", _ALIGNED),
        (
            "test_an_lse_that_is_none_poisons_its_row_and_no_other",
            "s = inf gives s = NaN and a finite v; what it means is not documented",
        ),
        ("test_nothing_gives_nothing", _ZERO),
    ),
)
