# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the values and gradients of each decomposition of the exporter with torch's own op."""

import inspect

import pytest

torch = pytest.importorskip("torch")

from fsdp_mlir.torch_export import decompositions, routing  # noqa: E402
from fsdp_mlir.torch_export.entries import ENTRIES, find  # noqa: E402

aten = torch.ops.aten
INF = float("inf")


def floats(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ids(limit, *shape, seed=0):
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(seed))


def distinct(limit, *shape):
    """Returns ids in [0, limit) that are all different along the last dim."""
    rows = torch.stack([torch.randperm(limit, generator=torch.Generator().manual_seed(r))
                        for r in range(int(torch.tensor(shape[:-1]).prod()))])
    return rows[:, :shape[-1]].reshape(shape)


MASK = ids(2, 5, 7).bool()
MASK[2] = True
BIAS = torch.where(MASK, 0.0, -1e9).double()
HEADS = (floats(2, 4, 5, 3), floats(2, 4, 7, 3, seed=1), floats(2, 4, 7, 6, seed=2))
GROUPS = (floats(2, 4, 5, 3), floats(2, 2, 7, 3, seed=1), floats(2, 2, 7, 6, seed=2))
IMAGE, KERNEL = floats(2, 4, 9, 7), floats(6, 2, 3, 2, seed=1)
# Positional and keyword arguments for each overload. The cases cover every order of dims, first and last positions, equal elements, and odd extents.
CASES = {
    "squeeze.dims": [((floats(1, 3, 1, 2), [0, 2]), {}), ((floats(1, 3, 1, 2), [-2, 1]), {}),
                     ((floats(1, 1), [0, 1]), {})],
    "cumsum.default": [((floats(3, 5), 0), {}), ((floats(3, 5), -1), {}), ((ids(9, 2, 4), 1), {}),
                       ((ids(2, 4).bool(), 0), {}), ((floats(1), 0), {})],
    "scaled_dot_product_attention.default": [
        (HEADS, {}), (HEADS, {"scale": 0.3}), (HEADS, {"is_causal": True}),
        (HEADS, {"attn_mask": MASK}), (HEADS, {"attn_mask": BIAS, "scale": 2.0}),
        (HEADS, {"attn_mask": floats(4, 1, 7)}), (GROUPS, {"enable_gqa": True})],
    "topk.default": [((floats(3, 6), 2), {}), ((floats(3, 6), 4, 0 - 1, False), {}),
                     ((floats(4, 3, 2), 2, 0), {}), ((floats(5), 5), {}),
                     ((torch.tensor([-INF, 1.0, -INF, -INF]), 3), {})],
    "gelu.default": [((floats(40) * 4,), {}), ((floats(40) * 4,), {"approximate": "tanh"})],
    "scatter.value": [((floats(3, 5), 1, ids(5, 3, 2), 7.0), {}),
                      ((floats(3, 5), 0, ids(3, 2, 5), -INF), {}),
                      ((floats(3, 5), 1, ids(5, 1, 2), 7.0), {}),
                      ((floats(4, 3, 5), -2, ids(3, 2, 2, 1), 7.0), {})],
    "scatter.src": [((floats(3, 5), 1, distinct(5, 3, 4), floats(3, 4, seed=1)), {}),
                    ((floats(3, 5), -1, distinct(5, 3, 1), floats(3, 1, seed=1)), {}),
                    ((floats(3, 5), 1, distinct(5, 1, 4), floats(1, 4, seed=1)), {}),
                    ((ids(9, 3, 5), 1, distinct(5, 3, 4), ids(9, 3, 4, seed=1)), {})],
    "scatter_add.default": [((floats(3, 5), 1, ids(5, 3, 9), floats(3, 9, seed=1)), {}),
                            ((floats(4, 3, 5), 0, ids(4, 2, 2, 1), floats(2, 2, 1)), {})],
    "roll.default": [((floats(4, 5), [1, -2], [0, 1]), {}), ((floats(4, 5), [7], [1]), {}),
                     ((floats(4, 5), [3]), {}), ((floats(4, 5), [0], [0]), {})],
    "slice_scatter.default": [((floats(5, 4), floats(2, 4, seed=1), 0, 1, 3), {}),
                              ((floats(5, 4), floats(5, 2, seed=1), 1, -2), {}),
                              ((floats(5, 4), floats(5, 4, seed=1), 1), {}),
                              ((floats(5, 4), floats(3, 4, seed=1), 0, None, -2), {})],
    "select_scatter.default": [((floats(5, 4), floats(4, seed=1), 0, 2), {}),
                               ((floats(5, 4), floats(5, seed=1), 1, -1), {})],
    "copy.default": [((floats(3, 4), floats(4, seed=1)), {}),
                     ((floats(3, 4).float(), floats(3, 4, seed=1)), {})],
    "any.dim": [((ids(2, 3, 4).bool(), 1), {}), ((floats(3, 4) > 1.5, 0, True), {}),
                ((torch.zeros(2, 3), -1), {})],
    "_native_batch_norm_legit_no_training.default": [
        ((floats(2, 3, 4), floats(3), floats(3, seed=1), floats(3, seed=2), floats(3).abs() + 1, 0.1,
          1e-5), {}),
        ((floats(2, 3), None, None, floats(3), floats(3).abs() + 1, 0.1, 1e-3), {})],
    "instance_norm.default": [
        ((floats(2, 3, 4, 5), floats(3), floats(3, seed=1), None, None, True, 0.1, 1e-5, False), {}),
        ((floats(2, 3, 6), None, None, None, None, True, 0.1, 1e-3, False), {})],
    "convolution.default": [
        ((IMAGE, KERNEL, floats(6), [4, 7], [0, 0], [1, 1], False, [0, 0], 2), {}),
        ((IMAGE, KERNEL, None, [9, 8], [1, 0], [2, 1], False, [0, 0], 2), {}),
        ((floats(2, 3, 8), floats(4, 3, 6), floats(4), [5], [0], [1], False, [0], 1), {})],
}
TIES = torch.tensor([[3.0, 1.0, 3.0, -INF, 1.0], [2.0, INF, -1.0, INF, 2.0]]).double()
CASES["sort.stable"] = [
    ((floats(3, 7),), {"stable": True}), ((floats(4, 3, 2), ), {"stable": True, "dim": 0}),
    ((TIES,), {"stable": True}), ((TIES,), {"stable": True, "descending": True}),
    ((ids(4, 3, 9),), {"stable": True, "dim": 1, "descending": True}),
    ((ids(2, 9).bool(),), {"stable": True}), ((floats(), ), {"stable": True})]
