# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models in JAX: each function returns (params, loss, example batch of one rank)."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

V, T, B, W, H, L = 256, 32, 2, 64, 4, 2


def example():
    tokens = np.zeros((B, T), np.int32)
    tokens[0, 0] = V - 1
    return tokens, tokens.copy()


def cross_entropy(logits, targets):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
    return -jnp.mean(chosen)


def one_hot_loss(logits, targets):
    return -jnp.mean(jnp.sum(jax.nn.one_hot(targets, V) * jax.nn.log_softmax(logits), -1))


def _plain_params():
    keys = iter(jax.random.split(jax.random.key(0), 32))
    normal = lambda *shape: 0.02 * jax.random.normal(next(keys), shape, jnp.float32)
    params = {"wte": normal(V, W), "wpe": normal(T, W), "norm": jnp.ones(W)}
    for i in range(L):
        params[f"h{i}"] = {"ln1": jnp.ones(W), "ln2": jnp.ones(W), "qkv": normal(W, 3 * W),
                           "proj": normal(W, W), "up": normal(W, 4 * W), "down": normal(4 * W, W)}
    return params


def _rms(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def _plain(p, tokens):
    x = p["wte"][tokens] + p["wpe"]
    for i in range(L):
        w = p[f"h{i}"]
        qkv = (_rms(x, w["ln1"]) @ w["qkv"]).reshape(B, T, 3, H, W // H)
        q, k, v = jnp.moveaxis(qkv, (2, 3), (0, 2))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(W // H)
        scores = jnp.where(jnp.tril(jnp.ones((T, T), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhqk,bhkd->bqhd", jax.nn.softmax(scores, -1), v)
        x = x + mixed.reshape(B, T, W) @ w["proj"]
        x = x + jax.nn.gelu(_rms(x, w["ln2"]) @ w["up"]) @ w["down"]
    return _rms(x, p["norm"]) @ p["wte"].T


def plain():
    return _plain_params(), lambda p, x, y: cross_entropy(_plain(p, x), y), example()


def one_hot():
    return _plain_params(), lambda p, x, y: one_hot_loss(_plain(p, x), y), example()


def _flax():
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            h = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=H, qkv_features=W)(h, h, mask=mask)
            return x + nn.Dense(W)(nn.swish(nn.Dense(4 * W)(nn.LayerNorm()(x))))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            embed = nn.Embed(V, W)
            x = embed(tokens) + nn.Embed(T, W)(jnp.arange(T))
            for i in range(L):
                x = Block(name=f"layers_{i}")(x, nn.make_causal_mask(tokens))
            return embed.attend(nn.LayerNorm()(x))

    model = Model()
    params = model.init(jax.random.key(0), jnp.zeros((B, T), jnp.int32))["params"]
    return model, params


def flax():
    model, params = _flax()
    return params, lambda p, x, y: cross_entropy(model.apply({"params": p}, x), y), example()


def flax_optax():
    import optax

    model, params = _flax()

    def loss(p, x, y):
        logits = model.apply({"params": p}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    return params, loss, example()


def rotary():
    """Returns a model with grouped queries, rotary positions, SwiGLU, and
    jax.nn.dot_product_attention."""
    keys = iter(jax.random.split(jax.random.key(0), 32))
    normal = lambda *shape: 0.02 * jax.random.normal(next(keys), shape, jnp.float32)
    d = W // H
    params = {"embed": normal(V, W), "head": normal(W, V), "norm": jnp.ones(W)}
    for i in range(L):
        params[f"h{i}"] = {"n1": jnp.ones(W), "n2": jnp.ones(W), "q": normal(W, W),
                           "k": normal(W, 2 * d), "v": normal(W, 2 * d), "o": normal(W, W),
                           "gate": normal(W, 2 * W), "up": normal(W, 2 * W),
                           "down": normal(2 * W, W)}
    angle = np.arange(T)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    angle = np.concatenate([angle, angle], -1)[:, None, :].astype(np.float32)
    cos, sin = np.cos(angle), np.sin(angle)

    def turn(y):
        first, second = jnp.split(y, 2, -1)
        return y * cos + jnp.concatenate([-second, first], -1) * sin

    def loss(p, tokens, targets):
        x = p["embed"][tokens]
        for i in range(L):
            w = p[f"h{i}"]
            h = _rms(x, w["n1"])
            q, k, v = ((h @ w[name]).reshape(B, T, -1, d) for name in "qkv")
            mixed = jax.nn.dot_product_attention(turn(q), turn(k), v, is_causal=True)
            x = x + mixed.reshape(B, T, W) @ w["o"]
            h = _rms(x, w["n2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        return cross_entropy(_rms(x, p["norm"]) @ p["head"], targets)

    return params, loss, example()


FAMILIES = {"plain": plain, "one-hot": one_hot, "flax": flax, "flax-optax": flax_optax,
            "rotary": rotary}


def _name(path) -> str:
    return ".".join(str(getattr(k, "key", k)) for k in path)


def set_weights(params):
    """Returns the tree of parameters. Each parameter has the values of initial.py."""
    from initial import value

    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jnp.asarray(value(_name(path), leaf.shape)), params)


def train(params, loss, batches, ranks, rate, decay):
    """Trains with optax. Returns the losses, the final weights {name: weight}, and the largest
    absolute gradient of each parameter {name: largest gradient}."""
    import optax

    optimizer = optax.adamw(rate, 0.9, 0.999, 1e-8, weight_decay=decay,
                            mask=jax.tree.map(lambda p: p.ndim > 1, params))

    def mean(p, batch):
        halves = [[a[r * B:(r + 1) * B] for a in batch] for r in range(ranks)]
        return sum(loss(p, *half) for half in halves) / ranks

    gradient = jax.jit(jax.value_and_grad(mean))
    by_name = lambda tree: {_name(path): np.asarray(leaf) for path, leaf in
                            jax.tree_util.tree_flatten_with_path(tree)[0]}
    state, losses, largest = optimizer.init(params), [], {}
    for batch in batches:
        value, grads = gradient(params, [jnp.asarray(a) for a in batch])
        for name, one in by_name(grads).items():
            largest[name] = max(largest.get(name, 0.0), float(np.abs(one).max()))
        updates, state = optimizer.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(value))
    return losses, by_name(params), largest
