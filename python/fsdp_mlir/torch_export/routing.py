# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of ops that sort or count elements, or move them to computed positions.

torch-mlir lowers these ops to sorts, scans and scatters of its own dialect, which the compiler does
not know. The decompositions compare each element with each position, so all shapes are static and
all ops are differentiable. Positions are computed by argmax, because the compiler can derive the
range of its result. For n elements, sort makes n * n comparisons, and refuses n above _MOST_SORTED.
"""

from __future__ import annotations

import torch

from .entries import entry, refuse

_MOST_SORTED = 1 << 15


@entry("topk.default", "torch-mlir's sort is an op of its own dialect; k maxima, one by one")
def topk(x, k, dim=-1, largest=True, sorted=True):
    if not x.dtype.is_floating_point:
        return NotImplemented
    x = x.movedim(dim, -1) if largest else -x.movedim(dim, -1)
    at, free = torch.arange(x.shape[-1], device=x.device), torch.ones_like(x, dtype=torch.bool)
    values, indices = [], []
    for _ in range(k):
        rest = torch.where(free, x, float("-inf"))
        best = rest.amax(-1, keepdim=True)
        # The comparison is ``>=``, which is true for at least one free element even if all free
        # elements are -inf.
        index = (free & (rest >= best)).to(torch.int64).argmax(-1, keepdim=True)
        chosen = at == index
        values.append(torch.where(chosen, x, 0.0).sum(-1, keepdim=True))
        indices.append(index)
        free = free & ~chosen
    value = torch.cat(values, -1) if largest else -torch.cat(values, -1)
    return value.movedim(-1, dim), torch.cat(indices, -1).movedim(-1, dim)


def _key(x):
    """Returns keys that have the same order as the elements of ``x`` in torch's sort, where NaN is
    last."""
    if x.dtype == torch.bool:
        return x.to(torch.int64)
    return torch.where(x.isnan(), float("inf"), x) if x.is_floating_point() else x


@entry("sort.default", "torch-mlir's sort is an op of its own dialect; the place of an element is the "
       "number of those before it")
def sort(x, dim=-1, descending=False):
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    x = x.movedim(dim, -1)
    n, key = x.shape[-1], _key(x)
    if n > _MOST_SORTED:
        raise refuse(f"a sort of {n} elements takes {n} * {n} comparisons; expected at most "
                     f"{_MOST_SORTED} elements: sort outside of the loss, or take topk")
    at = torch.arange(n, device=x.device)
    own, other = key.unsqueeze(-1), key.unsqueeze(-2)
    before = (other > own if descending else other < own) | ((other == own) & (at < at[:, None]))
    rank = before.to(torch.int64).sum(-1)
    hit = rank.unsqueeze(-2) == at[:, None]
    place = hit.to(torch.int64).argmax(-1)
    values = (torch.where(hit, x.unsqueeze(-2), 0.0).sum(-1) if x.is_floating_point()
              else x.gather(-1, place))
    return values.movedim(-1, dim), place.movedim(-1, dim)


@entry("sort.stable", "as sort.default, which is stable")
def sort_stable(x, *, stable, dim=-1, descending=False):
    return sort(x, dim, descending)


@entry("histc.default", "torch-mlir has no lowering; counts by comparison")
def histc(x, bins=100, min=0, max=0):
    x = x.flatten()
    low, high = (x.amin(), x.amax()) if min == max else (min, max)
    width = high - low
    # If all elements are equal, the range has a width of 2, as in torch.
    if min == max:
        low, width = torch.where(width == 0, low - 1, low), torch.where(width == 0, 2, width)
    inside = (x >= low) & (x <= low + width if min == max else x <= max)
    place = torch.where(inside, (x - low) * bins / width, 0).to(torch.int64).clamp(max=bins - 1)
    hit = inside.unsqueeze(-1) & (place.unsqueeze(-1) == torch.arange(bins, device=x.device))
    return hit.to(x.dtype).sum(0)


def _hits(x, dim, index):
    """Returns a mask that is true where an element of ``index`` equals a position along the dim
    ``dim``.

    The last dim of the mask counts the positions along ``dim`` of ``x``. The dim before the last
    counts the elements of ``index`` along ``dim``. All other dims have the extents of ``x``. The
    mask is false beyond the extents of ``index``.
    """
    dim %= x.dim()
    hit = index.movedim(dim, -1).unsqueeze(-1) == torch.arange(x.shape[dim], device=x.device)
    return _grow(hit, [n for d, n in enumerate(x.shape) if d != dim])


def _grow(x, shape):
    """Pads the first dims of ``x`` with zeros to the extents ``shape``."""
    pads = [pad for n, m in zip(reversed(shape), reversed(x.shape[:len(shape)])) for pad in (0, n - m)]
    kept = [0] * (2 * (x.dim() - len(shape)))
    return torch.nn.functional.pad(x, kept + pads) if any(pads) else x


@entry("scatter.value", "torch-mlir's scatter is an op of its own dialect; by comparison")
def scatter_value(x, dim, index, value):
    return torch.where(_hits(x, dim, index).any(-2).movedim(-1, dim), value, x)


def _scattered(x, dim, index, src):
    """Returns two tensors. Element p of the first tensor is the sum of those elements of ``src``
    that ``index`` moves to position p of ``x``. Element p of the second tensor is true if ``index``
    moves any element there."""
    hit = _hits(x, dim, index)
    src = src[tuple(map(slice, index.shape))].movedim(dim, -1)
    src = _grow(src, hit.shape[:-2]).unsqueeze(-1)
    put = torch.where(hit, src, 0).sum(-2).to(x.dtype)
    return put.movedim(-1, dim), hit.any(-2).movedim(-1, dim)


@entry("scatter.src", "as scatter.value; of places named twice the sum is taken, so indices differ")
def scatter_src(x, dim, index, src):
    put, is_named = _scattered(x, dim, index, src)
    return torch.where(is_named, put, x)


@entry("scatter_add.default", "as scatter.value")
def scatter_add(x, dim, index, src):
    return x + _scattered(x, dim, index, src)[0]


@entry("index_put.default", "torch-mlir's scatter is an op of its own dialect; of places named twice "
       "the last one counts, as in torch on a CPU")
def index_put(x, indices, values, accumulate=False):
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) != 1:
        return NotImplemented
    dim, index = given[0]
    if index.dtype == torch.bool:
        if accumulate or values.dim() > 0:
            return NotImplemented
        mask = index.view(*index.shape, *[1] * (x.dim() - dim - index.dim()))
        return torch.where(mask, values, x)
    n, rest = x.shape[dim], x.shape[:dim] + x.shape[dim + 1:]
    shape = x.shape[:dim] + index.shape + x.shape[dim + 1:]
    put = values.expand(shape).reshape(*x.shape[:dim], -1, *x.shape[dim + 1:]).movedim(dim, 0)
    index = torch.where(index < 0, index + n, index).flatten()
    hit = torch.arange(n, device=x.device)[:, None] == index
    wide = lambda mask: mask.view(*mask.shape, *[1] * len(rest))
    if accumulate:
        return x + torch.where(wide(hit), put, 0).sum(1).to(x.dtype).movedim(0, dim)
    order = torch.arange(1, index.numel() + 1, device=x.device)
    put = put.index_select(0, (hit.to(torch.int64) * order).argmax(-1))
    return torch.where(wide(hit.any(-1)), put, x.movedim(dim, 0)).movedim(0, dim)


def _product_of_groups(x, weight, ends):
    """Multiplies the rows [ends[e - 1], ends[e]) of ``x`` by the matrix e, for each e. Rows that
    follow all of these ranges become 0."""
    row, ends = torch.arange(x.shape[0], device=x.device), ends.to(torch.int64)[:, None]
    begins = torch.nn.functional.pad(ends[:-1], [0, 0, 1, 0])
    mine = (row >= begins) & (row < ends)
    return (torch.where(mine.unsqueeze(-1), x, 0.0) @ weight).sum(0)


@entry("_grouped_mm.default", "torch-mlir has no lowering; each matrix multiplies all rows, and rows of "
       "others are zero")
def grouped_mm(x, weight, offs=None, bias=None, out_dtype=None):
    if x.dim() != 2 or weight.dim() != 3 or offs is None or bias is not None:
        return NotImplemented
    return _product_of_groups(x, weight, offs).to(out_dtype or x.dtype)


@entry("transformers::grouped_mm_fallback.default", "as _grouped_mm; experts of transformers call it")
def grouped_mm_of_transformers(input, weight, offs):
    return _product_of_groups(input, weight, offs)
