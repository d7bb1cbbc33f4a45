"""Law 1, of the rows that came closest to their bounds (records.json, which `mergelaws sweep` writes)."""

from pathlib import Path

import pytest
import torch

from mergelaws import records
from mergelaws.records import Record
from properties import call, subject
from properties.checks import assert_within_bound
from properties.laws import law

RECORDS = list(records.read(Path(__file__).resolve().parents[1]).values())


@law(1)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: "-".join(record.key))
def test_the_worst_rows_known_stay_within_the_bound(record: Record) -> None:
    """A row that brought one implementation close to the bound is asked of every one, by every operation that takes it."""
    claims = subject.current()
    count = len(record.s)
    if record.dtype not in claims.dtypes or record.base not in subject.bases():
        pytest.skip("not claimed")
    numbers = [[float.fromhex(number) for number in row] for row in (record.v, record.s)]
    s = torch.tensor(numbers[1], dtype=torch.float32, device=subject.device())[None, :, None]
    dim = 1 if claims.head_dims is None else min(claims.head_dims)
    dtype = getattr(torch, record.dtype)
    v = (
        torch.tensor(numbers[0], dtype=dtype, device=s.device)[None, :, None, None]
        .expand(1, count, 1, dim)
        .contiguous()
    )
    for operation in claims.operations:
        if count == 2 or (operation in call.MANY_STATES and count <= (claims.max_states or count)):
            assert_within_bound(operation, v, s, call.merge(operation, v, s, record.base), record.base)
