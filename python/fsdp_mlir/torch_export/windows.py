# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of ops whose windows along a dim vary: interpolation.

Such an op is linear, and separable over the dims: a product with one matrix per dim, which depends
on the extents alone. The matrices are computed by ops of torch, which fold.py evaluates.
"""

from __future__ import annotations

import torch

from .entries import entry


def _places(n: int, size: int, align: bool, scale: float | None, device) -> torch.Tensor:
    """Returns where the elements of an interpolated dim of ``size`` lie in one of ``n``, as torch."""
    at = torch.arange(size, device=device, dtype=torch.float32)
    if align:
        return at * ((n - 1) / (size - 1) if size > 1 else 0.0)
    return (at + 0.5) * (1.0 / scale if scale else n / size) - 0.5


def _linear_matrix(n, size, align, scale, device):
    place = _places(n, size, align, scale, device).clamp(0, n - 1)
    return (1.0 - (place[:, None] - torch.arange(n, device=device)).abs()).clamp(min=0.0)


def _cubic_matrix(n, size, align, scale, device):
    place = _places(n, size, align, scale, device)
    first, at = place.floor(), torch.arange(n, device=device)
    t, a = place - first, -0.75
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    return sum(weight[:, None] * ((first + k - 1).clamp(0, n - 1)[:, None] == at).to(t.dtype)
               for k, weight in enumerate(weights))


def _smooth_matrix(n, size, align, scale, device, support, weight):
    """Returns the matrix of an antialiased dim: a filter as wide as the reduction, scaled to sum 1."""
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1.0 / scale if scale else n / size
    centre = step * (torch.arange(size, device=device, dtype=torch.float32) + 0.5)
    distance = (torch.arange(n, device=device) + 0.5 - centre[:, None]).abs() / max(step, 1.0)
    weights = torch.where(distance < support, weight(distance), 0.0)
    return weights / weights.sum(-1, keepdim=True)


def _smooth_linear_matrix(*dim):
    return _smooth_matrix(*dim, 1, lambda d: 1.0 - d)


def _smooth_cubic_matrix(*dim):
    near = lambda d: (1.5 * d - 2.5) * d * d + 1
    far = lambda d: ((-0.5 * d + 2.5) * d - 4) * d + 2
    return _smooth_matrix(*dim, 2, lambda d: torch.where(d < 1, near(d), far(d)))


def _upsample(x, output_size, align, scales, matrix):
    size = output_size or [int(n * s) for n, s in zip(x.shape[2:], scales)]
    scales = scales if scales is not None else [None, None]
    rows, columns = (matrix(n, m, align, s, x.device).to(x.dtype)
                     for n, m, s in zip(x.shape[2:], size, scales))
    return rows @ (x @ columns.transpose(0, 1))


def _register_upsample(op: str, matrix) -> None:
    """Registers both overloads of an op: F.interpolate calls ``vec``."""

    @entry(op + ".vec", "torch-mlir has no lowering; products with small matrices")
    def vec(x, output_size, align_corners, scale_factors=None):
        return _upsample(x, output_size, align_corners, scale_factors, matrix)

    @entry(op + ".default", "as the overload vec; torch's own looks rows up, four for each element")
    def default(x, output_size, align_corners, scales_h=None, scales_w=None):
        return _upsample(x, output_size, align_corners, [scales_h, scales_w], matrix)


for _op, _matrix in (("upsample_bilinear2d", _linear_matrix),
                     ("upsample_bicubic2d", _cubic_matrix),
                     ("_upsample_bilinear2d_aa", _smooth_linear_matrix),
                     ("_upsample_bicubic2d_aa", _smooth_cubic_matrix)):
    _register_upsample(_op, _matrix)
