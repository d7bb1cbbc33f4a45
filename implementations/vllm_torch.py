"""vLLM's torch merge, `_merge_attn_states_torch` of `vllm.v1.attention.ops.merge_attn_states`: its path for CPUs, in base e.

v [S, H, D], s [H, S], into tensors that it is given. s = +inf means an empty state there. Two empty states give zeros.
Read in vllm 0.33.0; the module is loaded without the rest of vLLM, which it asks for the platform alone.
"""

from types import SimpleNamespace

import torch

from implementations import alone
from mergelaws.implementation import Implementation

PACKAGE = "vllm"
_PLATFORM = SimpleNamespace(current_platform=SimpleNamespace(is_cpu=lambda: True))
_merge_attn_states_torch = alone(
    "vllm.v1.attention.ops.merge_attn_states", PACKAGE, {"vllm.platforms": _PLATFORM}
)._merge_attn_states_torch


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefix and suffix, s [H, S]."""
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    _merge_attn_states_torch(v, v_a, s_a, v_b, s_b, s)
    return v, s


implementation = Implementation(
    name="vllm_torch",
    merge_state=merge_state,
    lse_base="e",
    s_layout="HS",
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
)
