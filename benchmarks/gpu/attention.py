"""Attention problems: inputs, and results in float64 and in plain low precision. Needs numpy.

A case is a dict: dtype, b, h, hkv, s (queries), keys, d, dv, score (none, softcap, alibi), mask (none, causal, documents).
Kernels have the operands and results of fsdp.attention. The forward computes O and LSE (natural logarithm, f32) from q, k, v and captured
values. The backward computes the gradients of q, k, v and captured values.
"""
import numpy as np

CAP = 50.0


def to_f32(bits, dtype):
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(np.float16).astype(np.float32) if dtype == "f16" else bits.view(np.float32)


def to_bits(values, dtype):
    """Returns the bits of values rounded to nearest, ties to even."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if dtype == "bf16":
        word = values.view(np.uint32)
        rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16
        return np.where(np.isnan(values), 0x7fc0, rounded).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16) if dtype == "f16" else values


def rounded(values, dtype):
    return to_f32(to_bits(values, dtype), dtype)


class Problem:
    """The inputs of a case, as float32 values that the dtype represents exactly."""

    def __init__(self, case, seed=1):
        self.case, c = case, case
        random = np.random.default_rng(seed)
        draw = lambda *shape: rounded(random.standard_normal(shape, dtype=np.float32), c["dtype"])
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
        """Returns the operands of the forward kernel in order, as bits."""
        dtype = self.case["dtype"]
        captured = {"alibi": [self.slope]}.get(self.case["score"], [])
        captured = captured + ([self.docq, self.dock] if self.case["mask"] == "documents" else [])
        return [to_bits(x, dtype) for x in (self.q, self.k, self.v)] + captured

    def gradient_inputs(self, o, lse):
        dtype = self.case["dtype"]
        return self.inputs() + [to_bits(o, dtype), lse.astype(np.float32), to_bits(self.do, dtype)]

    # Each function below computes one head of one batch in the type `kind`, and rounds results with the function `low`.

    def keep(self, b):
        c = self.case
        if c["mask"] == "none":
            return None
        i, j = np.arange(c["s"])[:, None] + c["keys"] - c["s"], np.arange(c["keys"])[None, :]
        keep = i >= j
        return keep & (self.docq[b][:, None] == self.dock[b][None, :]) if c["mask"] == "documents" else keep

    def distance(self, kind):
        return (np.arange(self.case["keys"])[None, :] - np.arange(self.case["s"])[:, None]).astype(kind)

    def scores(self, b, h, kind, low):
        """Returns the scores after the score function, and its derivative."""
        q, k = self.q[b, h].astype(kind), self.k[b, h * self.case["hkv"] // self.case["h"]].astype(kind)
        s, slope = low(low(q @ k.T) * self.scale), 1.0
        if self.case["score"] == "softcap":
            t = np.tanh(s / kind(CAP))
            s, slope = low(kind(CAP) * t), low(1 - t * t)
        if self.case["score"] == "alibi":
            s = low(s + self.slope[h].astype(kind) * self.distance(kind))
        keep = self.keep(b)
        return (s if keep is None else np.where(keep, s, -np.inf)), slope

    def forward(self, b, h, kind=np.float64, low=lambda x: x):
        """Returns O, LSE and the weights."""
        s, _ = self.scores(b, h, kind, low)
        top = s.max(1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        weights = np.exp(s - top)
        total = weights.sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[:, 0]
        weights = low(weights / np.where(total == 0, 1, total))
        return low(weights @ self.v[b, h * self.case["hkv"] // self.case["h"]].astype(kind)), lse, weights

    def backward(self, b, h, o, weights, kind=np.float64, low=lambda x: x):
        """Returns the contributions of head h to dq, dk, dv and dslope."""
        kv = h * self.case["hkv"] // self.case["h"]
        q, k, v, do = (x.astype(kind) for x in (self.q[b, h], self.k[b, kv], self.v[b, kv], self.do[b, h]))
        _, slope = self.scores(b, h, kind, low)
        dv = low(weights.T @ do)
        ds = low(weights * (low(do @ v.T) - (do * o.astype(kind)).sum(1, keepdims=True)))
        dslope = (ds * self.distance(kind)).sum() if self.case["score"] == "alibi" else 0.0
        ds = low(ds * slope)
        return low(ds @ k * self.scale), low(ds.T @ q * self.scale), dv, dslope

    def low(self):
        return lambda x: rounded(x, self.case["dtype"])

    def flops(self, backward):
        """Returns the FLOPs of the products, counted like flash-attention: half of all pairs for a causal mask, only kept pairs for
        documents."""
        c = self.case
        pairs = c["s"] * c["keys"] * c["b"]
        if c["mask"] == "causal":
            pairs /= 2
        if c["mask"] == "documents":
            pairs = sum(int(self.keep(b).sum()) for b in range(c["b"]))
        return 2.0 * (c["d"] + c["dv"]) * c["h"] * pairs * (2.5 if backward else 1)


def allowed(exact, low, dtype, factor):
    """Returns the allowed error by the rule of flash-attention's tests: `factor` times the error of plain low precision, plus twice
    the rounding error of adding and subtracting 0.3."""
    floor = 2 * np.abs(rounded(rounded(exact + 0.3, dtype) - np.float32(0.3), dtype) - exact).max()
    return factor * np.abs(low - exact).max() + floor
