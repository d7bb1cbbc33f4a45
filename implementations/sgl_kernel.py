"""SGLang's CUDA merge, `sgl_kernel.merge_state_v2`, in base e.

v [S, H, D], s [S, H], read as contiguous whatever their strides. It loads 16 bytes at a time, so D is a multiple of 8 with
16-bit v and of 4 with float32: multiples of 8 are claimed. An infinite s of either sign means an empty state. The library
for the GPU is loaded as the package's `__init__` does, without the package's other libraries.
"""

import torch

from implementations import alone
from mergelaws.implementation import Implementation

PACKAGE = "sglang-kernel"
alone("sgl_kernel.load_utils", PACKAGE)._load_architecture_specific_ops()
merge_state_v2 = alone("sgl_kernel.attention", PACKAGE).merge_state_v2


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefix and suffix."""
    v, s = merge_state_v2(v_a, s_a, v_b, s_b)
    return v, s


_ALIGNED = "a contiguous tensor that begins off a 16-byte boundary is a CUDA error, misaligned address; alignment is not documented"
_ZERO = "the launch for S = 0 or H = 0 is a CUDA error, invalid argument; sizes of zero are not documented"

implementation = Implementation(
    name="sgl_kernel",
    merge_state=merge_state,
    lse_base="e",
    head_dims=(8, 16, 24, 64, 80, 96, 112, 128, 160, 192, 256, 512, 576),
    devices=("cuda",),
    strided=False,
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    differs=(
        ("test_strides_of_two_states_do_not_matter", _ALIGNED),
        ("test_nothing_gives_nothing", _ZERO),
    ),
)
