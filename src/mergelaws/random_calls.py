"""Random calls of the public operations, most of them wrong: each gives a result, or an error that names an argument.

Call k of a seed is always the same. `python -m mergelaws.random_calls SEED FIRST STOP FILE` makes the calls FIRST..STOP-1,
writes the number of each to FILE before it is made, and prints what came of them as JSON; `mergelaws fuzz` watches it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mergelaws  # before Triton  # isort: skip
import numpy
import torch

from mergelaws import suite

NAMES = {
    "merge_state": ("v_a", "s_a", "v_b", "s_b"),
    "merge_state_in_place": ("v", "s", "v_other", "s_other", "mask"),
    "merge_states": ("v", "s"),
    "variable_length_merge_states": ("v", "s", "indptr"),
}
DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool,
    torch.complex64, torch.float8_e4m3fn,
)  # fmt: skip

Random = random.Random
Call = tuple[str, list[Any], dict[str, Any]]


def call_of(seed: int, number: int) -> Call:
    """(operation, arguments, keywords): a call that is right, with up to three things done to it."""
    draw = Random(f"{seed} {number}")
    operation = draw.choice(list(NAMES))
    arguments = _right(draw, operation)
    keywords: dict[str, Any] = {} if draw.random() < 0.7 else {"lse_base": draw.choice([2, "e"])}
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        kind = draw.random()
        at = draw.randrange(len(arguments))
        if kind < 0.85:
            arguments[at] = _spoiled(draw, arguments[at], arguments)
        elif kind < 0.92:
            keywords = {
                draw.choice(["lse_base", "lse_base", "base"]): draw.choice([2, "e", 10, None, 2.0, True, "2", [2]])
            }
        elif kind < 0.96 and len(arguments) > 1:
            del arguments[at]
        else:
            arguments.insert(at, arguments[at])
    return operation, arguments, keywords


def _right(draw: Random, operation: str) -> list[Any]:
    rows, heads, dim, count = (
        draw.choice([0, 1, 2, 3]),
        draw.choice([0, 1, 2, 5]),
        draw.choice([1, 3, 8]),
        draw.choice([0, 1, 2, 5]),
    )
    shape = {"merge_states": (rows, count, heads), "variable_length_merge_states": (rows * count, heads)}.get(
        operation, (rows, heads)
    )
    dtype, generator = draw.choice(DTYPES[:3]), torch.Generator().manual_seed(draw.randrange(2**32))

    def state() -> list[Any]:
        v = torch.randn((*shape, dim), generator=generator).to(dtype)
        return [
            v.to(mergelaws.backend.DEVICE_TYPE),
            torch.randn(shape, generator=generator).to(mergelaws.backend.DEVICE_TYPE),
        ]

    if operation == "merge_states":
        return state()
    if operation == "variable_length_merge_states":
        ends = torch.arange(rows + 1, dtype=draw.choice([torch.int32, torch.int64])) * count
        return [*state(), ends.to(mergelaws.backend.DEVICE_TYPE)]
    if operation == "merge_state":
        return state() + state()
    mask = draw.choice([None, torch.rand(rows, generator=generator) < 0.5])
    return [*state(), *state(), mask if mask is None else mask.to(mergelaws.backend.DEVICE_TYPE)]


def _spoiled(draw: Random, value: Any, others: list[Any]) -> Any:
    """Something else in the place of `value`: often a tensor that is nearly like it, at times anything at all."""
    if not isinstance(value, torch.Tensor) or draw.random() < 0.1:
        return draw.choice([None, 3, -1.5, "v", [1, 2], (), {}, numpy.ones(3), object(), torch.ones(2), *others])
    if value.layout == torch.strided and value.device.type != "meta" and value.numel() and not value.data_ptr():
        return value  # freed already: PyTorch itself would read what is not there
    try:
        return draw.choice(_CHANGES)(draw, value)
    except (
        RuntimeError,
        IndexError,
        ValueError,
        TypeError,
        NotImplementedError,
        AssertionError,
    ):  # not every tensor has every change
        return value


def _strided(draw: Random, x: torch.Tensor) -> torch.Tensor:
    """The same shape over the same memory with other strides, overlapping ones among them."""
    strides = [draw.choice([0, 1, 2, step]) for step in x.stride()]
    reach = 1 + sum(step * max(0, size - 1) for step, size in zip(strides, x.shape, strict=True))
    return x.as_strided(x.shape, strides) if reach <= x.numel() else x


def _freed(_: Random, x: torch.Tensor) -> torch.Tensor:
    copy = x.clone()
    copy.untyped_storage().resize_(0)
    return copy


def _ends(draw: Random, x: torch.Tensor) -> torch.Tensor:
    """Entries that an indptr may not have, and others."""
    entries = [draw.choice([-(2**31), -1, 0, 1, 2, 5, 10, 2**31 - 1]) for _ in range(draw.choice([0, 1, 2, 4]))]
    entries = sorted(entries) if draw.random() < 0.5 else entries
    return torch.tensor(entries, dtype=draw.choice([torch.int32, torch.int64]), device=x.device)


_CHANGES: tuple[Callable[[Random, torch.Tensor], Any], ...] = (
    lambda draw, x: x.to(draw.choice(DTYPES)),
    lambda draw, x: x.to("meta"),
    lambda draw, x: x.to_sparse(),
    lambda draw, x: x.transpose(draw.randrange(x.ndim), draw.randrange(x.ndim)),
    lambda draw, x: x.transpose(draw.randrange(x.ndim), draw.randrange(x.ndim)).contiguous(),
    lambda draw, x: x.narrow(draw.randrange(x.ndim), 0, 1),
    lambda draw, x: x.narrow(draw.randrange(x.ndim), 0, 0),
    lambda draw, x: x.repeat_interleave(2, draw.randrange(x.ndim)),
    lambda draw, x: x.repeat_interleave(2, x.ndim - 1)[..., ::2],
    lambda draw, x: x.unsqueeze(draw.randrange(x.ndim + 1)),
    lambda draw, x: x.select(draw.randrange(x.ndim), 0),
    lambda draw, x: x.flatten(),
    lambda draw, x: x[:1].expand(x.shape),
    lambda draw, x: x.flip(draw.randrange(x.ndim)),
    lambda draw, x: x.cpu().numpy(),
    lambda draw, x: x.tolist(),
    lambda draw, x: torch.nn.Parameter(x, requires_grad=draw.random() < 0.5),
    lambda draw, x: torch.complex(x, x).conj().imag,
    lambda draw, x: torch.full_like(x, draw.choice([float("nan"), float("inf"), -float("inf"), 3e38, -0.0])),
    _strided,
    _freed,
    _ends,
)


def _has_memory(value: Any) -> bool:
    """Whether `value` is a plain tensor of numbers that can be copied to guarded memory."""
    return (
        type(value) is torch.Tensor
        and value.layout == torch.strided
        and value.device.type == mergelaws.backend.DEVICE_TYPE
        and value.is_floating_point()
        and not value.is_neg()
        and value.numel() > 0
        and value.untyped_storage().nbytes() > 0
    )


def outcome(call: Call) -> str:
    """What comes of a call: "result", "refused", or what is wrong with its answer, in words."""
    from properties.memory import Guarded, GuardedAllocations  # noqa: PLC0415  # importable once the suite's directory is

    operation, arguments, keywords = call
    given, guarded = list(arguments), {}
    for at, value in enumerate(arguments):
        if _has_memory(value):
            guarded[at] = Guarded.copy_of(value)
            given[at] = guarded[at].tensor
            guarded[at].remember()
    written = (0, 1) if operation == "merge_state_in_place" else ()
    try:
        with GuardedAllocations() as allocations:
            result = getattr(mergelaws, operation)(*given, **keywords)
    except (TypeError, ValueError) as error:
        if any(memory.changed() for memory in guarded.values()):
            return f"refused after it had written: {error}"
        words = str(error)
        named = any(f"{name} " in words or f"'{name}'" in words for name in (*NAMES[operation], "lse_base", "base"))
        clear = "must" in words or "argument" in words  # Python's own words for a missing or an unexpected argument
        is_clear = (named and clear) or "positional argument" in words
        return "refused" if is_clear else f"unclear: {type(error).__name__}: {words}"
    except Exception as error:  # whatever else it is, it is not clear
        return f"unclear: {type(error).__name__}: {error}"
    if allocations.overrun() or any(memory.changed_outside() for memory in guarded.values()):
        return "wrote beside its outputs"
    if any(memory.changed() for at, memory in guarded.items() if at not in written):
        return "wrote to an input"
    if operation != "merge_state_in_place" and not (
        result[0].dtype == given[0].dtype and result[1].dtype == torch.float32
    ):
        return "returned another dtype"
    return "result"


def main(seed: int, first: int, stop: int, file: Path) -> None:
    """Makes the calls first..stop-1 of `seed`."""
    suite.enter()
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str]] = []
    with file.open("wb", buffering=0) as mark:
        for number in range(first, stop):
            os.pwrite(mark.fileno(), f"{number:12d}".encode(), 0)
            told = outcome(call_of(seed, number))
            counts[told if told in ("result", "refused") else "fault"] += 1
            if told not in ("result", "refused"):
                faults.append((number, told[:500]))
    sys.stdout.write(json.dumps({"counts": counts, "faults": faults[:50]}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
