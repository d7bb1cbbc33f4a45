"""A counterexample as a program: the tensors of one call spelled out, the call, and a plain float64 merge beside it.

The program needs PyTorch and the judged implementation, and nothing of this project.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch

from mergelaws.adapter import adapted
from mergelaws.implementation import Implementation
from mergelaws.literal import literal

_ARGUMENTS = {
    "merge_state": ("v_a", "s_a", "v_b", "s_b"),
    "merge_state_in_place": ("v", "s", "v_other", "s_other"),
    "merge_states": ("v", "s"),
    "variable_length_merge_states": ("v", "s", "indptr"),
}
_TWO = ("merge_state", "merge_state_in_place")
_MOST = 300  # elements that are spelled out


class Call(Protocol):
    """One call of an operation; properties.broken.Call is one."""

    @property
    def operation(self) -> str:
        """The operation."""

    @property
    def inputs(self) -> dict[str, torch.Tensor]:
        """Its arguments by name."""

    @property
    def base(self) -> int | str:
        """The base of s."""


class Told(Call, Protocol):
    """What is known of a call that went wrong; properties.broken.Evidence is one. The inputs may be those of one row."""

    @property
    def expected(self) -> str:
        """What should have come out, in words."""

    @property
    def actual(self) -> str:
        """What did."""

    @property
    def calls(self) -> Sequence[Call]:
        """All calls that were made, where it takes more than one to see the fault."""


def program(target: str, implementation: Implementation, told: Told, message: str = "") -> str:
    """The Python program that shows what `told` tells; "" if it has no inputs, or too many to spell out.

    target: as given to `mergelaws verify`. message: the finding in words, which becomes a comment.
    """
    calls = [one for one in told.calls if one.operation in implementation.operations]
    spelled = {id(tensor): tensor.numel() for one in calls for tensor in one.inputs.values()}
    beside: list[str] = []
    if calls and sum(spelled.values()) <= _MOST:
        body = _all_calls(target, implementation, calls)
    elif told.inputs and sum(tensor.numel() for tensor in told.inputs.values()) <= _MOST:
        inputs = _named(told.operation, told.inputs)
        body = _one_call(target, implementation, told, inputs)
        if inputs.keys() == {"v", "s"} and inputs["v"].dim() == 4 and inputs["v"].shape[1] > 0:
            beside = ["", *_plain_merge(told.base)]
    else:
        return ""
    lines = [f"# {message.splitlines()[0]}"] if message else []
    lines += ["from math import inf, nan", "", "import torch", ""]
    lines += ['torch.set_default_device("cuda")'] if _on_cuda(told) else []
    lines += body
    lines += [f"# expected  {line.strip()}" for line in told.expected.splitlines()]
    lines += [f"# actual    {line.strip()}" for line in told.actual.splitlines()]
    return "\n".join([*lines, *beside]) + "\n"


def _on_cuda(told: Told) -> bool:
    every = [told.inputs, *(one.inputs for one in told.calls)]
    return any(tensor.is_cuda for inputs in every for tensor in inputs.values())


def _all_calls(target: str, implementation: Implementation, calls: Sequence[Call]) -> list[str]:
    lines = []
    for operation in dict.fromkeys(one.operation for one in calls):
        lines += _origin(target, implementation, operation)
    lines.append("torch.set_printoptions(precision=9)")
    for one in calls:
        lines += ["", *(f"{name} = {literal(tensor)}" for name, tensor in one.inputs.items())]
        lines += _call(implementation, one.operation, one.inputs, one.base)
    return lines


def _one_call(target: str, implementation: Implementation, told: Told, inputs: dict[str, torch.Tensor]) -> list[str]:
    offered = told.operation in implementation.operations
    lines = _origin(target, implementation, told.operation) if offered else []
    lines += ["torch.set_printoptions(precision=9)", ""]
    lines += [f"{_word(name)} = {literal(tensor)}" for name, tensor in inputs.items()]
    sizes = implementation.head_dims
    if sizes and "v" in inputs and inputs["v"].dim() == 4 and inputs["v"].shape[-1] not in sizes:
        lines.append(f"v = v[..., :1].expand(-1, -1, -1, {min(sizes)}).contiguous()")
    return lines + (_call(implementation, told.operation, inputs, told.base) if offered else [])


def _word(name: str) -> str:
    return name.replace(" ", "_")


def _named(operation: str, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The inputs by the names of the operation's arguments, or as v [S, N, H, D] and s [S, N, H] where that is meant."""
    if "v" not in inputs or "s" not in inputs:
        return inputs
    v, s = inputs["v"], inputs["s"]
    if set(_ARGUMENTS.get(operation, ("",))) <= inputs.keys() and v.dim() > 2:
        return inputs
    if v.dim() == 1 and s.dim() == 1:  # one column of one row
        v, s = v[None, :, None, None], s[None, :, None]
    elif v.dim() == 2 and s.dim() == 1:  # one row
        v, s = v[None, :, None, :], s[None, :, None]
    elif v.dim() == 3 and s.dim() == 3:
        v = v[..., None]
    return {**inputs, "v": v, "s": s}


