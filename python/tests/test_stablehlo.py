# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles StableHLO text of jax.export. After one step of SGD, the change of the parameters must be equal to
the gradient that JAX computes.

Skipped if JAX is not installed. test/Import/stablehlo.test tests programs without JAX.
"""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.export  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import fsdp_mlir as fm  # noqa: E402
from test_jax_export import LENGTH, ROWS, WIDTH, batch, cross_entropy, parameters  # noqa: E402


def generic(text: str) -> str:
    """Returns a StableHLO module as text in MLIR's generic form."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        return ir.Module.parse(text).operation.get_asm(print_generic_op_form=True,
                                                       enable_debug_info=True)


pytestmark = pytest.mark.filterwarnings("ignore:.*does not record stop_gradient")


def agrees(tmp_path, middle, form, tolerance=2e-5):
    """Compares a step of SGD with the gradient that JAX computes. The learning rate is 1, and the loss calls
    ``middle``."""
    p = parameters()

    def loss(p, tokens, targets):
        x = middle(p, p["embed"][tokens], tokens) + p["layers"][0]["b"]
        return cross_entropy(x @ p["head"], targets)

    example = (np.zeros((ROWS, LENGTH), np.int32),) * 2
    text = jax.export.export(jax.jit(loss))(p, *example).mlir_module()
    path = tmp_path / "loss.mlir"
    path.write_text(generic(text) if form == "generic" else text)
    step = fm.compile(path, mesh="shard=2", params="auto", optimizer=fm.SGD(lr=1.0))
    flat = {".".join(str(getattr(k, "key", getattr(k, "idx", k))) for k in at): np.asarray(leaf)
            for at, leaf in jax.tree_util.tree_flatten_with_path(p)[0]}
    values = batch(ranks=2)
    with step.train(weights=flat) as run:
        found = run.step(values).loss
        after = dict(run.parameters())

    def mean(p):
        return sum(loss(p, *(v[r * ROWS:(r + 1) * ROWS] for v in values)) for r in range(2)) / 2

    expected, gradient = jax.value_and_grad(mean)(p)
    assert found == pytest.approx(float(expected), rel=1e-5)
    for at, leaf in jax.tree_util.tree_flatten_with_path(gradient)[0]:
        name = ".".join(str(getattr(k, "key", getattr(k, "idx", k))) for k in at)
        difference = np.abs(flat[name] - np.asarray(leaf) - after[name]).max()
        assert difference <= tolerance * max(1.0, float(np.abs(leaf).max())), name


def weight(p):
    return p["layers"][0]["w"]


def unary(p, x, tokens):
    y = x @ weight(p)
    z = jnp.exp(-y * y) + jnp.log1p(jnp.abs(y)) + jnp.expm1(0.1 * y) + jnp.tanh(y)
    z += jax.nn.sigmoid(y) + jax.lax.rsqrt(1 + y * y) + jnp.sin(y) * jnp.cos(y) + jax.lax.erf(y)
    return z + jnp.sqrt(2 + jnp.sin(y)) + jnp.cbrt(3 + jnp.cos(y)) + jnp.square(y) + y ** 3


def binary(p, x, tokens):
    y = x @ weight(p)
    z = jnp.maximum(y, 0.1) * jnp.minimum(y, 0.3) / (2 + y * y) - jnp.clip(y, -0.2, 0.2)
    return z + jnp.where(y > 0.05, y, 0.5 * y) + jnp.power(1.5 + jnp.tanh(y), 2.3) + jnp.sign(y) * y


def activations(p, x, tokens):
    y = x @ weight(p)
    return (jax.nn.gelu(y, approximate=False) + jax.nn.gelu(y) + jax.nn.silu(y)
            + jax.nn.softplus(y) + jax.nn.relu(y + 0.1) + jax.nn.leaky_relu(y) + jax.nn.elu(y))


def integers(p, x, tokens):
    place = (tokens * 3 + 1) % 7 // 2 - lax.rem(tokens, 3) + jnp.abs(tokens - 5)
    number = (place.astype(jnp.float32) + (tokens > 4) + jnp.sign(tokens - 3)) * 0.1
    return x @ weight(p) * (1 + number[..., None])


