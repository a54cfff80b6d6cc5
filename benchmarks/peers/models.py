"""GPT-2 in PyTorch and in JAX. The shapes are those of `fsdp-modelgen gpt2`. The output head shares the weights of the embedding, GELU is computed by
tanh, and there is no dropout."""
import math

VOCABULARY, LAYERS, HEADS, WIDTH = 50257, 12, 12, 768
RATE, DECAY, CLIP = 3e-4, 0.1, 1.0


def make_torch(length):
    """Returns a module whose forward computes the mean loss from tokens and targets, each [batch, length]."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.attention(self.norm1(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(y.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(length, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens, targets):
            x = self.tokens(tokens) + self.positions.weight
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    torch.manual_seed(0)
    model = Model()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, 0.0, 0.02)
    return model


def make_jax(length):
    """Returns the parameters, and the function loss(parameters, tokens, targets, dtype). Matrix products convert operands to `dtype` and sum in f32."""
    import jax
    import jax.numpy as jnp

    keys = iter(jax.random.split(jax.random.PRNGKey(0), 8 * LAYERS + 8))
    normal = lambda *shape: 0.02 * jax.random.normal(next(keys), shape, jnp.float32)
    norm = lambda: {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    linear = lambda i, o: {"kernel": normal(i, o), "bias": jnp.zeros(o)}
    block = lambda: {"norm1": norm(), "norm2": norm(), "attention": linear(WIDTH, 3 * WIDTH),
                     "projection": linear(WIDTH, WIDTH), "up": linear(WIDTH, 4 * WIDTH), "down": linear(4 * WIDTH, WIDTH)}
    parameters = {"tokens": normal(VOCABULARY, WIDTH), "positions": normal(length, WIDTH), "norm": norm(),
                  "blocks": [block() for _ in range(LAYERS)]}

    def normalise(p, x):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * p["scale"] + p["bias"]).astype(x.dtype)

    def apply(p, x):
        return x @ p["kernel"].astype(x.dtype) + p["bias"].astype(x.dtype)

    def attend(p, x):
        b, t, _ = x.shape
        q, k, v = (y.reshape(b, t, HEADS, -1) for y in jnp.split(apply(p, x), 3, -1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v).reshape(b, t, WIDTH)

    def loss(parameters, tokens, targets, dtype):
        x = (parameters["tokens"][tokens] + parameters["positions"]).astype(dtype)
        for p in parameters["blocks"]:
            x = x + apply(p["projection"], attend(p["attention"], normalise(p["norm1"], x)))
            x = x + apply(p["down"], jax.nn.gelu(apply(p["up"], normalise(p["norm2"], x)), approximate=True))
        logits = (normalise(parameters["norm"], x) @ parameters["tokens"].T.astype(dtype)).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()

    return parameters, loss
