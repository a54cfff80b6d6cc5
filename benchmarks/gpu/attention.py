"""Computes the inputs of attention problems, and their results in float64 and in the case's own type. Needs numpy.

A case is a dict: dtype, b (batches), h (query heads), hkv (key/value heads), s (queries), keys, d and dv (columns of a head of q and k, and of v), score
(none, softcap, alibi), mask (none, causal, documents). The kernels have the operands and results of the ops fsdp.attention and fsdp.attention_grad.
The forward kernel computes the output O and LSE from q, k, v, and the slopes or document numbers. LSE has the type f32 and contains, for each query,
the natural logarithm of the sum of the exponentials of its scores. The backward kernel computes the gradients of q, k, v and, for alibi, of the
slopes.
"""
import numpy as np

CAP = 50.0
ALL = slice(None)
BLOCK = 1_000_003  # a prime number


def to_f32(bits, dtype):
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(np.float16).astype(np.float32) if dtype == "f16" else bits.view(np.float32)


def to_bits(values, dtype):
    """Rounds the values to the dtype (to nearest, ties to even), and returns the bits of the rounded values."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if dtype == "bf16":
        word = values.view(np.uint32)
        rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16
        return np.where(np.isnan(values), 0x7fc0, rounded).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16) if dtype == "f16" else values


def exact_bits(values, dtype):
    """Returns the bits of values that the dtype represents exactly."""
    return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16) if dtype == "bf16" else to_bits(values, dtype)


def rounded(values, dtype):
    return to_f32(to_bits(values, dtype), dtype)


def noise(random, shape, dtype):
    """Returns normally distributed values that the dtype represents exactly. Large tensors repeat a block of values whose length is a prime number."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.resize(rounded(random.standard_normal(min(size, BLOCK), dtype=np.float32), dtype), shape)