def slices(p, x, tokens):
    y = x @ weight(p)
    y = jnp.concatenate([-y[..., WIDTH // 2:], y[..., :WIDTH // 2]], -1)
    y = jnp.roll(y, 1, axis=1) + jnp.flip(y, 1)
    padded = lax.pad(y, 0.0, ((0, 0, 0), (1, 0, 0), (2, -2, 0)))
    return y[:, :, ::1] + padded[:, 1:] + lax.pad(y[:, ::2], 0.5, ((0, 0, 0), (0, 1, 1), (0, 0, 0)))


def updates(p, x, tokens):
    y = x @ weight(p)
    shifted = jnp.zeros_like(y).at[:, 1:].set(y[:, :-1])
    placed = lax.dynamic_update_slice(y, 2 * y[:, :2], (0, 1, 0))
    return shifted + placed + lax.dynamic_slice(y, (0, 0, 0), y.shape)


def lookups(p, x, tokens):
    y = jnp.take(p["embed"], tokens, axis=0, mode="clip") + x
    column = lax.dynamic_slice(p["embed"], (tokens[0, 0], 0), (2, WIDTH)).sum(0)
    return y @ weight(p) + jnp.take_along_axis(x, tokens[..., None] % WIDTH, -1) + column


def reductions(p, x, tokens):
    y = x @ weight(p)
    y = y - y.max(-1, keepdims=True) + y.min(1, keepdims=True) + jnp.var(y, -1, keepdims=True)
    y += jax.nn.logsumexp(y, -1, keepdims=True)
    kept = jnp.any(tokens > 3) & jnp.all(tokens >= 0)
    best = jnp.argmax(lax.stop_gradient(x), -1, keepdims=True)
    return y * jnp.where(kept, 1.0, 0.5) + 0.1 * best


def windows(p, x, tokens):
    y = x @ weight(p)
    most = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 1), (1, 1, 1), ((0, 0), (1, 0), (0, 0)))
    mean = lax.reduce_window(y, 0.0, lax.add, (1, 3, 1), (1, 1, 1), ((0, 0), (1, 1), (0, 0))) / 3
    return most + mean + jnp.cumsum(tokens > 3, 1)[..., None] * 0.1


def products(p, x, tokens):
    w = weight(p).reshape(WIDTH, 2, WIDTH // 2)
    heads = jnp.einsum("btw,whd->bhtd", x, w)
    mixed = jnp.einsum("bhqd,bhkd->bhqk", heads, heads)
    return jnp.einsum("bhqk,bhkd->bqhd", mixed, heads).reshape(x.shape)


def convolution(p, x, tokens):
    kernel = weight(p)[:3, :, None] * jnp.ones((1, 1, WIDTH))
    y = lax.conv_general_dilated(x, kernel, (1,), ((2, 0),), dimension_numbers=("NWC", "WIO", "NWC"))
    deep = weight(p)[:2, None, :]
    y += lax.conv_general_dilated(x, deep, (1,), ((0, 2),), rhs_dilation=(2,),
                                  dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=WIDTH)
    z = lax.conv_general_dilated(jnp.swapaxes(x, 1, 2), kernel.transpose(2, 1, 0), (2,), ((1, 1),))
    return y + z.sum((1, 2), keepdims=True) * 0.1


def narrow(p, x, tokens):
    y = (x.astype(jnp.bfloat16) @ weight(p).astype(jnp.bfloat16)).astype(jnp.float32)
    z = lax.dot_general(x.astype(jnp.bfloat16), weight(p).astype(jnp.bfloat16),
                        (((2,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    return y + z + lax.reduce_precision(x, 8, 7)


def checkpointed(p, x, tokens):
    return jax.checkpoint(lambda y: jnp.tanh(y @ weight(p)))(x)


EXACT = [unary, binary, activations, integers, slices, updates, lookups, windows, products,
         convolution, checkpointed]


@pytest.mark.parametrize("form", ["custom", "generic"])
@pytest.mark.parametrize("middle", EXACT, ids=lambda f: f.__name__)
def test_gradients(tmp_path, middle, form):
    agrees(tmp_path, middle, form)


def test_reductions_with_a_detached_index(tmp_path):
    agrees(tmp_path, reductions, "custom")


def test_bf16(tmp_path):
    agrees(tmp_path, narrow, "generic", tolerance=2e-2)
