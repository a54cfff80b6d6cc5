"""Tests the exporter for PyTorch: gradients, names and refusals. Skipped if torch is not installed."""

import subprocess
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("iree.compiler")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fsdp_mlir as fm  # noqa: E402
from fsdp_mlir import tools  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def loss_fn(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def example(rows=2, length=6, limit=16):
    tokens = torch.zeros((rows, length), dtype=torch.long)
    tokens[0, 0] = limit - 1
    return tokens


class Small(nn.Module):
    """A model of an embedding, the method ``middle`` of the derived class, and an output head."""

    def __init__(self, **options):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(16, 8, **options)
        self.linear = nn.Linear(8, 8)
        self.head = nn.Linear(8, 16)

    def middle(self, x):
        return torch.tanh(self.linear(x))

    def forward(self, tokens):
        return self.head(self.middle(self.embed(tokens)))


def gradients_agree(module, batch=None, loss=loss_fn, frozen=()):
    """Runs one step of SGD here on two ranks and in torch, and compares all parameters."""
    first = example()
    model = fm.export_torch(module, (first, first), loss=loss)
    step = fm.compile(model, mesh="shard=2", optimizer=fm.SGD(lr=1.0))
    random = np.random.default_rng(1)
    batch = batch or tuple(torch.from_numpy(random.integers(0, 16, (4, 6))) for _ in range(2))
    with step.train(weights="model", check_against_unsharded=True) as run:
        found = run.step(batch).loss
        run.compare()
        after = dict(run.parameters())
    value = sum(loss(module, *(t[2 * r:2 * r + 2] for t in batch)) for r in range(2)) / 2
    assert found == pytest.approx(float(value), rel=1e-5)
    value.backward()
    for name, parameter in module.named_parameters():
        expected = parameter.detach()
        if parameter.grad is not None:
            expected = expected - parameter.grad
        np.testing.assert_allclose(after[name], expected.numpy(), rtol=0, atol=2e-6, err_msg=name)
    return model


def test_names_tied_frozen_and_buffers():
    class Model(Small):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(8, 16, bias=False)
            self.out.weight = self.embed.weight
            self.linear.bias.requires_grad_(False)
            self.register_buffer("scale", torch.full((8,), 1.5))

        def forward(self, tokens):
            return self.out(self.middle(self.embed(tokens)) * self.scale)

    module = Model()
    model = gradients_agree(module)
    frozen = {p.name: p.frozen for p in model.parameters}
    assert frozen["linear.bias"] and not frozen["embed.weight"] and "scale" not in frozen
    assert frozen["head.weight"], "a parameter that the loss does not use"
    assert model.aliases == {"out.weight": "embed.weight"}
    assert [i.name for i in model.inputs] == ["tokens", "targets"]
    with fm.compile(model).train(weights=module) as run:
        state = run.state_dict()
        assert set(state) == set(module.state_dict())
        module.load_state_dict(state)


@pytest.mark.parametrize("middle", [
    lambda self, x: x * x.detach(),
    lambda self, x: x + self.linear(x).detach(),
    lambda self, x: (x - x.mean(-1, keepdim=True).detach()) * self.linear(x)])
def test_detach_stops_gradients(middle):
    class Model(Small):
        pass

    Model.middle = middle
    assert "fsdp.num_stop_gradients" in gradients_agree(Model()).text


def test_no_grad_stops_gradients():
    class Model(Small):
        def middle(self, x):
            with torch.no_grad():
                scale = self.linear(x)
            return x * scale

    assert "fsdp.num_stop_gradients" in gradients_agree(Model()).text


def test_padding_rows_have_no_gradient():
    batch = (torch.tensor([[0, 3, 0, 5, 0, 0]] * 4), torch.tensor([[1, 2, 3, 4, 5, 6]] * 4))
    gradients_agree(Small(padding_idx=0), batch)
    gradients_agree(Small(padding_idx=-3), batch)


def test_one_tensor_for_two_inputs_is_two_inputs():
    tokens = example()
    model = fm.export_torch(Small(), (tokens, tokens), loss=loss_fn)
    step = fm.compile(model)
    with step.train(seed=1) as run:
        same = run.evaluate((tokens, tokens))
        assert run.evaluate((tokens, (tokens + 1) % 16)) != same


def test_a_mapping_names_the_inputs():
    def loss(model, labels, ids):
        return loss_fn(model, ids, labels)

    model = fm.export_torch(Small(), {"ids": example(), "labels": example()}, loss=loss)
    assert [i.name for i in model.inputs] == ["ids", "targets"]


def test_an_input_with_the_name_of_a_parameter_is_refused():
    class Model(Small):
        def __init__(self):
            super().__init__()
            self.targets = nn.Parameter(torch.zeros(8))

        def middle(self, x):
            return x + self.targets

    with pytest.raises(fm.ExportError, match="'targets' is the name of a batch input and of another"):
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)


