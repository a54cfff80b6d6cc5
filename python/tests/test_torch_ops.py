# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of PyTorch that need decompositions of the exporter train as in PyTorch.

Each op is placed between a layer and the loss of a small module. One step of SGD with this project on two ranks must equal one step of SGD in torch.
Skipped if torch is not installed.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("iree.compiler")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fsdp_mlir as fm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
aten = torch.ops.aten
OPS: dict = {}


class Around(nn.Module):
    """A module that applies an op to the features of a layer: 2 x 8 x 16 values between -1 and 1."""

    def __init__(self, op, *parts):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(16, 16)
        self.parts = nn.ModuleList(parts)
        object.__setattr__(self, "op", op)

    def forward(self, x):
        return self.op(torch.tanh(self.linear(x)), *self.parts)


def square_loss(module, x):
    y = module(x)
    return (y * y * torch.linspace(1, 2, y.numel()).view(y.shape)).mean()


def train_both(module):
    """Runs one step here and in torch, and compares the loss and all weights."""
    model = fm.export_torch(module, (torch.zeros(2, 8, 16),), loss=square_loss)
    step = fm.compile(model, mesh="shard=2", optimizer=fm.SGD(lr=1.0))
    batch = torch.randn((4, 8, 16), generator=torch.Generator().manual_seed(1))
    with step.train(weights="model", check_against_unsharded=True) as run:
        found = run.step((batch,)).loss
        run.compare()
        after = dict(run.parameters())
    value = sum(square_loss(module, batch[2 * r:2 * r + 2]) for r in range(2)) / 2
    assert found == pytest.approx(value.item(), rel=1e-5)
    value.backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-4
        expected = (parameter - parameter.grad).detach().numpy()
        np.testing.assert_allclose(after[name], expected, rtol=0, atol=2e-6, err_msg=name)
    return model


def op(function):
    OPS[function.__name__] = function
    return function


def image(x):
    return x.reshape(x.shape[0], 2, 8, 8)


for _mode in ("bilinear", "bicubic"):
    OPS[f"{_mode}_size"] = lambda x, m=_mode: F.interpolate(image(x), size=(5, 11), mode=m)
    OPS[f"{_mode}_scale"] = lambda x, m=_mode: F.interpolate(image(x), scale_factor=1.7, mode=m)
    OPS[f"{_mode}_aligned"] = lambda x, m=_mode: F.interpolate(
        image(x), size=(5, 11), mode=m, align_corners=True)
    OPS[f"{_mode}_antialias"] = lambda x, m=_mode: F.interpolate(
        image(x), size=(5, 11), mode=m, antialias=True)
    OPS[f"{_mode}_default"] = lambda x, m=_mode: getattr(aten, f"upsample_{m}2d").default(
        image(x), [5, 11], False, 0.6, 1.4)
    OPS[f"{_mode}_antialias_default"] = lambda x, m=_mode: getattr(
        aten, f"_upsample_{m}2d_aa").default(image(x), [5, 11], False)


@op
def upsample_module(x):
    return nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)(image(x))


@op
def uneven_average(x):
    return F.adaptive_avg_pool2d(image(x), (3, 5))


@op
def larger_average(x):
    return F.adaptive_avg_pool2d(image(x), (11, 4))


@op
def uneven_average_1d(x):
    return F.adaptive_avg_pool1d(x, 5)


@op
def uneven_average_3d(x):
    return F.adaptive_avg_pool3d(x.reshape(-1, 2, 4, 4, 4), (3, 2, 5))


@op
def uneven_maxima(x):
    return F.adaptive_max_pool2d(F.relu(image(x)), (3, 5))


@op
def fold(x):
    return nn.Fold((5, 5), (2, 2))(x.reshape(-1, 8, 16))


@op
def fold_apart(x):
    return F.fold(x.reshape(-1, 8, 16), (6, 6), (2, 2), padding=1, stride=2)


@op
def fold_dilated(x):
    return F.fold(x.reshape(-1, 8, 16), (6, 6), (2, 2), dilation=2)


@op
def unfold_and_fold(x):
    parts = F.unfold(image(x), (3, 3), padding=1, stride=2)
    return F.fold(parts * parts, (8, 8), (3, 3), padding=1, stride=2)


@op
def sorted_values(x):
    return x.sort(1, descending=True).values


@op
def median(x):
    return x.sort(-1).values[..., 8]


@op
def argsort_of_features(x):
    return x.gather(1, x[..., :1].argsort(1).expand(-1, -1, 16))


@op
def argsort_of_constants(x):
    return x[:, torch.tensor([3, 1, 2, 0, 5, 4, 7, 6]).argsort()]


