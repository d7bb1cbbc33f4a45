"""What a sweep was run with: a killed one is resumed only by the same code, or its first rows would never be asked of the new."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import triton

import mergelaws

_JUDGES = "oracles", "properties", "implementations"


def fingerprint(target: str, clone: Path, device: str) -> str:
    """A digest of the files of this package, of the judges, and of a loaded `target`, of PyTorch, Triton and the device.

    Of a target of one's own it is the file that is named; what that file imports from elsewhere is not looked at.
    """
    digest = hashlib.sha256()
    machine = torch.cuda.get_device_name() if device == "cuda" else device
    for words in (torch.__version__, triton.__version__, machine):
        digest.update(f"{words}\n".encode())
    for file in _files(target, clone):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _files(target: str, clone: Path) -> Iterator[Path]:
    package = Path(mergelaws.__file__).parent
    for folder in (package, *(clone / name for name in _JUDGES)):
        # a regression that was applied is no change
        kept = (file for file in folder.rglob("*.py") if not file.name.startswith("test_"))
        yield from sorted(file for file in kept if folder != package or "suite" not in file.relative_to(package).parts)
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        yield Path(place)
    elif getattr(sys.modules.get(place), "__file__", None):
        yield Path(str(sys.modules[place].__file__))
