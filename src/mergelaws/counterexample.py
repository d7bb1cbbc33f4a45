"""A counterexample as a program: the tensors of one call spelled out, the call, and a plain float64 merge beside it.

The program needs PyTorch and the judged implementation, and nothing of this project.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy
import torch

from mergelaws.implementation import Implementation

_ARGUMENTS = {
    "merge_state": ("v_a", "s_a", "v_b", "s_b"),
    "merge_state_in_place": ("v", "s", "v_other", "s_other"),
    "merge_states": ("v", "s"),
    "variable_length_merge_states": ("v", "s", "indptr"),
}
_TWO = ("merge_state", "merge_state_in_place")
_MOST = 300  # elements that are spelled out
_REACH = 64  # elements of memory, within which a view is spelled out as a view


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


class Told(Protocol):
    """What is known of a call that went wrong; properties.broken.Evidence is one."""

    @property
    def operation(self) -> str:
        """The operation that was called."""

    @property
    def inputs(self) -> dict[str, torch.Tensor]:
        """Its arguments by name, or the states v and s of a row or a call."""

    @property
    def base(self) -> int | str:
        """The base of s."""

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


def literal(tensor: torch.Tensor) -> str:
    """The expression that makes the tensor again, its strides too where it is a small view."""
    tensor = tensor.detach().cpu()
    dtype = f", dtype={tensor.dtype}"
    if tensor.numel() == 0:
        return f"torch.empty({tuple(tensor.shape)}{dtype})"
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    if tensor.is_contiguous() or reach > _REACH:
        return f"torch.tensor({_nested(tensor.contiguous())}{dtype})"
    memory = tensor.as_strided((reach,), (1,), tensor.storage_offset())
    return f"torch.tensor({_nested(memory)}{dtype}).as_strided({tuple(tensor.shape)}, {tuple(tensor.stride())})"


def _nested(tensor: torch.Tensor) -> str:
    if tensor.dim() == 0:
        return _number(tensor)
    first = tensor.reshape(-1)[:1]
    if tensor.numel() > 8 and tensor.dim() == 1 and _same(tensor, first):  # a constant is said once
        return f"[{_number(first[0])}] * {tensor.numel()}"
    return "[" + ", ".join(_nested(part) for part in tensor) + "]"


def _same(tensor: torch.Tensor, first: torch.Tensor) -> bool:
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return bool((tensor.contiguous().view(width) == first.view(width)).all())


def _number(value: torch.Tensor) -> str:
    """The shortest decimal that is read as the same number."""
    if not value.is_floating_point():
        return str(value.item())
    if value.dtype == torch.float64:
        return repr(value.item())
    kind = numpy.float16 if value.dtype == torch.float16 else numpy.float32
    return str(kind(value.item()))


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


def adapted(source: str, *operations: str) -> list[str]:
    """An adapter's `operations` (default: all) in plain Python: their functions, what these use, and where that is from."""
    tree = ast.parse(source)
    wanted, kept = set(operations or _ARGUMENTS), list[ast.stmt]()
    for statement in reversed(tree.body):
        names = _defined(statement)
        loads = isinstance(statement, ast.Expr) and "torch.ops" in ast.unparse(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            if names & wanted and not names & {"torch", "alone", "require", "Implementation"}:
                kept.append(statement)
        elif names & wanted or loads:
            kept.append(_plain(statement))
            wanted |= {node.id for node in ast.walk(kept[-1]) if isinstance(node, ast.Name)}
    lines = []
    for statement in reversed(kept):
        lines += [""] * isinstance(statement, ast.FunctionDef) + ast.unparse(statement).splitlines()
    return lines


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module gives."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _plain(statement: ast.stmt) -> ast.stmt:
    """Without annotations and docstring; what `implementations.alone` loads is imported as its package has it."""
    if isinstance(statement, ast.FunctionDef):
        statement.returns = None
        for argument in statement.args.args:
            argument.annotation = None
        statement.body = [line for line in statement.body if not isinstance(line, ast.Assert)]
        if ast.get_docstring(statement) is not None:
            del statement.body[0]
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
        loaded = statement.value.value
        if isinstance(loaded, ast.Call) and isinstance(loaded.func, ast.Name) and loaded.func.id == "alone":
            module = ast.literal_eval(loaded.args[0])
            return ast.ImportFrom(module, [ast.alias(statement.value.attr)], 0)
    return statement


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
