"""Law 17: a wrong shape, dtype, device, mask or indptr is a Python error that names the argument; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from properties import subject
from properties.broken import Evidence, LawBroken, bits
from properties.laws import law

Arguments = dict[str, object]


@dataclass(frozen=True)
class Wrong:
    """One argument that is wrong, in words and in code, and the words that the error must hold."""

    operation: str
    argument: str
    what: str
    spoil: Callable[[Arguments], object]
    error: type[Exception]
    says: tuple[str, ...]


def _good(operation: str) -> Arguments:
    """Arguments that `operation` takes: S = 2, N = 2, H = 3, D = 4."""
    kind = {"dtype": torch.float16, "device": subject.device()}
    state = torch.ones(2, 3, 4, **kind), torch.zeros(2, 3, device=subject.device())  # type: ignore[arg-type]
    other = torch.zeros_like(state[0]), torch.ones_like(state[1])
    if operation == "merge_state":
        return {"v_a": state[0], "s_a": state[1], "v_b": other[0], "s_b": other[1]}
    if operation == "merge_state_in_place":
        mask = torch.tensor([True, False], device=subject.device())
        return {"v": state[0], "s": state[1], "v_other": other[0], "s_other": other[1], "mask": mask}
    if operation == "merge_states":
        return {"v": torch.stack([state[0], other[0]], 1), "s": torch.stack([state[1], other[1]], 1)}
    indptr = torch.tensor([0, 1, 2], device=subject.device())
    return {"v": state[0], "s": state[1], "indptr": indptr}


def _tensor(arguments: Arguments, name: str) -> torch.Tensor:
    value = arguments[name]
    assert isinstance(value, torch.Tensor)
    return value


def _wrongs() -> list[Wrong]:
    told: list[Wrong] = []
    v_names = {
        "merge_state": ("v_a", "v_b"),
        "merge_state_in_place": ("v", "v_other"),
        "merge_states": ("v",),
        "variable_length_merge_states": ("v",),
    }
    for operation, names in v_names.items():
        for name in names:
            s_name = "s" + name[1:]

            def add(
                argument: str, what: str, spoil: Callable[[Arguments], object], error: type[Exception], *says: str,
                operation: str = operation,
            ) -> None:  # fmt: skip
                told.append(Wrong(operation, argument, what, spoil, error, (argument, *says)))

            add(name, "a list", lambda a, n=name: _tensor(a, n).tolist(), TypeError, "list", "torch.Tensor")  # type: ignore[misc]
            add(name, "float64", lambda a, n=name: _tensor(a, n).double(), TypeError, "torch.float64", "torch.float16")  # type: ignore[misc]
            add(name, "integers", lambda a, n=name: _tensor(a, n).long(), TypeError, "torch.int64")  # type: ignore[misc]
            add(name, "a dimension less", lambda a, n=name: _tensor(a, n)[..., 0], ValueError, "shape", "must")  # type: ignore[misc]
            add(name, "no columns", lambda a, n=name: _tensor(a, n)[..., :0], ValueError, "shape", "must")  # type: ignore[misc]
            add(s_name, "None", lambda a: None, TypeError, "NoneType", "torch.Tensor")
            for dtype in (torch.float16, torch.float64, torch.bfloat16):
                spoil = lambda a, n=s_name, t=dtype: _tensor(a, n).to(t)  # noqa: E731
                add(s_name, str(dtype), spoil, TypeError, str(dtype), "torch.float32")
            add(s_name, "one head less", lambda a, n=s_name: _tensor(a, n)[..., 1:], ValueError, "shape", "must be")  # type: ignore[misc]
            add(s_name, "transposed", lambda a, n=s_name: _tensor(a, n).transpose(0, -1), ValueError, "shape", "must be")  # type: ignore[misc]
            add(s_name, "on another device", lambda a, n=s_name: _tensor(a, n).to("meta"), ValueError, "meta", "must be on")  # type: ignore[misc]
            add(name, "on another device", lambda a, n=name: _tensor(a, n).to("meta"), ValueError, "meta", "must be on")  # type: ignore[misc]
    for operation, first, second in (("merge_state", "v_a", "v_b"), ("merge_state_in_place", "v", "v_other")):
        mixed = lambda a, n=second: _tensor(a, n).bfloat16()  # noqa: E731
        told.append(Wrong(operation, second, "of another dtype", mixed, TypeError, (second, "torch.bfloat16", "torch.float16", first)))
        short = lambda a, n=second: _tensor(a, n)[1:]  # noqa: E731
        told.append(Wrong(operation, second, "a row less", short, ValueError, (second, "shape", first)))
    place = "merge_state_in_place"
    mask_of = {
        "integers": (lambda a: _tensor(a, "mask").int(), TypeError, ("torch.int32", "torch.bool")),
        "per head": (lambda a: torch.ones(2, 3, dtype=torch.bool, device=subject.device()), ValueError, ("shape", "(2,)")),
        "a row short": (lambda a: _tensor(a, "mask")[1:], ValueError, ("(1,)", "(2,)")),
        "a list": (lambda a: [True, False], TypeError, ("list", "torch.Tensor")),
        "on another device": (lambda a: _tensor(a, "mask").to("meta"), ValueError, ("meta", "must be on")),
    }
    told += [Wrong(place, "mask", what, spoil, error, ("mask", *says)) for what, (spoil, error, says) in mask_of.items()]
    overlaps = {
        "v": (lambda a: _tensor(a, "v")[:1].expand(2, 3, 4), ("strides", "overlap")),
        "s": (lambda a: _tensor(a, "s")[:, :1].expand(2, 3), ("strides", "overlap")),
    }
    told += [Wrong(place, name, "expanded", spoil, ValueError, (name, *says)) for name, (spoil, says) in overlaps.items()]
    ragged = "variable_length_merge_states"
    index = lambda *ends: lambda a: torch.tensor(ends, device=subject.device())  # noqa: E731
    told += [
        Wrong(ragged, "indptr", "decreasing", index(0, 2, 1), ValueError, ("indptr", "falls from 2 to 1", "entry 2")),
        Wrong(ragged, "indptr", "negative", index(-1, 0, 2), ValueError, ("indptr", "-1", "0")),
        Wrong(ragged, "indptr", "past the end", index(0, 1, 3), ValueError, ("indptr", "3", "2")),
        Wrong(ragged, "indptr", "empty", lambda a: _tensor(a, "indptr")[:0], ValueError, ("indptr", "(0,)")),
        Wrong(ragged, "indptr", "float", lambda a: _tensor(a, "indptr").float(), TypeError, ("indptr", "torch.float32")),
        Wrong(ragged, "indptr", "a matrix", lambda a: _tensor(a, "indptr")[None], ValueError, ("indptr", "(1, 3)")),
        Wrong(ragged, "indptr", "a list", lambda a: [0, 1, 2], TypeError, ("indptr", "list", "torch.Tensor")),
        Wrong(ragged, "indptr", "elsewhere", lambda a: _tensor(a, "indptr").to("meta"), ValueError, ("indptr", "meta")),
    ]
    for operation in v_names:
        for base in ("2", "natural", 10, 2.0, None, True):
            wrong = Wrong(operation, "lse_base", repr(base), lambda a, b=base: b, ValueError, ("lse_base", repr(base), "2 or 'e'"))  # type: ignore[misc]
            told.append(wrong)
    return told


WRONG = _wrongs()


@law(17)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: f"{w.operation}-{w.argument}-{w.what}".replace(" ", "-"))
def test_a_wrong_argument_is_named_and_nothing_is_written(wrong: Wrong) -> None:
    """The error is of the right type, names the argument, what it was and what it must be; every argument keeps its bits."""
    if not subject.current().checks_arguments or not subject.offers(wrong.operation):
        pytest.skip(f"{subject.current().name} does not claim to check the arguments of {wrong.operation}")
    arguments = _good(wrong.operation)
    arguments[wrong.argument] = wrong.spoil(arguments)
    before = {name: value.clone() for name, value in arguments.items() if _on_device(value)}
    positional = [value for name, value in arguments.items() if name != "lse_base"]
    keywords = {name: value for name, value in arguments.items() if name == "lse_base"}
    told = "no error"
    try:
        getattr(subject.current(), wrong.operation)(*positional, **keywords)
    except wrong.error as error:
        told = f"{type(error).__name__}: {error}"
    except Exception as error:  # any other exception is the finding itself
        told = f"{type(error).__name__}: {error}"
        _fail(wrong, f"a {wrong.error.__name__}", told)
    if not all(word in told for word in wrong.says):
        _fail(wrong, f"a {wrong.error.__name__} with {', '.join(wrong.says)}", told)
    for name, value in before.items():
        if not torch.equal(bits(_tensor(arguments, name)) if value.is_floating_point() else _tensor(arguments, name),
                           bits(value) if value.is_floating_point() else value):  # fmt: skip
            _fail(wrong, f"{name} as it was", f"{name} changed")


def _on_device(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type != "meta"


def _fail(wrong: Wrong, expected: str, actual: str) -> None:
    message = f"{wrong.operation} with {wrong.argument} {wrong.what}: expected {expected}, got {actual}"
    raise LawBroken(message, Evidence(wrong.operation, "bad arguments are refused", expected=expected, actual=actual))
