"""SGLang's Triton merge, `sglang.kernels.ops.attention.merge_state.merge_state_triton`, in base e.

v [S, H, D], s [S, H], read as contiguous whatever their strides. s = +inf means an empty state there. Read in sglang
0.5.23, which takes it where its CUDA merge does not take D; the module is loaded without the rest of SGLang.
"""

import torch

from implementations import alone
from mergelaws.implementation import Implementation

PACKAGE = "sglang"
merge_state_triton = alone("sglang.kernels.ops.attention.merge_state", PACKAGE).merge_state_triton


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefix and suffix."""
    v, s = merge_state_triton(v_a, s_a, v_b, s_b)
    return v, s


implementation = Implementation(
    name="sglang_triton",
    merge_state=merge_state,
    lse_base="e",
    devices=("cuda",),
    strided=False,
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
)
