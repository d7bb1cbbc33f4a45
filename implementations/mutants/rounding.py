"""Faults of precision: something is rounded that has to stay float32, or rounded the wrong way."""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class SThroughFloat16(TorchMerge):
    """Every s that is read passes through float16: steps of 0.5 at 1000, infinite from 65520 on.

    Source: tilelang#328.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).half().float()


class SThroughBfloat16(TorchMerge):
    """Every s that is read passes through bfloat16.

    Source: tilelang#328, with the other 16-bit type.
    """

    def read_s(self, s: Tensor) -> Tensor:
        return super().read_s(s).bfloat16().float()


class LseRoundedToBfloat16(TorchMerge):
    """The merged s passes through bfloat16 before it is returned.

    Source: tilelang#328, on the way out.
    """

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return super().lse(m, d, base).bfloat16().float()


class SInTheDtypeOfV(TorchMerge):
    """s is allocated like v: float16 or bfloat16 where v is.

    Source: semantics, section 2 (s is float32, always); tilelang#328.
    """

    def emit(self, v: Tensor, s: Tensor) -> State:
        return super().emit(v, s.to(v.dtype))


class SInTheDefaultDtype(TorchMerge):
    """s is allocated without a dtype: float64 or float16 where the process has set such a default.

    Source: semantics, section 2 (s is float32, always).
    """

    def emit(self, v: Tensor, s: Tensor) -> State:
        return super().emit(v, s.to(torch.get_default_dtype()))


class VInFloat32(TorchMerge):
    """v is returned as accumulated, in float32, whatever the dtype of the inputs.

    Source: semantics, section 2 (v goes back to T).
    """

    def emit(self, v: Tensor, s: Tensor) -> State:
        return super().emit(v.float(), s)


class ProductsInTheDtypeOfV(TorchMerge):
    """Each v is multiplied by its weight in its own 16 bits and only then widened.

    Source: semantics, section 2 (arithmetic is float32); tpu-inference#3212.
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return (w.to(v.dtype)[..., None] * v).float().masked_fill(empty[..., None], -0.0)


class AccumulatedInTheDtypeOfV(TorchMerge):
    """The weighted sum is kept in the dtype of v.

    Source: semantics, section 2 (arithmetic is float32).
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w, v, empty).to(v.dtype)

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return super().quotient(numerator.float(), d)


class WeightsRoundedToBfloat16(TorchMerge):
    """The weights are rounded to bfloat16 for the product but not for their sum: they no longer sum to one.

    Source: tpu-inference#3212.
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w.bfloat16().float(), v, empty)


class WeightsRoundedToFloat16(TorchMerge):
    """Product and sum share weights of float16: constant v is right, s and everything else are not.

    Source: tpu-inference#3212, with the other 16-bit type.
    """

    def weights(self, s: Tensor, m: Tensor, empty: Tensor, base: int | str) -> Tensor:
        return super().weights(s, m, empty, base).half().float()


class ProbabilitiesRoundedToBfloat16(TorchMerge):
    """The weights are divided by their sum, then rounded to bfloat16: constant v comes out scaled.

    Source: flashinfer#3838, FlyDSL#1020.
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products((w / self.total(w)[:, None]).bfloat16().float(), v, empty)

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return numerator


class ProductsInTensorFloat32(TorchMerge):
    """Weights and values go into the product with ten bits of mantissa, the default of a tensor-core product.

    Source: mutation; the default input precision of `tl.dot`.
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(_ten_bits(w), _ten_bits(v.float()), empty)


class PartialsInFloat16(TorchMerge):
    """More than 64 states: chunks of 64 are merged and kept in float16, then merged.

    Source: flash-attention#2336 (partials must stay float32 for the second stage).
    """

    def merge_many(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if v.shape[1] <= 64:
            return super().merge_many(v, s, base)
        parts = [self.merge(v[:, i : i + 64], s[:, i : i + 64], base) for i in range(0, v.shape[1], 64)]
        v_parts = torch.stack([part.half().to(v.dtype) for part, _ in parts], dim=1)
        return self.merge(v_parts, torch.stack([part for _, part in parts], dim=1), base)


class ChoppedBfloat16(TorchMerge):
    """Only bfloat16: the result loses its low 16 bits instead of being rounded to nearest even.

    Source: mutation; the shortest way to make a bfloat16.
    """

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        if dtype != torch.bfloat16:
            return super().rounded(v, dtype)
        return (v.view(torch.int32) & ~0xFFFF).view(torch.float32).to(dtype)


class Bfloat16ThroughFloat16(TorchMerge):
    """Only bfloat16: the result passes through float16: infinite from 65520 on, few bits left below 6e-5.

    Source: mutation; a half-precision accumulator shared by both 16-bit types.
    """

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        return super().rounded(v.half() if dtype == torch.bfloat16 else v, dtype)


class SubnormalsFlushed(TorchMerge):
    """Only float16: results below the least normal number, 6.1e-5, are stored as 0.

    Source: mutation; flush-to-zero conversion.
    """

    def rounded(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        tiny = v.abs() < torch.finfo(torch.float16).tiny
        return super().rounded(v.masked_fill(tiny, 0.0) if dtype == torch.float16 else v, dtype)


def _ten_bits(x: Tensor) -> Tensor:
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
