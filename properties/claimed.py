"""What an implementation's claims come to: the arithmetic that it is held to, and what an s means to it."""

from __future__ import annotations

import math

import torch

from mergelaws.implementation import Implementation
from oracles.bounds import Arithmetic


def arithmetic_of(implementation: Implementation, base: int | str) -> Arithmetic:
    """What the implementation claims to compute with, for s in `base` (2 or "e")."""
    return Arithmetic(base, implementation.exp_error, implementation.log_error, implementation.exp_chain)


def as_meant(s: torch.Tensor, implementation: Implementation) -> torch.Tensor:
    """s, of any shape, under the implementation's policies: what it takes for an empty state is -inf."""
    if implementation.plus_inf == "empty":
        s = torch.where(s.isposinf(), -math.inf, s)
    if implementation.nan_lse == "empty":
        s = torch.where(s.isnan(), -math.inf, s)
    return s
