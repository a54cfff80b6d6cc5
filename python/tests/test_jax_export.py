# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exporter for JAX: gradients, names and refusals. Skipped if JAX is not installed."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import fsdp_mlir as fm  # noqa: E402

LIMIT, WIDTH, ROWS, LENGTH = 16, 8, 2, 6


def parameters():
    random = np.random.default_rng(0)
    draw = lambda *shape: (0.3 * random.standard_normal(shape)).astype(np.float32)
    return {"embed": draw(LIMIT, WIDTH), "layers": [{"w": draw(WIDTH, WIDTH), "b": draw(WIDTH)}],
            "head": draw(WIDTH, LIMIT)}


def cross_entropy(logits, targets):
    logs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logs, targets[..., None], -1).mean()


def make_loss(middle):
    def loss(p, tokens, targets):
        return cross_entropy(middle(p, p["embed"][tokens]) @ p["head"], targets)

    return loss


def linear(p, x):
    return jnp.tanh(x @ p["layers"][0]["w"] + p["layers"][0]["b"])


def example(dtype=np.int32):
    tokens = np.zeros((ROWS, LENGTH), dtype)
    return tokens, tokens.copy()


def batch(seed=1, ranks=2):
    random = np.random.default_rng(seed)
    return tuple(random.integers(0, LIMIT, (ranks * ROWS, LENGTH)).astype(np.int32) for _ in range(2))


def gradients_agree(loss, ranks=2, **options):
    """Runs one step of SGD here and in JAX, and compares the loss and all parameters."""
    p = parameters()
    model = fm.export_jax(loss, p, *example(), **options)
    step = fm.compile(model, mesh=f"shard={ranks}", optimizer=fm.SGD(lr=1.0))
    values = batch(ranks=ranks)
    with step.train(weights="model", check_against_unsharded=True) as run:
        found = run.step(values).loss
        run.compare()
        after = dict(run.parameters())

    def mean(p):
        return sum(loss(p, *(v[ROWS * r:ROWS * (r + 1)] for v in values)) for r in range(ranks)) / ranks

    expected, gradient = jax.value_and_grad(mean)(p)
    assert found == pytest.approx(float(expected), rel=1e-5)
    frozen = {q.name for q in model.parameters if q.frozen}
    leaves = jax.tree_util.tree_flatten_with_path(gradient)[0]
    for (path, slope), (_, value) in zip(leaves, jax.tree_util.tree_flatten_with_path(p)[0]):
        name = ".".join(str(getattr(k, "key", getattr(k, "idx", k))) for k in path)
        wanted = value if name in frozen else value - np.asarray(slope)
        np.testing.assert_allclose(after[name], wanted, rtol=0, atol=2e-6, err_msg=name)
    return model


def test_names_are_paths_in_the_tree():
    model = gradients_agree(make_loss(linear))
    assert [p.name for p in model.parameters] == ["embed", "head", "layers.0.b", "layers.0.w"]
    assert [i.name for i in model.inputs] == ["tokens", "targets"]
    assert [i.dtype for i in model.inputs] == ["i32", "i32"]


def test_frozen_parameters_keep_their_values():
    model = gradients_agree(make_loss(linear), frozen=lambda name: name.startswith("layers"))
    assert {p.name for p in model.parameters if p.frozen} == {"layers.0.b", "layers.0.w"}


@pytest.mark.parametrize("middle", [
    lambda p, x: x * jax.lax.stop_gradient(linear(p, x)),
    lambda p, x: (x - jax.lax.stop_gradient(x.mean(-1, keepdims=True))) * linear(p, x)])
def test_stop_gradient_stops(middle):
    assert "fsdp.num_stop_gradients" in gradients_agree(make_loss(middle)).text


def test_a_function_that_is_called_twice_stops_twice():
    held = jax.jit(lambda p, x: x + jax.lax.stop_gradient(linear(p, x)))
    gradients_agree(make_loss(lambda p, x: held(p, held(p, x))))


def test_attention_is_raised():
    def attend(p, x):
        scores = jnp.einsum("bqd,bkd->bqk", x, linear(p, x)) / np.sqrt(WIDTH)
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), x)

    gradients_agree(make_loss(attend))