def test_unused_inputs_are_reported():
    with pytest.warns(UserWarning, match="does not depend on the batch input 'weights'"):
        fm.export_torch(Small(), (example(), example(), torch.zeros(2)),
                        loss=lambda m, tokens, targets, weights: loss_fn(m, tokens, targets))


class Straight(torch.autograd.Function):
    """Rounds its input in the forward, and returns the unchanged gradient in the backward."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_gradients_of_their_own_are_refused():
    class Model(Small):
        def middle(self, x):
            return Straight.apply(x)

    with pytest.raises(fm.ExportError, match="'Straight' is a torch.autograd.Function") as caught:
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)
    assert caught.value.file == __file__ and caught.value.line


def test_gradients_of_their_own_are_refused_if_apply_was_kept():
    """Checks that a module is also refused if it stored ``MyFunction.apply`` before the export."""
    class Model(Small):
        def __init__(self):
            super().__init__()
            self.round = Straight.apply

        def middle(self, x):
            return self.round(x)

    with pytest.raises(fm.ExportError, match="'Straight' is a torch.autograd.Function"):
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)
    module = Model()
    assert module(example()).grad_fn is not None, "the class works after a refusal"


def test_control_flow_on_values_is_refused_with_its_line():
    class Model(Small):
        def middle(self, x):
            if x.sum() > 0:
                return x
            return -x

    with pytest.raises(fm.ExportError, match="control flow|data-dependent") as caught:
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)
    assert caught.value.file == __file__


def test_shapes_that_depend_on_values_are_refused():
    class Model(Small):
        def middle(self, x):
            return x * x[x > 0].sum()

    with pytest.raises(fm.ExportError):
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)


def test_an_unsupported_op_is_named_with_its_line():
    class Model(Small):
        def middle(self, x):
            return x + torch.linalg.svdvals(x).sum()

    with pytest.raises(fm.ExportError, match="cannot lower 'aten._linalg_svd.default'") as caught:
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)
    assert caught.value.file == __file__


def test_a_forgotten_loss_is_explained():
    with pytest.raises(fm.ExportError, match="pass loss= if it needs one"):
        fm.export_torch(Small(), (example(), example()))


@pytest.mark.parametrize("loss, message", [
    (lambda m, x, y: m(x), r"of shape \[2, 6, 16\]; expected one float scalar"),
    (lambda m, x, y: m(x).argmax(), "expected one float scalar"),
    (lambda m, x, y: (loss_fn(m, x, y), m(x).sum()), "returns 2 values"),
    (lambda m, x, y: m.middle(x), "calls 'middle' of the module")])
def test_losses_that_are_none_are_refused(loss, message):
    with pytest.raises((fm.ExportError, AttributeError), match=message):
        fm.export_torch(Small(), (example(), example()), loss=loss)


def test_unknown_types_are_refused():
    with pytest.raises(fm.ExportError, match="'targets': unknown type torch.complex64"):
        fm.export_torch(Small(), (example(), torch.zeros(2, dtype=torch.complex64)), loss=loss_fn)
    with pytest.raises(TypeError, match="'targets': expected a tensor, found int"):
        fm.export_torch(Small(), (example(), 3), loss=loss_fn)


def test_running_statistics_are_refused():
    class Model(Small):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(6)

        def middle(self, x):
            return self.norm(x)

    with pytest.raises(fm.ExportError, match="changes its buffer or input"):
        fm.export_torch(Model().train(), (example(), example()), loss=loss_fn)


def test_random_numbers_are_refused():
    class Model(Small):
        def middle(self, x):
            return x + torch.rand_like(x)

    with pytest.raises(fm.ExportError, match="draws random numbers"):
        fm.export_torch(Model(), (example(), example()), loss=loss_fn)


def test_dropout_is_keyed_and_off_in_evaluations():
    class Model(Small):
        def middle(self, x):
            return F.dropout(self.linear(x), 0.5, self.training)

    module = Model().train()
    model = fm.export_torch(module, (example(), example()), loss=loss_fn)
    step = fm.compile(model, mesh="shard=2")
    batch = (torch.ones(4, 6, dtype=torch.long), torch.ones(4, 6, dtype=torch.long))
    with step.train(weights="model", seed=3, check_against_unsharded=True) as run:
        plain = run.evaluate(batch)
        first, second = run.step(batch, lr=0.0).loss, run.step(batch).loss
    assert first != second and first != plain
    expected = loss_fn(module.eval(), *batch)
    assert plain == pytest.approx(float(expected), rel=1e-5)


class Recurrent(nn.Module):
    """Recurrent layers with dropout between them. The loss reads the output and the final states."""

    def __init__(self, kind, directions, batch_first, dropout, **options):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.batch_first = nn.Embedding(16, 8), batch_first
        self.layers = kind(8, 8, num_layers=3, batch_first=batch_first, dropout=dropout,
                           bidirectional=directions == 2, **options)
        self.head = nn.Linear((options.get("proj_size") or 8) * directions, 16)

    def forward(self, tokens):
        x = self.embed(tokens)
        y, state = self.layers(x if self.batch_first else x.transpose(0, 1))
        states = state if isinstance(state, tuple) else (state,)
        y = y if self.batch_first else y.transpose(0, 1)
        return self.head(y) + sum((s * s).mean((0, 2)) for s in states)[:, None, None]


def check_recurrent_dropout(module):
    model = fm.export_torch(module.train(), (example(), example()), loss=loss_fn)
    assert model.text.count("call @fsdp.dropout.") == 2
    step = fm.compile(model, mesh="shard=2")
    batch = (torch.ones(4, 6, dtype=torch.long), torch.ones(4, 6, dtype=torch.long))
    with step.train(weights="model", seed=3, check_against_unsharded=True) as run:
        plain = run.evaluate(batch)
        first, second = run.step(batch, lr=0.0).loss, run.step(batch).loss
        run.compare()
    assert len({plain, first, second}) == 3
    with torch.no_grad():
        expected = loss_fn(module.eval(), *batch)
    assert plain == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("kind, directions, batch_first", [
    (nn.LSTM, 1, True), (nn.GRU, 2, False), (nn.RNN, 1, False)])
def test_dropout_between_recurrent_layers(kind, directions, batch_first):
    check_recurrent_dropout(Recurrent(kind, directions, batch_first, 0.5))


def test_dropout_between_layers_with_projections():
    check_recurrent_dropout(Recurrent(nn.LSTM, 2, True, 0.5, proj_size=4))


def test_gradients_of_recurrent_layers_with_dropout():
    """With a dropout probability of 1e-12 no value is dropped, so the gradients are the same as without dropout."""
    gradients_agree(Recurrent(nn.LSTM, 2, False, 1e-12).train())


def imported(model):
    """Returns the text of a model after the compiler's stage Import."""
    return subprocess.run([tools.find_tool("fsdp-compile"), "-", "--compile-to=import", "-o", "-"],
                          input=model.text, check=True, capture_output=True, text=True).stdout


