"""vLLM's Triton merge, `vllm.v1.attention.ops.triton_merge_attn_states.merge_attn_states`, in base e.

v [S, H, D] contiguous but for the stride of H, s [H, S], into tensors that it is given. s = +inf means an empty state, as
FlashAttention-2 writes it; two empty states give zeros. Read in vllm 0.33.0; the module is loaded without the rest of
vLLM, which it asks for Triton and for the dtype of an FP8 output.
"""

from types import SimpleNamespace

import torch
import triton

from implementations import alone
from mergelaws.implementation import Implementation

PACKAGE = "vllm"
_PLATFORM = SimpleNamespace(current_platform=SimpleNamespace(fp8_dtype=lambda: torch.float8_e4m3fn))
_TRITON = SimpleNamespace(triton=triton, tl=triton.language)
merge_attn_states = alone(
    "vllm.v1.attention.ops.triton_merge_attn_states",
    PACKAGE,
    {"vllm.platforms": _PLATFORM, "vllm.triton_utils": _TRITON},
).merge_attn_states


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefix and suffix, s [H, S]."""
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    merge_attn_states(v, v_a, s_a, v_b, s_b, s)
    return v, s


implementation = Implementation(
    name="vllm_triton",
    merge_state=merge_state,
    lse_base="e",
    s_layout="HS",
    devices=("cuda",),
    strided=False,
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    differs=(
        (
            "test_an_lse_that_is_none_poisons_its_row_and_no_other",
            "s = NaN beside an empty state counts as empty; NaN is not documented",
        ),
    ),
)