CASES["sort.default"] = [((distinct(9, 3, 9),), {}), ((floats(3, 7), 0, True), {})]
CASES["histc.default"] = [
    ((ids(6, 40).double(), 6, 0, 5), {}), ((floats(40), 5, -1.0, 1.5), {}),
    ((floats(3, 7), 4), {}), ((torch.full((9,), 2.5).double(), 3), {}),
    ((torch.tensor([0.0, 1.0, -0.1, 1.1, 0.5]).double(), 2, 0, 1), {})]
# The cases contain an index for a middle dim, repeated indices, negative indices, and masks.
CASES["index_put.default"] = [
    ((floats(5, 4), [distinct(5, 3)], floats(3, 4, seed=1)), {}),
    ((floats(3, 5, 4), [None, distinct(5, 2, 2)[:1] - 5], floats(4, seed=1)), {}),
    ((ids(9, 6), [torch.tensor([2, 4, 2, 0])], torch.tensor([1, 2, 3, 4])), {}),
    ((floats(5, 4), [ids(5, 3, 4)], floats(3, 4, 4, seed=1), True), {}),
    ((ids(9, 5), [ids(5, 9)], ids(9, 9), True), {}),
    ((floats(5, 4), [floats(5, 4) > 0], floats(seed=1)), {}),
    ((floats(5, 4), [floats(5) > 0], torch.tensor(2.0).double()), {})]
# No rows belong to the second matrix.
ENDS = torch.tensor([3, 3, 8], dtype=torch.int32)
CASES["_grouped_mm.default"] = [((floats(8, 4).float(), floats(3, 4, 8, seed=1).float()), {"offs": ENDS})]
CASES["_adaptive_avg_pool2d.default"] = [
    ((floats(2, 3, 8, 8), [3, 5]), {}), ((floats(2, 3, 8, 6), [4, 4]), {}),
    ((floats(3, 4, 7), [11, 2]), {}), ((floats(2, 3, 8, 6), [4, 1]), {})]
CASES["_adaptive_avg_pool3d.default"] = [((floats(2, 3, 4, 6, 5), [3, 2, 7]), {})]
# Some windows contain the maximum twice, and some windows contain only -inf.
CASES["adaptive_max_pool2d.default"] = [
    ((floats(2, 3, 8, 8), [3, 5]), {}), ((floats(3, 4, 7).clamp(max=0.0), [11, 2]), {}),
    ((torch.where(floats(2, 5, 6) > 1, 1.0, -INF), [2, 4]), {})]