def test_documents_without_bounds_are_folded():
    """The ids of a single document add no mask. They are computed from positions."""
    class Model(Small):
        def middle(self, x):
            places = torch.arange(x.shape[1]).expand(x.shape[:2])
            begins = torch.diff(places, prepend=places[:, :1] - 1) != 1
            document = begins.cumsum(-1)
            causal = torch.arange(x.shape[1]) <= torch.arange(x.shape[1])[:, None]
            mask = causal & (document[:, None, :] == document[:, :, None])
            scores = self.linear(x) @ x.transpose(1, 2)
            scores = scores.masked_fill(~mask, torch.finfo(torch.float32).min)
            return scores.softmax(-1) @ x

    text = imported(gradients_agree(Model()))
    assert text.count("= fsdp.attention ") == 1 and "capture(" not in text


def test_documents_of_the_batch_are_raised():
    """If a mask is causal and restricted to documents, each query has at least the key at its own position, whatever
    the document ids are."""
    class Model(Small):
        def forward(self, tokens):
            x = self.embed(tokens)
            causal = torch.arange(x.shape[1]) <= torch.arange(x.shape[1])[:, None]
            mask = causal & (tokens[:, None, :] == tokens[:, :, None])
            scores = self.linear(x) @ x.transpose(1, 2) + torch.where(mask, 0.0, -1e9)
            return self.head(torch.maximum(scores, torch.tensor(-1e9)).softmax(-1) @ x)

    assert imported(gradients_agree(Model())).count("= fsdp.attention ") == 1
