"""Computes the inputs of matrix products, and their results in float64. Needs numpy.

A case is a dict: dtype, transposes (nn, nt, tn or tt: one letter each for A and B, where t means that A is stored as k x m or B as n x k), m, n, k,
epilogue (none, bias, residual: a bias and another matrix of the result's shape). The result has the element type `dtype`.
"""
import numpy as np

from attention import ALL, exact_bits, noise, rounded


class Product:
    """The inputs of a case, as float32 values that the case's dtype represents exactly."""

    def __init__(self, case, seed=1):
        self.case, c = case, case
        random = np.random.default_rng(seed)
        draw = lambda *shape: noise(random, shape, c["dtype"])
        self.a = draw(*((c["k"], c["m"]) if c["transposes"][0] == "t" else (c["m"], c["k"])))
        self.b = draw(*((c["n"], c["k"]) if c["transposes"][1] == "t" else (c["k"], c["n"])))
        self.bias = random.standard_normal(c["n"], dtype=np.float32)
        self.other = draw(c["m"], c["n"]) if c["epilogue"] == "residual" else None

    def inputs(self):
        """Returns the operands of the kernel in order. Each operand is an array of the bits of its elements."""
        more = {"none": [], "bias": [self.bias], "residual": [self.bias, self.other]}[self.case["epilogue"]]
        return [exact_bits(x, self.case["dtype"]) if x.ndim == 2 else x for x in (self.a, self.b, *more)]

    def result(self, kind=np.float64, rows=ALL, columns=ALL):
        a = self.a[:, rows].T if self.case["transposes"][0] == "t" else self.a[rows]
        b = self.b[columns].T if self.case["transposes"][1] == "t" else self.b[:, columns]
        found = a.astype(kind) @ b.astype(kind)
        if self.case["epilogue"] != "none":
            found = found + self.bias[columns].astype(kind)
        return found if self.other is None else found + self.other[rows][:, columns].astype(kind)

    def low(self, rows=ALL, columns=ALL):
        """Returns the result computed in float32 and rounded to the case's dtype."""
        return rounded(self.result(np.float32, rows, columns), self.case["dtype"])

    def flops(self):
        return 2.0 * self.case["m"] * self.case["n"] * self.case["k"]
