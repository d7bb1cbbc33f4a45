"""cache-dit's Triton merge for ring attention, `fused_merge_attn_states`, in base e.

v [batch, S, H, D], s [batch, S, H, 1]; the operator makes them contiguous. s = +inf means an empty state there. Read in
cache-dit 1.5.3; `cache_dit.kernels.triton` is loaded without the rest of the package, which wants diffusers.
"""

import torch

from implementations import alone
from mergelaws.implementation import Implementation

PACKAGE = "cache-dit"
fused_merge_attn_states = alone("cache_dit.kernels.triton", PACKAGE).fused_merge_attn_states


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The previous state and the next."""
    out, lse = fused_merge_attn_states(v_a[None], s_a[None, ..., None], v_b[None], s_b[None, ..., None])
    return out[0], lse[0, ..., 0]


implementation = Implementation(
    name="cache_dit",
    merge_state=merge_state,
    lse_base="e",
    devices=("cuda",),
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
)
