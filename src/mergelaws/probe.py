"""A first call of a target in a process of its own: `python -m mergelaws.probe TARGET`.

Ends with 0 if some operation came back, with 2 and the reasons if the target cannot be loaded, or none of its operations
takes the plainest input that it claims. Prints LOADED in between, so that a target that takes its process down is known
to have been loaded.
"""

from __future__ import annotations

import signal
import sys

import mergelaws  # before Triton  # isort: skip
import torch

from mergelaws import suite
from mergelaws.implementation import Implementation

LOADED = "loaded"
PATIENCE = 20  # seconds for the first calls; then the process ends, and the laws go on asking


def tried(implementation: Implementation) -> list[str]:
    """Why each operation failed on one row of two states, "" where it did not."""
    from properties import call, subject  # noqa: PLC0415  # importable once the suite's directory is

    dim = min(implementation.head_dims or (8,))
    dtype = getattr(torch, implementation.dtypes[0])
    told = []
    with subject.using(implementation):
        v = torch.ones(1, 2, 1, dim, dtype=dtype, device=subject.device())
        s = torch.zeros(1, 2, 1, device=subject.device())
        for operation in implementation.operations:
            try:
                call.merge(operation, v, s, subject.bases()[0])
            except AssertionError:  # it came back, with a wrong result: for the laws to say
                told.append("")
            except Exception as error:  # whatever the target raises is the answer
                told.append(f"{operation} on {subject.device()} raised {type(error).__name__}: {error}")
            else:
                told.append("")
    return told


def main(target: str) -> int:
    """Loads and calls the target; the exit status."""
    assert mergelaws.__version__
    suite.enter()
    import implementations  # noqa: PLC0415

    try:
        found = implementations.find(target)
    except Exception as error:  # a file may raise anything while it is loaded
        words = str(error) if isinstance(error, LookupError) else f"{type(error).__name__}: {error}"
        sys.stderr.write(f"{target} cannot be loaded: {words}\n")
        return 2
    sys.stdout.write(f"{LOADED}\n")
    sys.stdout.flush()
    signal.alarm(PATIENCE)
    reasons = tried(found)
    if all(reasons):
        sys.stderr.write("\n  ".join([f"{target} was loaded and cannot be called:", *reasons]) + "\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
