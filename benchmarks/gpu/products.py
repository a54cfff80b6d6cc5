"""Matrix products: their inputs, and their results in float64. Needs numpy.

A case is a dict: dtype, transposes (nn, nt, tn or tt: one letter each for A and B, where t means that A is stored as k x m or B as n x k), m, n, k,
epilogue (none, bias). The result has the element type `dtype`.
"""
import numpy as np

from attention import rounded, to_bits

SOME_ROWS = 48


class Product:
    """The inputs of a case, as float32 values that the case's dtype represents exactly."""

    def __init__(self, case, seed=1):
        self.case, c = case, case
        random = np.random.default_rng(seed)
        draw = lambda *shape: rounded(random.standard_normal(shape, dtype=np.float32), c["dtype"])
        self.a = draw(*((c["k"], c["m"]) if c["transposes"][0] == "t" else (c["m"], c["k"])))
        self.b = draw(*((c["n"], c["k"]) if c["transposes"][1] == "t" else (c["k"], c["n"])))
        self.bias = random.standard_normal(c["n"], dtype=np.float32)

    def inputs(self):
        """Returns the operands of the kernel in order. Each operand is an array of the bits of its elements."""
        return [to_bits(self.a, self.case["dtype"]), to_bits(self.b, self.case["dtype"])] + ([self.bias] if self.case["epilogue"] == "bias" else [])

    def rows(self, every):
        """Returns the indices of the rows to compare: all rows, or SOME_ROWS evenly spaced rows."""
        m = self.case["m"]
        return np.arange(m) if every or m <= SOME_ROWS else np.unique(np.linspace(0, m - 1, SOME_ROWS).astype(int))

    def result(self, rows, kind=np.float64):
        a = self.a[:, rows].T if self.case["transposes"][0] == "t" else self.a[rows]
        b = self.b.T if self.case["transposes"][1] == "t" else self.b
        found = a.astype(kind) @ b.astype(kind)
        return found + self.bias.astype(kind) if self.case["epilogue"] == "bias" else found

    def low(self, rows):
        """Returns the result computed in float32 and rounded to the case's dtype."""
        return rounded(self.result(rows, np.float32), self.case["dtype"])

    def flops(self):
        return 2.0 * self.case["m"] * self.case["n"] * self.case["k"]
