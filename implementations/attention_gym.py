"""attention-gym's `merge_attention`: torch code, in base e. Its result is float32 where s is; it is rounded to v's dtype.

Run on the CPU.
"""

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "attn-gym"
require("attn_gym", PACKAGE)
from attn_gym.utils import merge_attention  # noqa: E402  # after what says that it is missing


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states, v [S, H, D] and s [S, H]."""
    v, s = merge_attention(v_a, s_a, v_b, s_b)
    return v.to(v_a.dtype), s


implementation = Implementation(
    name="attention_gym",
    merge_state=merge_state,
    lse_base="e",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),  # -0.0 merged with an empty state is 0.0
)