# The cases contain disjoint windows, overlapping windows, and windows that exceed the padded edge. One case has no batch dim.
CASES["col2im.default"] = [
    ((floats(2, 8, 16), [5, 5], [2, 2], [1, 1], [0, 0], [1, 1]), {}),
    ((floats(2, 8, 16), [6, 6], [2, 2], [1, 1], [1, 1], [2, 2]), {}),
    ((floats(2, 12, 15), [7, 6], [2, 3], [2, 1], [0, 1], [1, 2]), {}),
    ((floats(2, 4, 4), [7, 8], [2, 2], [1, 1], [0, 1], [4, 5]), {}),
    ((floats(6, 9), [4, 3], [1, 6], [1, 2], [3, 5], [4, 1]), {})]
# The cases test every overload of interpolation to larger and to smaller extents. The extents are given as sizes, as sizes with aligned
# corners, and as scales. If the result has a width of 1, torch's antialiasing kernel repeats the first row of the result. These cases therefore
# have a height of 1.
for _op in ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa"):
    CASES[_op + ".vec"] = [((floats(1, 2, 3, 4), [6, 5], False, None), {}),
                           ((floats(1, 2, 5, 6), [9, 2], True, None), {}),
                           ((floats(1, 2, 5, 4), [1, 2] if "aa" in _op else [2, 1], True, None), {}),
                           ((floats(1, 2, 9, 4), None, False, [0.4, 1.5]), {})]
    CASES[_op + ".default"] = [((floats(1, 2, 3, 9), [6, 5], False), {}),
                               ((floats(1, 2, 5, 6), [9, 2], True), {}),
                               ((floats(1, 2, 5, 6), [7, 4], False, 1.5, 0.7), {})]
# The decompositions in this set have no case. Random numbers cannot be compared; the tests of the exporter test dropout. The values of empty tensors
# are undefined. The op of transformers computes the same as _grouped_mm, and is tested in models.
WITHOUT_CASE = {"empty.memory_format", "empty_permuted.default",
                "transformers::grouped_mm_fallback.default"}
# Indices of the differentiable arguments, for ops that also have other float arguments.
DIFFERENTIABLE = {"copy.default": (), "_native_batch_norm_legit_no_training.default": (0, 1, 2)}
PAIRS = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]


def functions():
    return {name: function for name, _, function in ENTRIES}


def test_each_entry_has_a_reason_and_a_case():
    assert set(CASES) | WITHOUT_CASE == set(decompositions.reasons())
    assert all(len(reason) > 10 for reason in decompositions.reasons().values())
    missing = [name for name in decompositions.reasons() if not find(name) and "::" not in name]
    assert not missing, "an op that this torch does not have"


@pytest.mark.parametrize("name, case", PAIRS)
def test_values_and_gradients(name, case):
    arguments, keywords = CASES[name][case]
    wanted, found = [], []
    for function, results in ((find(name), wanted), (functions()[name], found)):
        wanted_gradients = DIFFERENTIABLE.get(name, range(len(arguments)))
        own = [a.clone().requires_grad_(i in wanted_gradients)
               if isinstance(a, torch.Tensor) and a.is_floating_point() else a
               for i, a in enumerate(arguments)]
        out = function(*own, **keywords)
        assert out is not NotImplemented, "the case is left to torch"
        outs = out if isinstance(out, (tuple, list)) else (out,)
        outs = [o for o in outs if o.numel()]
        results += [o.detach() for o in outs]
        floating = [o for o in outs if o.is_floating_point() and o.requires_grad]
        if floating:
            finite = [torch.where(o.isfinite(), o, 0.0) for o in floating]
            sum((o * torch.linspace(1, 2, o.numel(), dtype=o.dtype).view(o.shape)).sum()
                for o in finite).backward()
            results += [torch.zeros_like(a) if a.grad is None else a.grad for a in own
                        if isinstance(a, torch.Tensor) and a.requires_grad]
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        is_float = a.is_floating_point()
        if name == "topk.default" and not is_float:
            # If several elements are equal, torch may return the index of another of these elements. Only the values are therefore compared.
            continue
        is_coarse = "upsample" in name or a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=1e-5 if is_coarse else 1e-10,
                                   atol=1e-6 if is_coarse else 1e-10)


def test_places_of_topk_are_different():
    x = torch.tensor([[1.0, 1.0, 1.0, -INF], [-INF, -INF, -INF, -INF]])
    values, places = routing.topk(x, 3)
    assert all(len(set(row)) == 3 for row in places.tolist())
    assert torch.equal(x.gather(1, places), values)


def test_signatures_are_those_of_torch():
    """A decomposition and its op must have arguments of the same names, because callers may pass arguments by name."""
    for name, function in functions().items():
        if "::" in name and not find(name):
            continue
        theirs = [a.name for a in find(name)._schema.arguments]
        own = list(inspect.signature(function).parameters)
        keyword_only = [a.name for a in find(name)._schema.arguments if a.kwarg_only]
        assert len(own) >= len(theirs) - len(keyword_only), name
        assert set(keyword_only) <= set(own) | {"generator"}, name