def _origin(target: str, implementation: Implementation, operation: str) -> list[str]:
    """The lines that make the operation available under its own name."""
    place, _, attribute = target.rpartition(":")
    function = getattr(implementation, operation)
    if target == "ours":
        return [f"from mergelaws import {operation}"]
    if place in ("mutants", "variants") or target in ("torch", "torch_reference"):
        return [
            "import implementations  # in a clone of mergelaws",
            f"{operation} = implementations.find({target!r}).{operation}",
        ]
    if not place:
        if isinstance(function, types.FunctionType):
            return _adapter(function)
        return [
            "import implementations  # in a clone of mergelaws",
            f"{operation} = implementations.find({target!r}).{operation}",
        ]
    lines = []
    if place.endswith(".py"):
        path = Path(place).resolve()
        lines += ["import sys", f"sys.path.insert(0, {str(path.parent)!r})"]
        place = path.stem
    bare = implementation.name == target
    lines.append(f"from {place} import {attribute}")
    lines.append(f"{operation} = {attribute}" if bare else f"{operation} = {attribute}.{operation}")
    return lines if attribute != operation or not bare else lines[:-1]


def _adapter(function: types.FunctionType) -> list[str]:
    return adapted(inspect.getsource(inspect.getmodule(function) or function), function.__name__)


def _call(
    implementation: Implementation, operation: str, inputs: dict[str, torch.Tensor], base: int | str
) -> list[str]:
    keyword = f", lse_base={base!r}" if implementation.lse_base == "either" else ""
    names = _ARGUMENTS[operation]
    turned = ".t().contiguous()" if implementation.s_layout == "HS" and operation in _TWO else ""
    if set(names) <= inputs.keys() and not (operation == "merge_states" and inputs["v"].dim() != 4):
        words = [name + (turned if name.startswith("s") else "") for name in names]
        if operation == "merge_state_in_place":
            mask = "mask" if "mask" in inputs else "None"
            return [f"{operation}({', '.join(words)}, {mask}{keyword})", "print(v, s)"]
        return [f"print({operation}({', '.join(words)}{keyword}))"]
    if "v" not in inputs or inputs["v"].dim() != 4 or inputs["s"].dim() != 3:
        return [f"# of {operation}; the test named beside this shows how they are merged"]
    count = inputs["v"].shape[1]
    near = "" if implementation.strided else ".contiguous()"
    if operation == "variable_length_merge_states":
        ends = f"torch.arange({inputs['v'].shape[0] + 1}, dtype=torch.int32) * {count}"
        return [f"print({operation}(v.flatten(0, 1), s.flatten(0, 1), {ends}{keyword}))"]
    if count < 2:
        return [f"# of {operation}; the test named beside this shows how they are merged"]
    lines = [f"out_v, out_s = v[:, 0].clone(), s[:, 0].clone(){turned}"]
    for index in range(1, min(count, 8)):
        other = f"v[:, {index}]{near}, s[:, {index}]{turned or near}"
        if operation == "merge_state":
            lines.append(f"out_v, out_s = {operation}(out_v, out_s, {other}{keyword})")
        else:
            lines.append(f"{operation}(out_v, out_s, {other}, None{keyword})")
    return [*lines, "print(out_v, out_s)"]


def _plain_merge(base: int | str) -> list[str]:
    power, log = ("exp", "log") if base == "e" else ("exp2", "log2")
    return [
        "# the same in float64",
        "x = s.double()",
        f"w = torch.where(x == -inf, 0.0, torch.{power}(x - x.amax(1, keepdim=True)))",
        "wv = torch.where(w[..., None] == 0.0, 0.0, w[..., None] * v.double())",
        f"print(wv.sum(1) / w.sum(1)[..., None], x.amax(1) + w.sum(1).{log}())",
    ]