class Problem:
    """The inputs of a case, as float32 values that the case's dtype represents exactly."""

    def __init__(self, case, seed=1):
        self.case, c = case, case
        random = np.random.default_rng(seed)
        draw = lambda *shape: noise(random, shape, c["dtype"])
        self.q, self.k = draw(c["b"], c["h"], c["s"], c["d"]), draw(c["b"], c["hkv"], c["keys"], c["d"])
        self.v, self.do = draw(c["b"], c["hkv"], c["keys"], c["dv"]), draw(c["b"], c["h"], c["s"], c["dv"])
        if c["score"] == "softcap":  # larger values, so that scores reach the cap
            self.q = rounded(self.q * (CAP / 4), c["dtype"])
        self.slope = np.array([2.0 ** (-8 * (h + 1) / c["h"]) for h in range(c["h"])], dtype=np.float32)
        cuts = np.sort(random.integers(0, max(c["s"], c["keys"]), (c["b"], 3)), axis=1)
        number = lambda n: (np.arange(n)[None, :, None] >= cuts[:, None, :]).sum(-1).astype(np.int32)
        self.docq, self.dock = number(c["s"]), number(c["keys"])
        self.scale = np.float32(round(c["d"] ** -0.5, 6))

    def inputs(self):
        """Returns the operands of the forward kernel in order. Each operand is an array of the bits of its elements."""
        dtype = self.case["dtype"]
        captured = {"alibi": [self.slope]}.get(self.case["score"], [])
        captured = captured + ([self.docq, self.dock] if self.case["mask"] == "documents" else [])
        return [exact_bits(x, dtype) for x in (self.q, self.k, self.v)] + captured

    def gradient_inputs(self, o, lse):
        """Returns the operands of the backward kernel. The case's dtype represents all of `o` exactly."""
        dtype = self.case["dtype"]
        return self.inputs() + [exact_bits(o, dtype), lse.astype(np.float32), exact_bits(self.do, dtype)]

    # Each function below with parameters `kind` and `low` computes one head of one batch in the NumPy type `kind`, and rounds each intermediate result
    # with the function `low`. `i` and `j` select the queries and the keys.

    def kv(self, h):
        return h * self.case["hkv"] // self.case["h"]

    def keep(self, b, i=ALL, j=ALL):
        c = self.case
        if c["mask"] == "none":
            return None
        rows, columns = np.arange(c["s"])[i][:, None] + c["keys"] - c["s"], np.arange(c["keys"])[j][None, :]
        keep = rows >= columns
        return keep & (self.docq[b][i][:, None] == self.dock[b][j][None, :]) if c["mask"] == "documents" else keep

    def distance(self, kind, i=ALL, j=ALL):
        return (np.arange(self.case["keys"])[j][None, :] - np.arange(self.case["s"])[i][:, None]).astype(kind)

    def scores(self, b, h, kind, low, i=ALL, j=ALL):
        """Returns the scores, to which the score function and the mask have been applied, and the derivative of the score function."""
        q, k = self.q[b, h][i].astype(kind), self.k[b, self.kv(h)][j].astype(kind)
        s, slope = low(low(q @ k.T) * self.scale), 1.0
        if self.case["score"] == "softcap":
            t = np.tanh(s / kind(CAP))
            s, slope = low(kind(CAP) * t), low(1 - t * t)
        if self.case["score"] == "alibi":
            s = low(s + self.slope[h].astype(kind) * self.distance(kind, i, j))
        keep = self.keep(b, i, j)
        return (s if keep is None else np.where(keep, s, -np.inf)), slope

    def forward(self, b, h, kind=np.float64, low=lambda x: x, i=ALL):
        """Returns O, LSE and the softmax weights."""
        s, _ = self.scores(b, h, kind, low, i)
        top = s.max(1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        weights = np.exp(s - top)
        total = weights.sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[:, 0]
        weights = low(weights / np.where(total == 0, 1, total))
        return low(weights @ self.v[b, self.kv(h)].astype(kind)), lse, weights

    def backward(self, b, h, o, weights, kind=np.float64, low=lambda x: x, i=ALL, j=ALL):
        """Returns (dq, dk, dv, dslope): what the queries i of head h contribute to the gradients of the keys j and of the slope, and these keys to dq of
        these queries. `o` and `weights` are those of these queries and keys."""
        q, k, v, do = (x.astype(kind) for x in (self.q[b, h][i], self.k[b, self.kv(h)][j], self.v[b, self.kv(h)][j], self.do[b, h][i]))
        _, slope = self.scores(b, h, kind, low, i, j)
        dv = low(weights.T @ do)
        ds = low(weights * (low(do @ v.T) - (do * o.astype(kind)).sum(1, keepdims=True)))
        dslope = (ds * self.distance(kind, i, j)).sum() if self.case["score"] == "alibi" else 0.0
        ds = low(ds * slope)
        return low(ds @ k * self.scale), low(ds.T @ q * self.scale), dv, dslope

    def low(self):
        return lambda x: rounded(x, self.case["dtype"])

    def flops(self, backward):
        """Returns the FLOPs of the matrix products. As in flash-attention, half of all pairs of query and key are counted for a causal mask. For the
        mask `documents`, only unmasked pairs are counted."""
        c = self.case
        pairs = c["s"] * c["keys"] * c["b"]
        if c["mask"] == "causal":
            pairs /= 2
        if c["mask"] == "documents":
            pairs = sum(int(self.keep(b).sum()) for b in range(c["b"]))
        return 2.0 * (c["d"] + c["dv"]) * c["h"] * pairs * (2.5 if backward else 1)


def allowed(exact, low, dtype):
    """Returns the allowed error according to the rule of flash-attention's tests. It is the sum of two terms. The first term is twice the error of
    `low`, the result in the case's type. The second term is twice the rounding error of `exact` + 0.3 - 0.3 in this type."""
    floor = 2 * np.abs(rounded(rounded(exact + 0.3, dtype) - np.float32(0.3), dtype) - exact).max()
    return 2 * np.abs(low - exact).max() + floor
