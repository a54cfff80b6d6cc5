# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of decompositions: torch's table for core ATen, and entries of this project.

Each entry states why the lowering of torch or torch-mlir is not used. A decomposition computes the
same values as its op, apart from rounding. ``tests/test_decompositions.py`` checks this.
"""

from __future__ import annotations

import math

import torch

from . import routing, windows  # noqa: F401 (imported to register their entries)
from .entries import ENTRIES, entry, find

aten = torch.ops.aten


@entry("squeeze.dims", "torch-mlir has no lowering of the overload with several dims")
def squeeze_dims(x, dims):
    dims = {d % x.dim() for d in dims}
    return x.reshape([n for d, n in enumerate(x.shape) if d not in dims or n != 1])


@entry("cumsum.default", "torch-mlir's scan is an op of its own dialect")
def cumsum(x, dim, dtype=None):
    dtype = dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)
    x = x.to(dtype).movedim(dim, -1)
    at = torch.arange(x.shape[-1], device=x.device)
    mask = (at[None, :] <= at[:, None]).to(dtype)
    return (x.unsqueeze(-2) * mask).sum(-1).movedim(-1, dim)


@entry("scaled_dot_product_attention.default",
       "products and a softmax, which the compiler raises to one kernel")
def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
              enable_gqa=False):
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scale = scale if scale is not None else q.shape[-1] ** -0.5
    scores = (q @ k.transpose(-1, -2)) * scale
    if is_causal:
        row = torch.arange(q.shape[-2], device=q.device)[:, None]
        column = torch.arange(k.shape[-2], device=q.device)[None, :]
        scores = torch.where(row >= column, scores, float("-inf"))
    if attn_mask is not None:
        scores = (torch.where(attn_mask, scores, float("-inf"))
                  if attn_mask.dtype == torch.bool else scores + attn_mask)
    weights = torch.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = torch.ops.fsdp_mlir.dropout(weights, dropout_p)
    return weights @ v


@entry("gelu.default", "torch-mlir of 2026-01 writes 0.797724 for sqrt(2/pi) = 0.797885")
def gelu(x, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + torch.tanh(inner))
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


@entry("roll.default", "two slices; torch's table makes it a lookup")
def roll(x, shifts, dims=()):
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not dims:
        return roll(x.flatten(), shifts, [0]).view(x.shape)
    for shift, dim in zip(shifts, dims):
        n = x.shape[dim]
        shift %= max(n, 1)
        if shift:
            x = torch.cat([x.narrow(dim, n - shift, shift), x.narrow(dim, 0, n - shift)], dim)
    return x


@entry("slice_scatter.default", "slices beside each other; torch-mlir's insert has no derivative")
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    n = x.shape[dim]
    clamp = lambda i: max(i + n, 0) if i < 0 else min(i, n)
    start, end = clamp(0 if start is None else start), clamp(n if end is None else end)
    if step != 1:
        return NotImplemented
    shape = list(x.shape)
    shape[dim] = end - start
    parts = [x.narrow(dim, 0, start), src.expand(shape), x.narrow(dim, end, n - end)]
    return torch.cat([p for p in parts if p.shape[dim]], dim)


@entry("select_scatter.default", "as slice_scatter")
def select_scatter(x, src, dim, index):
    index %= x.shape[dim]
    return slice_scatter(x, src.unsqueeze(dim), dim, index, index + 1)


@entry("empty.memory_format", "what was not written is zero, so that results do not vary")
def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return torch.full(size, 0, dtype=dtype or torch.get_default_dtype(), device=device)


@entry("empty_permuted.default", "as empty.memory_format, in another order of memory")
def empty_permuted(size, physical_layout, dtype=None, layout=None, device=None, pin_memory=None):
    return empty(size, dtype, device=device)


@entry("copy.default", "torch-mlir has no lowering of it")
def copy(x, src, non_blocking=False):
    return src.to(x.dtype).expand(x.shape)


@entry("any.dim", "torch-mlir reduces booleans with an op that has no range for the compiler")
def any_dim(x, dim, keepdim=False):
    return (x != 0).to(torch.int64).sum(dim, keepdim) > 0


@entry("_native_batch_norm_legit_no_training.default", "torch-mlir has no lowering of it")
def batch_norm_inference(x, weight, bias, mean, var, momentum, eps):
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (x - mean.view(shape)) * torch.rsqrt(var.view(shape) + eps)
    y = y if weight is None else y * weight.view(shape)
    return (y if bias is None else y + bias.view(shape)), x.new_zeros(0), x.new_zeros(0)


@entry("instance_norm.default", "torch's own goes through a batch norm that updates buffers")
def instance_norm(x, weight, bias, mean, var, use_input_stats, momentum, eps, cudnn):
    if not use_input_stats:
        return NotImplemented
    dims = list(range(2, x.dim()))
    shape = [1, -1] + [1] * len(dims)
    centred = x - x.mean(dims, keepdim=True)
    y = centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    y = y if weight is None else y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


@entry("convolution.default", "the compiler's fold of unit extents takes spare input for an error; it "
       "is cut off, where an extent of the result is 1")
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        return NotImplemented
    pads, is_cut = [], False
    for d in reversed(range(x.dim() - 2)):
        reach = dilation[d] * (weight.shape[d + 2] - 1) + 1
        spare = (x.shape[d + 2] + 2 * padding[d] - reach) % stride[d]
        single = x.shape[d + 2] + 2 * padding[d] - reach < stride[d]
        cut = spare if single else 0
        is_cut = is_cut or cut > 0
        x = x.narrow(d + 2, 0, x.shape[d + 2] - max(cut - padding[d], 0))
        pads += [padding[d], max(padding[d] - cut, 0)]
    if not is_cut:
        return NotImplemented
    x = torch.nn.functional.pad(x, pads) if any(pads) else x
    return aten.convolution(x, weight, bias, stride, [0] * len(padding), dilation, False,
                            output_padding, groups)


def table() -> dict:
    """Returns the table {overload: function} for ``ExportedProgram.run_decompositions``."""
    found = torch.export.default_decompositions()
    for name, _, function in ENTRIES:
        if overload := find(name):
            found[overload] = function
    return found


def reasons() -> dict[str, str]:
    """Returns {name of the overload: reason} of all entries."""
    return {name: reason for name, reason, _ in ENTRIES}
