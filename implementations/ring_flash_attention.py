"""ring-flash-attention's accumulation, `ring_flash_attn.utils.update_out_and_lse`: torch code, in base e, out in float32.

The package's own import wants flash-attn; its module `utils` does not, so that file is loaded alone. Run on the CPU.
"""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "ring-flash-attn"
require("ring_flash_attn", PACKAGE)


@functools.cache
def _utils() -> Any:
    package = importlib.util.find_spec("ring_flash_attn")
    assert package is not None and package.origin is not None
    spec = importlib.util.spec_from_file_location("ring_flash_attn_utils", Path(package.origin).with_name("utils.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The N states of v [S, N, H, D], s [S, N, H] in turn: blocks are [batch = 1, S, H, D] and [1, H, S]."""
    out = lse = None
    for i in range(v.shape[1]):
        out, lse = _utils().update_out_and_lse(out, lse, v[:, i][None], s[:, i].t()[None])
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
)
