"""ring-flash-attention's accumulation, `ring_flash_attn.utils.update_out_and_lse`: torch code, in base e, out in float32.

Blocks are v [batch, S, H, D] and s [batch, H, S]. The package's `__init__` wants flash-attn, which `utils` does not.
Read in ring-flash-attn 0.1.8. What the v of an empty state may hold is not said, so it is kept finite.
"""

import torch

from implementations import alone
from implementations._sigmoid import DIFFERS, KNOWN_FAILURES
from mergelaws.implementation import Implementation

PACKAGE = "ring-flash-attn"
update_out_and_lse = alone("ring_flash_attn.utils", PACKAGE).update_out_and_lse


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The N states of v [S, N, H, D], s [S, N, H] in turn."""
    out = lse = None
    for i in range(v.shape[1]):
        out, lse = update_out_and_lse(out, lse, v[:, i][None], s[:, i].t()[None])
    assert out is not None and lse is not None
    return out[0].to(v.dtype), lse[0, ..., 0]


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two blocks."""
    return merge_states(torch.stack((v_a, v_b), 1), torch.stack((s_a, s_b), 1))


implementation = Implementation(
    name="ring_flash_attention",
    merge_state=merge_state,
    merge_states=merge_states,
    lse_base="e",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    known_failures=KNOWN_FAILURES,
    differs=DIFFERS,
)
