"""The implementations that the suite can judge, one small file each, and how one is found by name."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pkgutil
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from mergelaws.implementation import Implementation

_CORPORA = ("mutants", "variants")
_FILES = {"torch": "torch_reference"}  # the names that are not those of their files


def known() -> list[str]:
    """The names of the implementations that have a file here."""
    names = {file: name for name, file in _FILES.items()}
    files = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    here = [names.get(file, file) for file in files if not file.startswith("_")]
    return sorted(here, key=lambda name: (name not in ("ours", "torch"), name))


def require(module: str, package: str) -> None:
    """Raises LookupError, which says what to install, if there is no `module`; imports no more than its parents."""
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is missing
        found = False
    if not found:
        raise LookupError(f"there is no module {module!r} here; pip install {package}")


def alone(module: str, package: str, stand_ins: Mapping[str, object] | None = None) -> Any:
    """The dotted `module`, imported without running the `__init__` of the packages above it, which want much more.

    package: what to install. stand_ins: by name, the modules that these objects stand in for while it is imported.
    The packages above it stay bare in this process. Raises LookupError as `require` does.
    """
    top, *below = module.split(".")
    require(top, package)
    places = _folders(top)
    for above, part in zip(itertools.accumulate((top, *below[:-1]), "{}.{}".format), below, strict=True):
        if above not in sys.modules:
            spec = ModuleSpec(above, None, is_package=True)
            spec.submodule_search_locations = places
            sys.modules[above] = importlib.util.module_from_spec(spec)
        places = [str(Path(place) / part) for place in places]
    stand_ins = dict(stand_ins or {})
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]  # anything that has the names that are asked for
    try:
        return importlib.import_module(module)
    finally:
        for name, was in before.items():
            del sys.modules[name]
            sys.modules.update({} if was is None else {name: was})


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list((spec and spec.submodule_search_locations) or ())


def find(target: str) -> Implementation:
    """The implementation that `target` names.

    target: a known name, `mutants:NAME` or `variants:NAME`, `package.module:attribute`, or `path/to/file.py:attribute`.
    The attribute is an Implementation, or a function `(v_a, s_a, v_b, s_b) -> (v, s)`, which gets the default claims.
    Raises LookupError, which says what was tried, if there is no such thing, and TypeError if it is neither.
    """
    place, _, attribute = target.rpartition(":")
    if not place:
        return _known(target)
    if place in _CORPORA:
        corpus = getattr(importlib.import_module(f"implementations.{place}"), place.upper())
        if attribute not in corpus:
            raise LookupError(f"there is no {attribute!r} among the {place}; there are {', '.join(corpus)}")
        return corpus[attribute]  # type: ignore[no-any-return]
    module = _file(Path(place)) if place.endswith(".py") else _module(place, target)
    found = getattr(module, attribute, None)
    if found is None:
        raise LookupError(f"{target!r}: {place} was loaded and has no attribute {attribute!r}")
    if isinstance(found, Implementation):
        return found
    if callable(found):
        return Implementation(name=target, merge_state=found)
    raise TypeError(f"{target!r} is {type(found).__name__}; it must be an Implementation or a two-state function")


def _known(name: str) -> Implementation:
    name = {file: name for name, file in _FILES.items()}.get(name, name)
    if name not in known():
        raise LookupError(
            f"there is no implementation {name!r}; known are {', '.join(known())}, and any module:attribute or file.py:attribute"
        )
    return importlib.import_module(f"implementations.{_FILES.get(name, name)}").implementation  # type: ignore[no-any-return]


def _module(name: str, target: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LookupError(f"{target!r}: module {name!r} was tried and not found ({error})") from error


def _file(path: Path) -> object:
    if not path.is_file():
        raise LookupError(f"file {str(path.resolve())!r} was tried and not found")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
