"""How a property fails: one exception that says what went in, what should have come out and what did."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from properties import deadline


@dataclass(frozen=True)
class Call:
    """One call of the implementation under test: its arguments by name, and the base of s."""

    operation: str
    inputs: dict[str, torch.Tensor]
    base: int | str


@dataclass(frozen=True)
class Evidence:
    """The smallest set of numbers that shows the fault: one row's states, the tensors of the call, or all calls made."""

    operation: str
    claim: str
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    base: int | str = 2
    expected: str = ""
    actual: str = ""
    ratio: float | None = None
    calls: tuple[Call, ...] = ()


class LawBroken(AssertionError):
    """A law does not hold for the implementation under test."""

    def __init__(self, message: str, evidence: Evidence) -> None:
        super().__init__(message)
        self.evidence = evidence
        deadline.has_failed()


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bits of a float tensor as integers of the same width, so that NaN and -0.0 can be compared."""
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(width)


def spelled(tensor: torch.Tensor) -> str:
    """The numbers of a small tensor in shortest decimal form, and their bits."""
    flat = tensor.detach().cpu().reshape(-1)[:8]
    width = 2 * flat.element_size()
    mask = (1 << (8 * flat.element_size())) - 1
    decimals = ", ".join(_shortest(value, tensor.dtype) for value in flat)
    words = " ".join(f"{int(word) & mask:0{width}x}" for word in bits(flat))
    more = "" if tensor.numel() <= 8 else f", and {tensor.numel() - 8} more"
    return f"[{decimals}{more}]  bits {words}"


def _shortest(value: torch.Tensor, dtype: torch.dtype) -> str:
    number = float(value)
    for digits in range(1, 17):
        text = f"{number:.{digits}g}"
        if number != number or torch.tensor(float(text), dtype=dtype) == value:
            return text
    return repr(number)
