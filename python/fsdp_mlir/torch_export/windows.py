# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of interpolation, adaptive pools and folds.

These ops are linear. They can be computed along one dim after the other.

- If windows differ in length or in weights (interpolation, uneven pools), the values along a dim
  are multiplied by a matrix. The matrix depends only on the extents.
- If all windows of a pool have the same length, the dim is split into windows, and the mean of each
  window is computed.
- A fold pads each block to the extent of the result. It then adds the padded blocks.
"""

from __future__ import annotations

import torch

from .entries import entry


def _places(n: int, size: int, align: bool, scale: float | None, device) -> torch.Tensor:
    """Returns the positions at which torch interpolates ``size`` elements from a dim of ``n``."""
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
    """Returns the matrix for a dim with antialiasing. Each row of the matrix is a filter, and its
    elements sum to 1."""
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
    """Registers both overloads of an op. F.interpolate calls the overload ``vec``."""

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


def _windows(n: int, size: int, device):
    """Returns (mask, lengths) for the windows of an adaptive pool. Window i begins at position
    i n / size (rounded down), and ends before position (i + 1) n / size (rounded up)."""
    at, i = torch.arange(n, device=device), torch.arange(size, device=device)[:, None]
    first, end = i * n // size, ((i + 1) * n + size - 1) // size
    return (at >= first) & (at < end), (end - first).squeeze(-1)


def _mean_of_windows(x, dim: int, size: int):
    """Returns the means of the ``size`` windows of an adaptive pool along a dim."""
    n = x.shape[dim]
    if n % size == 0:
        return x.unflatten(dim, (size, n // size)).mean(dim + 1)
    inside, length = _windows(n, size, x.device)
    sums = x.movedim(dim, -1) @ inside.to(x.dtype).transpose(0, 1)
    return (sums / length.to(x.dtype)).movedim(-1, dim)


def _adaptive_mean(x, output_size):
    for dim, size in enumerate(output_size, x.dim() - len(output_size)):
        x = _mean_of_windows(x, dim, size)
    return x


@entry("_adaptive_avg_pool2d.default", "torch's own looks uneven windows up, for which torch-mlir has "
       "no lowering")
def adaptive_avg_pool2d(x, output_size):
    return _adaptive_mean(x, output_size)


@entry("_adaptive_avg_pool3d.default", "as _adaptive_avg_pool2d")
def adaptive_avg_pool3d(x, output_size):
    return _adaptive_mean(x, output_size)


def _first_max(x, dim: int, size: int):
    """Returns, for each window of an adaptive pool along a dim, the value and the position of its
    first maximum or first NaN."""
    n, x = x.shape[dim], x.movedim(dim, -1).unsqueeze(-2)
    inside, _ = _windows(n, size, x.device)
    best = torch.where(inside, x, float("-inf")).amax(-1, keepdim=True)
    place = (inside & ((x >= best) | x.isnan())).to(torch.int64).argmax(-1, keepdim=True)
    chosen = torch.arange(n, device=x.device) == place
    values = torch.where(chosen, x, 0.0).sum(-1)
    return values.movedim(-1, dim), place.squeeze(-1).movedim(-1, dim)


@entry("adaptive_max_pool2d.default", "torch-mlir takes uneven windows for even ones, and fails")
def adaptive_max_pool2d(x, output_size):
    if all(n % size == 0 for n, size in zip(x.shape[-2:], output_size)):
        return NotImplemented
    values, columns = _first_max(x, -1, output_size[1])
    values, rows = _first_max(values, -2, output_size[0])
    return values, rows * x.shape[-1] + columns.gather(-2, rows)


def _add_windows(x, dim: int, size: int, dilation: int, padding: int, stride: int):
    """Returns ``x`` with the two dims (dim, dim + 1) replaced by one dim of extent ``size``.

    Position p of the new dim is the sum of the elements (k, i) with p = k dilation + i stride -
    padding.
    """
    kernel, count = x.shape[dim], x.shape[dim + 1]
    total = None
    for k in range(kernel):
        part = x.select(dim, k)
        if stride > 1 and count > 1:
            after = [0] * (2 * (x.dim() - dim - 2))
            spaced = torch.nn.functional.pad(part.unsqueeze(dim + 1), [*after, 0, stride - 1])
            part = spaced.flatten(dim, dim + 1).narrow(dim, 0, (count - 1) * stride + 1)
        begin = k * dilation - padding
        low, high = max(-begin, 0), min(size - begin, part.shape[dim])
        if low >= high:
            continue
        part = part.narrow(dim, low, high - low)
        after = [0] * (2 * (part.dim() - dim - 1))
        part = torch.nn.functional.pad(part, [*after, begin + low, size - begin - high])
        total = part if total is None else total + part
    shape = [*x.shape[:dim], size, *x.shape[dim + 2:]]
    return x.new_zeros(shape) if total is None else total


@entry("col2im.default", "torch's own adds through indices, for which torch-mlir has no lowering")
def col2im(x, output_size, kernel_size, dilation, padding, stride):
    counts = [1 + (n + 2 * p - d * (k - 1) - 1) // s
              for n, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride)]
    y = x.unflatten(-2, (-1, *kernel_size)).unflatten(-1, counts)
    y = y.movedim(-2, -3)  # dims: ..., kernel rows, block rows, kernel columns, block columns
    for i, dim in enumerate((x.dim() - 1, x.dim())):
        y = _add_windows(y, dim, output_size[i], dilation[i], padding[i], stride[i])
    return y
