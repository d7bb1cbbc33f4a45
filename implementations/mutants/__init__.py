"""Deliberately wrong implementations, each a `TorchMerge` with one faulty step.

A mutant's docstring says what the fault does and, in its last line, where it was reported. Its name is that of its
class in lower case with hyphens. Every mutant claims what the right implementation claims: the laws hold it to that.
"""

from __future__ import annotations

import re
from types import ModuleType

from implementations.mutants import (
    addressing,
    arguments,
    base,
    conditional,
    counting,
    empties,
    maximum,
    ragged,
    rounding,
    special_values,
    state_keeping,
    weights,
    writing,
)
from implementations.torch_reference import TorchMerge, offered
from mergelaws.implementation import Implementation

NOUNS: tuple[ModuleType, ...] = (
    base,
    maximum,
    weights,
    rounding,
    empties,
    special_values,
    counting,
    addressing,
    writing,
    ragged,
    conditional,
    state_keeping,
    arguments,
)


def _classes(module: ModuleType) -> list[type[TorchMerge]]:
    """The mutants that a module defines, in the order of its text; a leading underscore marks a family."""
    return [
        thing
        for name, thing in vars(module).items()
        if isinstance(thing, type) and thing.__module__ == module.__name__ and not name.startswith("_")
    ]


def _name(mutant: type[TorchMerge]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", mutant.__name__).lower()


def fresh(name: str) -> Implementation:
    """The mutant of that name with nothing remembered from earlier calls. Raises KeyError for an unknown name."""
    return offered(name, CLASSES[name](), exp_chain=1)


CLASSES: dict[str, type[TorchMerge]] = {_name(mutant): mutant for module in NOUNS for mutant in _classes(module)}
MUTANTS: dict[str, Implementation] = {name: fresh(name) for name in CLASSES}
