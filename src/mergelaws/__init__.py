"""Merging attention states (v, s), and the laws that every implementation of it is held to."""

from mergelaws import backend  # isort: skip  # before Triton is imported: it decides whether kernels are interpreted
from mergelaws import library  # noqa: F401  # registers the torch.library operators
from mergelaws.base import from_flash_attention_2, to_base2, to_natural
from mergelaws.implementation import Implementation
from mergelaws.operations import merge_state, merge_state_in_place, merge_states, variable_length_merge_states
from mergelaws.state import AttentionState

__version__ = "0.1.0"

__all__ = [
    "AttentionState",
    "Implementation",
    "backend",
    "from_flash_attention_2",
    "merge_state",
    "merge_state_in_place",
    "merge_states",
    "to_base2",
    "to_natural",
    "variable_length_merge_states",
]
