"""xFormers' `fmha.merge_attentions`, the reduction of its split-KV decoding as a function: Triton, in base e.

v [N, batch, S, H, D] and s [N, batch, H, S], all N states in one tile. Its kernel is given the strides of every axis.
Read in xformers 0.0.35; the merge needs none of its compiled parts.
"""

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "xformers"
require("xformers", PACKAGE)
from xformers.ops.fmha import merge_attentions  # noqa: E402  # after what says that it is missing


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The N states of v [S, N, H, D], s [S, N, H], as views with N first."""
    out, lse = merge_attentions(v.transpose(0, 1)[:, None], s.permute(1, 2, 0)[:, None])
    assert lse is not None
    return out[0], lse[0].t()


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states, stacked."""
    return merge_states(torch.stack((v_a, v_b), 1), torch.stack((s_a, s_b), 1))


implementation = Implementation(
    name="xformers",
    merge_state=merge_state,
    merge_states=merge_states,
    lse_base="e",
    devices=("cuda",),
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    differs=(("test_nothing_gives_nothing", "N = 0 does not compile, and is not documented"),),
)
