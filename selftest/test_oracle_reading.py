"""Reading tensors: every bit pattern of the 16-bit dtypes, any strides, and nothing that is no float."""

from __future__ import annotations

import numpy
import pytest
import torch

from oracles.reading import exact_values


def _by_hand(bits: int, exponent_bits: int, fraction_bits: int) -> float:
    """The value of a 16-bit pattern, from the definition of the format."""
    fraction = bits & ((1 << fraction_bits) - 1)
    exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if bits >> 15 else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return numpy.nan if fraction else sign * numpy.inf
    significand = fraction / (1 << fraction_bits) + (1.0 if exponent else 0.0)
    return float(sign * significand * 2.0 ** (max(exponent, 1) - bias))


@pytest.mark.parametrize(("dtype", "exponent_bits", "fraction_bits"), [(torch.float16, 5, 10), (torch.bfloat16, 8, 7)])
def test_every_16_bit_pattern(dtype: torch.dtype, exponent_bits: int, fraction_bits: int) -> None:
    patterns = numpy.arange(1 << 16)
    tensor = torch.from_numpy(patterns.astype(numpy.uint16).view(numpy.int16)).view(dtype)
    want = numpy.array([_by_hand(int(bits), exponent_bits, fraction_bits) for bits in patterns])
    got = exact_values(tensor)
    assert got.dtype == numpy.float64
    assert numpy.array_equal(got, want, equal_nan=True)
    assert numpy.array_equal(numpy.signbit(got[~numpy.isnan(want)]), numpy.signbit(want[~numpy.isnan(want)]))


def test_float32_and_float64_keep_their_values() -> None:
    edges = [1 + 2.0**-23, 2.0**-149, -(2.0**-149), 3.4028234663852886e38, -0.0]
    assert exact_values(torch.tensor(edges, dtype=torch.float32)).tolist() == edges
    finer = [1 + 2.0**-52, 5e-324]
    assert exact_values(torch.tensor(finer, dtype=torch.float64)).tolist() == finer


def test_strides_are_followed() -> None:
    whole = torch.arange(24, dtype=torch.float16).reshape(2, 3, 4)
    for view in (whole.transpose(0, 2), whole[:, ::2, 1:], whole[:1].expand(5, 3, 4), whole.new_empty(0, 3)):
        assert exact_values(view).tolist() == view.tolist()


def test_a_tensor_with_gradient_is_read() -> None:
    assert exact_values(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64])
def test_other_dtypes_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=str(dtype)):
        exact_values(torch.zeros(2, dtype=dtype))
