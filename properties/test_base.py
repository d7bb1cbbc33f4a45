"""Law 8: base 2 and base e are two spellings of one state."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

import mergelaws
from oracles import bounds, exact
from oracles.precision import context
from oracles.reading import exact_values
from properties.cases import Problem
from properties.checks import arithmetic, assert_row_within, assert_same_bits, name_of
from properties.laws import law
from properties.strategies import problems


@law(8)
@given(problem=problems(filled=True, rows=1, heads=1, dims=(1, 2, 3)))
def test_merging_in_one_base_is_merging_in_the_other(problem: Problem) -> None:
    """Converted exactly to the other base, merged there and converted back, the states give what the merge gave."""
    v, s = problem.tensors()
    out = problem.merged(v, s)
    ctx = context()
    factor = 1 / ctx.ln2 if problem.base == "e" else ctx.ln2
    values, lses = exact_values(v)[0, :, 0].tolist(), exact_values(s)[0, :, 0].tolist()
    other = exact.merge(values, [ctx.mpf(x) * factor for x in lses], 2 if problem.base == "e" else "e", dim=v.shape[-1])
    right = exact.Exact(other.v, other.s / factor)
    allowed = bounds.local(values, lses, name_of(v.dtype), arithmetic(problem.base), dim=v.shape[-1])
    inputs = {"v": v[..., 0], "s": s}
    assert_row_within(problem.operation, right, allowed, (out[0][0, 0], out[1][0, 0]), inputs, problem.base, "one row")


LSE = st.one_of(
    st.floats(-float(2.0**127), float(2.0**127), width=32),
    st.sampled_from([0.0, -0.0, 5.0, 1.0, -math.inf, math.nan, 2.0**-149, 2.0**-126]),
)


@law(8, "conversions")
@given(number=LSE)
def test_a_conversion_there_and_back_is_within_two_ulp(number: float) -> None:
    """|to_natural(to_base2(x)) - x| <= 2 ulp(x), the other way round too; -inf and NaN are kept."""
    x = torch.tensor([number], dtype=torch.float32)
    for back in (mergelaws.to_natural(mergelaws.to_base2(x)), mergelaws.to_base2(mergelaws.to_natural(x))):
        if math.isfinite(number):
            assert abs(float(back) - number) <= 2 * _ulp(number), f"{number!r} came back as {float(back)!r}"
        else:
            assert_same_bits("conversions", "what is not finite is kept", (back, x), (x, x), {"lse": x})


@law(8, "conversions")
@given(number=LSE.filter(lambda x: abs(x) < 2.0**126 or not math.isfinite(x)))
def test_an_lse_of_flash_attention_2_is_read_as_it_is_meant(number: float) -> None:
    """+inf, its mark of a row without keys, becomes -inf; everything else is converted to base 2."""
    lse = torch.tensor([number, math.inf], dtype=torch.float32)
    s = mergelaws.from_flash_attention_2(lse)
    wanted = torch.cat([mergelaws.to_base2(lse[:1]), torch.tensor([-math.inf])])
    assert_same_bits("conversions", "+inf becomes -inf, the rest is converted", (s, s), (wanted, wanted), {"lse": lse})


def _ulp(number: float) -> float:
    """The distance of float32 numbers at `number`."""
    return max(math.ldexp(1.0, math.frexp(number)[1] - 24), 2.0**-149)