def test_targets_that_do_not_count():
    def loss(p, tokens, targets):
        logits = linear(p, p["embed"][tokens]) @ p["head"]
        counts = targets < 4
        logs = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0]
        return -jnp.where(counts, logs, 0.0).sum() / jnp.maximum(counts.sum(), 1)

    gradients_agree(loss, ranks=1)


def test_scan_that_is_unrolled():
    def repeat(p, x):
        return jax.lax.scan(lambda h, _: (h + linear(p, h), None), x, None, length=3, unroll=True)[0]

    gradients_agree(make_loss(repeat))


def test_a_dict_is_one_argument():
    def loss(p, values):
        return make_loss(linear)(p, values["ids"], values["labels"])

    tokens, targets = example()
    model = fm.export_jax(loss, parameters(), {"ids": tokens, "labels": targets})
    assert [i.name for i in model.inputs] == ["ids", "labels"]


def test_bf16_parameters():
    p = jax.tree.map(lambda x: jnp.asarray(x, jnp.bfloat16), parameters())
    with pytest.raises(fm.ExportError, match="the loss is bfloat16; expected float32"):
        fm.export_jax(make_loss(linear), p, *example())
    model = fm.export_jax(make_loss(lambda p, x: linear(p, x).astype(jnp.float32)), p, *example())
    assert {q.dtype for q in model.parameters} == {"bf16"}
    with fm.compile(model, mesh="shard=2").train(weights="model",
                                                 check_against_unsharded=True) as run:
        run.step(batch())
        run.compare()


@jax.custom_vjp
def rounded(x):
    return jnp.round(x)


rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))


@pytest.mark.parametrize("middle, message", [
    (lambda p, x: rounded(x), "rule of differentiation of its own"),
    (lambda p, x: jax.lax.while_loop(lambda h: h.sum() > 0, lambda h: h - 1, x), "'while'.*fixed"),
    (lambda p, x: jax.lax.cond(x.sum() > 0, lambda h: h, lambda h: -h, x), "'cond'.*jnp.where"),
    (lambda p, x: jax.lax.scan(lambda h, _: (h, None), x, None, length=3)[0], "'scan'.*unroll"),
    (lambda p, x: x + jax.random.normal(jax.random.PRNGKey(0), x.shape), "draws random numbers")])
def test_what_has_no_equal_is_refused_with_its_line(middle, message):
    with pytest.raises(fm.ExportError, match=message) as caught:
        fm.export_jax(make_loss(middle), parameters(), *example())
    if "random" not in message:
        assert caught.value.file == __file__ and caught.value.line


@pytest.mark.parametrize("loss, message", [
    (lambda p, x, y: p["embed"][x], "expected one float scalar"),
    (lambda p, x, y: (p["head"].sum(), p["embed"].sum()), "expected one float scalar"),
    (lambda p, x, y: x.sum(), "expected one float scalar"),
    (lambda p, x, y: p["missing"].sum(), "tracing failed: KeyError")])
def test_losses_that_are_none_are_refused(loss, message):
    with pytest.raises(fm.ExportError, match=message):
        fm.export_jax(loss, parameters(), *example())


def test_an_input_with_the_name_of_a_parameter_is_refused():
    params = {"tokens": jnp.ones((LIMIT, WIDTH))}
    loss = lambda p, tokens, targets: cross_entropy(p["tokens"][tokens], targets % WIDTH)
    with pytest.raises(fm.ExportError, match="'tokens' is the name of a batch input and of another"):
        fm.export_jax(loss, params, *example())
    fm.export_jax(loss, params, *example(), batch_names=["ids", "targets"])


def test_bad_arguments():
    with pytest.raises(ValueError, match="custom_gradients"):
        fm.export_jax(make_loss(linear), parameters(), *example(), custom_gradients="maybe")
    with pytest.raises(ValueError, match="batch_names: expected 2, found 1"):
        fm.export_jax(make_loss(linear), parameters(), *example(), batch_names=["tokens"])


def test_batches_of_another_shape_are_refused():
    model = fm.export_jax(make_loss(linear), parameters(), *example())
    with fm.compile(model, mesh="shard=2").train(weights="model") as run:
        tokens, targets = batch()
        with pytest.raises(ValueError, match="tokens"):
            run.step((tokens[:, :-1], targets))
        # The message names the limit 16, because ids must be below 16.
        with pytest.raises(fm.BadInputError, match="16"):
            run.step((tokens + LIMIT, targets))
