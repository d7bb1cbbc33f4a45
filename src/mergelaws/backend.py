"""Where the kernels run: on a CUDA device, or under Triton's interpreter where there is none.

Triton decides at import time whether kernels are compiled or interpreted, so this module has to be imported before
Triton is. `import mergelaws` sees to that.
"""

from __future__ import annotations

import os
import sys

import torch


def _interpret() -> bool:
    """Whether kernels are interpreted, having told Triton so. The user's own TRITON_INTERPRET is left as it is."""
    wish = os.environ.get("TRITON_INTERPRET")
    if wish is not None:
        return wish.lower() in ("1", "true", "on", "yes", "y")
    if torch.cuda.is_available():
        return False
    if "triton" in sys.modules:
        raise ImportError(
            "there is no CUDA device and triton was imported before mergelaws, without its interpreter; "
            "import mergelaws first, or set TRITON_INTERPRET=1 in the environment"
        )
    os.environ["TRITON_INTERPRET"] = "1"
    return True


INTERPRETED = _interpret()
DEVICE_TYPE = "cpu" if INTERPRETED and not torch.cuda.is_available() else "cuda"


def describe() -> str:
    """One line: the device that kernels run on, or the interpreter."""
    if DEVICE_TYPE == "cuda":
        name = torch.cuda.get_device_name()
        return f"{name} (Triton's interpreter)" if INTERPRETED else name
    return "CPU (Triton's interpreter)"
