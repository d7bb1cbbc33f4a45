"""Functions that kernels call.

Compiled, they are inlined. Under the interpreter a nested call of a jit function patches Triton's whole language module
anew, at about 2 ms; there they stay plain Python functions, for which the kernel's own patch already serves.
"""

from __future__ import annotations

from typing import Any

import triton

from mergelaws.backend import INTERPRETED


def inlined(function: Any) -> Any:
    """Makes `function` callable from a kernel."""
    return function if INTERPRETED else triton.jit(function)
