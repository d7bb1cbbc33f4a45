"""PyTorch's `_SDPAMerger`, which context parallelism merges with: a private class, torch code, in base e.

It accumulates out - sigmoid(b - a) (out - block) and lse - logsigmoid(a - b), in float32 from the second state on.
Read in torch 2.13.0.
"""

import torch
from torch.distributed.tensor.experimental._context_parallel._attention import _SDPAMerger

from implementations._sigmoid import DIFFERS, KNOWN_FAILURES
from mergelaws.implementation import Implementation


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Steps over the N states of v [S, N, H, D], s [S, N, H], each as [batch = 1, H, S, D] and [1, H, S]."""
    merger = _SDPAMerger(convert_to_f32=True, seq_dim=2)
    for i in range(v.shape[1]):
        merger.step(v[:, i].transpose(0, 1)[None], s[:, i].t()[None], partial=False)
    out, lse = merger.results()
    return out[0].transpose(0, 1), lse[0].t()


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two steps."""
    return merge_states(torch.stack((v_a, v_b), 1), torch.stack((s_a, s_b), 1))


implementation = Implementation(
    name="sdpa_merger",
    merge_state=merge_state,
    merge_states=merge_states,
    lse_base="e",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    known_failures=KNOWN_FAILURES,
    differs=DIFFERS,
)
