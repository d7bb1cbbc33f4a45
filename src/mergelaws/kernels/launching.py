"""Launching a kernel on the device of its tensors, compiled or interpreted."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from mergelaws.backend import INTERPRETED


def launch(kernel: Any, grid: tuple[int, ...], device: torch.device, *arguments: Any, **constants: Any) -> None:
    """Runs `kernel` over `grid` on `device`, in the current stream."""
    if INTERPRETED:
        with numpy.errstate(all="ignore"):  # NumPy warns where IEEE 754 has an answer, and the kernels use that answer
            kernel[grid](*arguments, **constants)
    elif device.index == torch.cuda.current_device():
        kernel[grid](*arguments, **constants)
    else:
        with torch.cuda.device(device):
            kernel[grid](*arguments, **constants)
