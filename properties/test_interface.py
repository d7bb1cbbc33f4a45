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
    device = subject.device()
    state = torch.ones(2, 3, 4, dtype=torch.float16, device=device), torch.zeros(2, 3, device=device)
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


Spoil = Callable[[Arguments], object]
Change = Callable[[torch.Tensor], object]

V_NAMES = {
    "merge_state": ("v_a", "v_b"),
    "merge_state_in_place": ("v", "v_other"),
    "merge_states": ("v",),
    "variable_length_merge_states": ("v",),
}
IN_PLACE, RAGGED = "merge_state_in_place", "variable_length_merge_states"


def _changed(name: str, change: Change) -> Spoil:
    """What becomes of the good argument `name`."""
    return lambda arguments: change(_tensor(arguments, name))


def _entries(*ends: int) -> Spoil:
    """indptr with these entries."""
    return lambda _: torch.tensor(ends, device=subject.device())


def _constant(value: object) -> Spoil:
    return lambda _: value


WRONG_V: tuple[tuple[str, Change, type[Exception], tuple[str, ...]], ...] = (
    ("a list", lambda v: v.tolist(), TypeError, ("list", "torch.Tensor")),
    ("float64", lambda v: v.double(), TypeError, ("torch.float64", "torch.float16")),
    ("integers", lambda v: v.long(), TypeError, ("torch.int64",)),
    ("a dimension less", lambda v: v[..., 0], ValueError, ("shape", "must")),
    ("without columns", lambda v: v[..., :0], ValueError, ("shape", "must")),
    ("on another device", lambda v: v.to("meta"), ValueError, ("meta", "must be on")),
)
WRONG_S: tuple[tuple[str, Change, type[Exception], tuple[str, ...]], ...] = (
    ("None", lambda _: None, TypeError, ("NoneType", "torch.Tensor")),
    ("float16", lambda s: s.half(), TypeError, ("torch.float16", "torch.float32")),
    ("bfloat16", lambda s: s.bfloat16(), TypeError, ("torch.bfloat16", "torch.float32")),
    ("float64", lambda s: s.double(), TypeError, ("torch.float64", "torch.float32")),
    ("a head short", lambda s: s[..., 1:], ValueError, ("shape", "must be")),
    ("transposed", lambda s: s.transpose(0, -1), ValueError, ("shape", "must be")),
    ("on another device", lambda s: s.to("meta"), ValueError, ("meta", "must be on")),
)
WRONG_OTHER: tuple[tuple[str, Change, type[Exception], tuple[str, ...]], ...] = (
    ("of another dtype", lambda v: v.bfloat16(), TypeError, ("torch.bfloat16", "torch.float16")),
    ("a row short", lambda v: v[1:], ValueError, ("shape", "must be")),
)
WRONG_MASK: tuple[tuple[str, Change, type[Exception], tuple[str, ...]], ...] = (
    ("integers", lambda mask: mask.int(), TypeError, ("torch.int32", "torch.bool")),
    ("per head", lambda mask: mask[:, None].expand(2, 3), ValueError, ("shape", "(2,)")),
    ("a row short", lambda mask: mask[1:], ValueError, ("(1,)", "(2,)")),
    ("a list", lambda _: [True, False], TypeError, ("list", "torch.Tensor")),
    ("on another device", lambda mask: mask.to("meta"), ValueError, ("meta", "must be on")),
)
WRONG_INDPTR: tuple[tuple[str, Spoil, type[Exception], tuple[str, ...]], ...] = (
    ("decreasing", _entries(0, 2, 1), ValueError, ("2 to 1", "entry 2")),
    ("negative", _entries(-1, 0, 2), ValueError, ("-1", "0")),
    ("past the end", _entries(0, 1, 3), ValueError, ("3", "2")),
    ("without entries", _changed("indptr", lambda x: x[:0]), ValueError, ("(0,)",)),
    ("float", _changed("indptr", lambda x: x.float()), TypeError, ("torch.float32",)),
    ("a matrix", _changed("indptr", lambda x: x[None]), ValueError, ("(1, 3)",)),
    ("a list", _constant([0, 1, 2]), TypeError, ("list", "torch.Tensor")),
    ("on another device", _changed("indptr", lambda x: x.to("meta")), ValueError, ("meta",)),
)


def _wrongs() -> list[Wrong]:
    told: list[Wrong] = []
    for operation, names in V_NAMES.items():
        for name in names:
            for argument, wrongs in ((name, WRONG_V), ("s" + name[1:], WRONG_S)):
                for what, change, error, says in wrongs:
                    told.append(Wrong(operation, argument, what, _changed(argument, change), error, (argument, *says)))
        for base in ("2", "natural", 10, 2.0, None, True):
            says = "lse_base", repr(base), "2 or 'e'"
            told.append(Wrong(operation, "lse_base", repr(base), _constant(base), ValueError, says))
        for second in names[1:]:
            for what, change, error, says in WRONG_OTHER:
                told.append(Wrong(operation, second, what, _changed(second, change), error, (second, *says, names[0])))
    for what, change, error, says in WRONG_MASK:
        told.append(Wrong(IN_PLACE, "mask", what, _changed("mask", change), error, ("mask", *says)))
    for name in ("v", "s"):
        expanded = _changed(name, lambda x: x[:1].expand(x.shape))
        told.append(Wrong(IN_PLACE, name, "expanded", expanded, ValueError, (name, "strides", "overlap")))
    for what, spoil, error, says in WRONG_INDPTR:
        told.append(Wrong(RAGGED, "indptr", what, spoil, error, ("indptr", *says)))
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
    before = {name: _tensor(arguments, name).clone() for name, value in arguments.items() if _on_device(value)}
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