@op
def routing(x):
    """Sorts the rows by the index of the expert that they choose, scales them, and restores their order."""
    order = x[..., :4].argmax(-1).flatten().argsort(stable=True)
    rows = x.flatten(0, 1)[order] * torch.linspace(1, 2, order.numel())[:, None]
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.numel())
    return rows[inverse]


@op
def counts(x):
    chosen = x[..., :4].argmax(-1).float()
    return x * torch.histc(chosen, bins=4, min=0, max=3)[chosen.long()].unsqueeze(-1)


@op
def added_rows(x):
    places = x[0, :, :4].argmax(-1)
    return torch.zeros(x.shape[0], 4, 16).index_add(1, places, x)


@op
def put_rows(x):
    return x.index_put((torch.tensor([1, 0]), ), x * x)


def pairs(x):
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def angles(length=8, width=8):
    return torch.outer(torch.arange(length).float(), 10.0 ** -torch.arange(width))


@op
def complex_rotation(x):
    turns = torch.polar(torch.ones(8, 8), angles())
    return torch.view_as_real(pairs(x) * turns).flatten(-2)


@op
def complex_arithmetic(x):
    """Computes sums, quotients, conjugates, exponentials, absolute values, and real and imaginary parts of complex numbers."""
    a = pairs(x)
    b = (a.conj() + 1j * a) / (2 - 1j) - x[..., :8] / (a + 3)
    c = torch.cat([b, x[..., :8]], -1).transpose(1, 2).flatten(1)[:, 3:50].sum(-1)
    d = torch.where(x[..., :8] > 0, a, 2.0) * torch.exp(0.1j * x[..., 8:])
    sums = c.real + c.imag + d.mean(1).imag.sum(-1)
    return (sums.unsqueeze(-1) + d.abs().flatten(1)) / 20


@op
def complex_products(x):
    a = pairs(x)
    return torch.view_as_real(a @ a.transpose(-1, -2).conj()).flatten(-2) * x.mean()


@op
def detached_complex(x):
    """Computes a complex product. The gradient stops at one of the two factors, but not at the other factor."""
    a = pairs(x)
    scale = torch.view_as_real(a).flatten(-2).detach()
    return torch.view_as_real(a * a.detach()).flatten(-2) * scale


class Rotary(nn.Module):
    """Rotates pairs of values by multiplying them by a complex buffer, as the original code of Llama does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(8, 8), angles()))

    def forward(self, x):
        return torch.view_as_real(pairs(x) * self.turns[:x.shape[1]]).flatten(-2)


def test_complex_buffers():
    train_both(Around(lambda x, rotary: rotary(x), Rotary()))


def test_other_ops_of_complex_numbers_are_refused_with_their_line():
    with pytest.raises(fm.ExportError, match="'aten._fft_r2c.default' computes with complex") as caught:
        fm.export_torch(Around(lambda x: torch.fft.rfft(x).abs()), (torch.zeros(2, 8, 16),),
                        loss=square_loss)
    assert caught.value.file == __file__ and caught.value.line


class Experts(nn.Module):
    """Multiplies each row by the weight of the expert (one of four) that the row chooses. Two
    experts are never chosen."""

    def __init__(self, product):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 16) / 4)
        self.product = product

    def forward(self, x):
        rows = x.flatten(0, 1)
        chosen, order = torch.sort(2 * (x[..., 0] > 0).long().flatten())
        counts = torch.histc(chosen.float(), bins=4, min=0, max=3)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        return self.product(rows[order], self.weight.transpose(-2, -1), ends)


def test_products_of_groups():
    train_both(Around(lambda x, experts: experts(x), Experts(
        lambda x, weight, ends: aten._grouped_mm.default(x, weight, ends))))


def test_products_of_groups_of_transformers():
    pytest.importorskip("transformers.integrations.moe")
    train_both(Around(lambda x, experts: experts(x), Experts(
        lambda x, weight, ends: torch.ops.transformers.grouped_mm_fallback(x, weight, ends))))


@pytest.mark.parametrize("name", OPS)
def test_an_op_trains_as_in_torch(name):
    train_both(Around(OPS[name]))


def test_long_sorts_are_refused_with_their_line():
    with pytest.raises(fm.ExportError, match="a sort of 65536 elements takes") as caught:
        fm.export_torch(Around(lambda x: x.expand(1024, 8, 16).flatten()[:65536].sort().values),
                        (torch.zeros(1, 8, 16),), loss=square_loss)
    assert caught.value.file == __file__ and caught.value.line


def test_scans_are_refused_with_their_line():
    with pytest.raises(fm.ExportError, match="lowers an op to 'tm_tensor.") as caught:
        fm.export_torch(Around(lambda x: x.cumprod(1)), (torch.zeros(2, 8, 16),), loss=square_loss)
    assert caught.value.file == __file__ and caught.value.line
