"""Tensors whose memory does not hold their elements as kernels see them: refused by name, not read.

These are no cases of law 17: an implementation in plain PyTorch may take a lazily negated view, and one that does not look
for freed memory ends the process.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import mergelaws
from mergelaws.random_calls import NAMES

Change = Callable[[torch.Tensor], torch.Tensor]


def _freed(tensor: torch.Tensor) -> torch.Tensor:
    copy = tensor.clone()
    copy.untyped_storage().resize_(0)
    return copy


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    copy = tensor.clone()
    copy.untyped_storage().resize_(copy.untyped_storage().nbytes() - 1)
    return copy


def _negated(tensor: torch.Tensor) -> torch.Tensor:
    return torch.complex(tensor, tensor).conj().imag


CASES = [(operation, at) for operation, names in NAMES.items() for at in range(len(names)) if names[at] != "mask"]


@pytest.mark.parametrize(
    ("change", "says"), ((_freed, "0 bytes of memory; it must have"), (_cut, "bytes of memory; it must have"),
                         (_negated, "negates lazily; it must be resolved")),
)  # fmt: skip
@pytest.mark.parametrize(("operation", "at"), CASES)
def test_a_tensor_without_its_elements_in_memory_is_refused(operation: str, at: int, change: Change, says: str) -> None:
    """Also after the same call with what it should have been, whose plan is kept."""
    v, s = (
        torch.ones(2, 3, 4, device=mergelaws.backend.DEVICE_TYPE),
        torch.ones(2, 3, device=mergelaws.backend.DEVICE_TYPE),
    )
    arguments = {
        "merge_state": [v, s, v.clone(), s.clone()],
        "merge_state_in_place": [v, s, v.clone(), s.clone()],
        "merge_states": [torch.stack([v, v], 1), torch.stack([s, s], 1)],
        "variable_length_merge_states": [v, s, torch.tensor([0, 1, 2], device=v.device)],
    }[operation]
    name, wrong = NAMES[operation][at], list(arguments)
    if change is _negated and not arguments[at].is_floating_point():
        pytest.skip("an integer tensor cannot negate lazily")
    getattr(mergelaws, operation)(*arguments)
    wrong[at] = change(arguments[at])
    with pytest.raises(ValueError, match=rf"^{name} .*{says}"):
        getattr(mergelaws, operation)(*wrong)
