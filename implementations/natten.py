"""NATTEN's `merge_attentions`, which joins the parts of cross-neighborhood attention: torch code, in base e.

A list of v [batch, S, H, D] and a list of s [batch, S, H], two at least, contiguous: its checks say so. Called without
torch.compile and without the autograd function. Read in natten 0.21.7, which installs without its CUDA library.
"""

import torch

from implementations import require
from implementations._sigmoid import DIFFERS, KNOWN_FAILURES
from mergelaws.implementation import Implementation

PACKAGE = "natten"
require("natten", PACKAGE)
from natten import merge_attentions  # noqa: E402  # after what says that it is missing


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The N states of v [S, N, H, D], s [S, N, H]; one state alone is refused, so it is given back."""
    if v.shape[1] == 1:
        return v[:, 0].clone(), s[:, 0].clone()
    outputs, lses = ([part[None].contiguous() for part in tensor.unbind(1)] for tensor in (v, s))
    out, lse = merge_attentions(outputs, lses, torch_compile=False, use_autograd_fix=False)
    return out[0], lse[0]


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states."""
    out, lse = merge_attentions(
        [v_a[None], v_b[None]], [s_a[None], s_b[None]], torch_compile=False, use_autograd_fix=False
    )
    return out[0], lse[0]


implementation = Implementation(
    name="natten",
    merge_state=merge_state,
    merge_states=merge_states,
    lse_base="e",
    strided=False,
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    known_failures=KNOWN_FAILURES,
    differs=DIFFERS,
)
