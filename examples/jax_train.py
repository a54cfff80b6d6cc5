"""Trains a small transformer, which is written in JAX, on two ranks. Then restores the model's tree
of parameters from the trained values.

    python examples/jax_train.py [--steps N] [--text FILE]

Needs fsdp-mlir[jax]. This program takes about half a minute on two cores.
"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import fsdp_mlir as fm

RANKS, BATCH, SEQUENCE, WIDTH, HEADS, LAYERS, VOCABULARY = 2, 4, 64, 64, 4, 2, 256


def initial_parameters(key):
    def normal(key, *shape):
        return 0.02 * jax.random.normal(key, shape, jnp.float32)

    keys = iter(jax.random.split(key, 2 + 4 * LAYERS))
    params = {"bytes": normal(next(keys), VOCABULARY, WIDTH),
              "positions": normal(next(keys), SEQUENCE, WIDTH), "norm": jnp.ones(WIDTH)}
    for layer in range(LAYERS):
        params[f"layer{layer}"] = {
            "norm1": jnp.ones(WIDTH), "norm2": jnp.ones(WIDTH),
            "qkv": normal(next(keys), WIDTH, 3 * WIDTH), "out": normal(next(keys), WIDTH, WIDTH),
            "up": normal(next(keys), WIDTH, 4 * WIDTH), "down": normal(next(keys), 4 * WIDTH, WIDTH)}
    return params


def normalise(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def loss_fn(params, tokens, targets):
    batch, sequence = tokens.shape
    x = params["bytes"][tokens] + params["positions"]
    for layer in range(LAYERS):
        w = params[f"layer{layer}"]
        qkv = normalise(x, w["norm1"]) @ w["qkv"]
        q, k, v = jnp.moveaxis(qkv.reshape(batch, sequence, 3, HEADS, WIDTH // HEADS), 2, 0)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.reshape(batch, sequence, WIDTH) @ w["out"]
        x = x + jax.nn.gelu(normalise(x, w["norm2"]) @ w["up"]) @ w["down"]
    logits = normalise(x, params["norm"]) @ params["bytes"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
    return -jnp.mean(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--text", default=pathlib.Path(__file__).parents[1] / "README.md")
    options = parser.parse_args()
    text = np.frombuffer(pathlib.Path(options.text).read_bytes(), np.uint8).astype(np.int32)
    params = initial_parameters(jax.random.key(0))

    example = np.zeros((BATCH, SEQUENCE), np.int32)
    model = fm.export_jax(loss_fn, params, example, example)
    step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=fm.AdamW(lr=3e-3))
    print(model)

    random = np.random.default_rng(0)
    with step.train(ranks=RANKS) as run:
        for number in range(1, options.steps + 1):
            begin = random.integers(0, len(text) - SEQUENCE, RANKS * BATCH)
            windows = text[begin[:, None] + np.arange(SEQUENCE + 1)]
            metrics = run.step((windows[:, :-1], windows[:, 1:]))
            if number % 25 == 0 or number == 1:
                print(f"step {number:4}  loss {metrics.loss:.3f}")
        trained = run.state_dict()

    # Restores the tree of parameters. The name of a trained value is the path of its leaf.
    paths, tree = jax.tree_util.tree_flatten_with_path(params)
    names = [".".join(key.key for key in path) for path, _ in paths]
    params = jax.tree_util.tree_unflatten(tree, [jnp.asarray(trained[name]) for name in names])
    windows = text[:SEQUENCE + 1][None]
    print(f"loss of the tree in JAX: {loss_fn(params, windows[:, :-1], windows[:, 1:]):.3f}")


if __name__ == "__main__":
    main()
