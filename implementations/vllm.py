"""vLLM's CUDA merge, `torch.ops._C.merge_attn_states` of its stable-ABI library, in base e.

v [S, H, D] contiguous but for the stride of H, s [H, S], into tensors that it is given. It loads 16 bytes at a time, so D
is a multiple of 8 with 16-bit v and of 4 with float32: multiples of 8 are claimed. An infinite s of either sign means an
empty state; of two, the first is given back, whose v is expected to be zeros. Read in vllm 0.33.0; the library is loaded
without the rest of vLLM.
"""

import importlib.util
from pathlib import Path

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "vllm"
require("vllm", PACKAGE)
_spec = importlib.util.find_spec("vllm")
assert _spec is not None and _spec.submodule_search_locations is not None
torch.ops.load_library(str(Path(_spec.submodule_search_locations[0]) / "_C_stable_libtorch.abi3.so"))


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefix and suffix, s [H, S]."""
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    torch.ops._C.merge_attn_states(v, s, v_a, s_a, v_b, s_b, None, None)
    return v, s


_FIRST = "of two empty states the first one is given back, whose v is expected to be zeros"
_ALIGNED = "a contiguous tensor that begins off a 16-byte boundary is a CUDA error, misaligned address; alignment is not documented"
_ZERO = "the launch for S = 0 or H = 0 is a CUDA error, invalid argument; sizes of zero are not documented"

implementation = Implementation(
    name="vllm",
    merge_state=merge_state,
    lse_base="e",
    s_layout="HS",
    head_dims=(8, 16, 24, 64, 80, 96, 112, 128, 160, 192, 256, 512, 576),
    devices=("cuda",),
    strided=False,
    plus_inf="empty",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    differs=(
        ("test_two_states_merge_within_the_bound", _FIRST),
        ("test_an_lse_that_is_none_poisons_its_row_and_no_other", _FIRST),
        ("test_merging_is_commutative", _FIRST),
        ("test_merging_is_associative", _FIRST),
        ("test_poison_in_other_rows_stays_there", _FIRST),
        ("test_the_default_dtype_does_not_matter", _FIRST),
        ("test_strides_of_two_states_do_not_matter", _ALIGNED),
        ("test_nothing_gives_nothing", _ZERO),
    ),
)
