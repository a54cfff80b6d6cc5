"""Compares results of kernels with results in float64.

Small kernels are compared as a whole. Of large kernels, some queries, keys, rows and columns are compared, so that the GPU does not wait for the host
(`spots`). O and LSE are operands of the backward kernel, which computes the same function of any O and LSE. For large kernels, where computing them for
all heads would take minutes, O is drawn, and LSE is the expected one of the drawn scores. With a softcap, whose scores differ more, LSE is computed for
the heads that are compared.
"""
import numpy as np

from attention import ALL, Problem, allowed, noise, to_bits, to_f32
from products import Product

SPOTS, COLUMNS = 16, 256  # numbers of queries, keys or rows that are compared, and of columns of a product
ROWS = 512                # queries whose scores are computed at once


def spread(count, most):
    """Returns the numbers below `count`, or `most` evenly spaced ones of them, with the first and the last."""
    return np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).astype(int))


class Comparison:
    """Collects verdicts on results of a case."""

    def __init__(self, case):
        self.case, self.verdicts = case, []

    def compare(self, name, found, exact, low):
        """Compares a result by the rule of flash-attention's tests: twice the error of plain low precision."""
        dtype = "f32" if name in ("lse", "dslope") else self.case["dtype"]
        finite = np.isfinite(exact)
        error, limit = 0.0, 0.0
        if finite.any():
            error, limit = np.abs(found[finite] - exact[finite]).max(), allowed(exact[finite], low[finite], dtype)
        same = np.array_equal(found[~finite], exact[~finite])
        self.verdicts.append({"result": name, "error": float(error), "allowed": float(limit), "ok": bool(error <= limit and same)})

    def worst(self):
        return max(self.verdicts, key=lambda v: v["error"] / v["allowed"] if v["ok"] and v["allowed"] else 0.0 if v["ok"] else np.inf)


class Subject:
    """A kernel that is checked. `kind` is the class of its problem, and `prefix` begins its name."""

    kind, prefix = Problem, ""

    def __init__(self, case, spots):
        self.case, self.problem, self.spots = case, self.kind(case), spots

    def inputs(self):
        return self.problem.inputs()


class Forward(Subject):
    """The check of a forward kernel."""

    prefix = "fwd_"

    def flops(self):
        return self.problem.flops(False)

    def compare(self, results, into):
        case, problem, (o, lse) = self.case, self.problem, results
        rows = spread(case["s"], SPOTS) if self.spots else ALL
        for b, h in ends(case) if self.spots else every(case):
            exact, low = problem.forward(b, h, i=rows), problem.forward(b, h, np.float32, problem.low(), rows)
            into.compare("o", o[b, h][rows], exact[0], low[0])
            into.compare("lse", lse[b, h][rows], exact[1], low[1])


def every(case):
    return [(b, h) for b in range(case["b"]) for h in range(case["h"])]


def ends(case):
    """Returns the first head of the first batch and the last head of the last batch."""
    return sorted({(0, 0), (case["b"] - 1, case["h"] - 1)})


class Backward(Subject):
    """The check of a backward kernel."""

    prefix = "bwd_"

    def __init__(self, case, spots):
        super().__init__(case, spots)
        shape = self.problem.do.shape
        if spots:
            self.o = noise(np.random.default_rng(2), shape, case["dtype"])
            self.lse = np.full(shape[:3], np.log(case["keys"]) + 0.5, np.float32)  # of exp(x), where x has the variance 1
            compared = {(b, self.problem.kv(h)) for b, h in ends(case)} if case["score"] == "softcap" else ()
            for b, h in (each for each in every(case) if (each[0], self.problem.kv(each[1])) in compared):
                self.lse[b, h] = np.concatenate([self.problem.forward(b, h, np.float32, i=slice(at, at + ROWS))[1] for at in range(0, case["s"], ROWS)])
            return
        self.o, self.lse = np.zeros(shape, np.float32), np.zeros(shape[:3], np.float32)
        for b, h in every(case):
            self.o[b, h], self.lse[b, h], _ = self.problem.forward(b, h)
        self.o = to_f32(to_bits(self.o, case["dtype"]), case["dtype"])

    def inputs(self):
        return self.problem.gradient_inputs(self.o, self.lse)

    def flops(self):
        return self.problem.flops(True)

    def weights(self, b, h, kind, low, i=ALL, j=ALL):
        if not self.spots:
            return self.problem.forward(b, h, kind, low)[2]
        return low(np.exp(self.problem.scores(b, h, kind, low, i, j)[0] - self.lse[b, h][i][:, None].astype(kind)))

    def both(self, b, h, i=ALL, j=ALL):
        """Returns the gradients that some queries and keys of a head contribute, in float64 and in the case's type."""
        exact, low = (np.float64, lambda x: x), (np.float32, self.problem.low())
        return [self.problem.backward(b, h, self.o[b, h][i], self.weights(b, h, *how, i, j), *how, i, j) for how in (exact, low)]

    def compare(self, results, into):
        case = self.case
        rows, keys = (spread(case["s"], SPOTS), spread(case["keys"], SPOTS)) if self.spots else (ALL, ALL)
        slopes = np.zeros((case["h"], 2))
        for b, kv in sorted({(b, self.problem.kv(h)) for b, h in (ends(case) if self.spots else every(case))}):
            heads = [h for h in range(case["h"]) if self.problem.kv(h) == kv]
            sums = [0.0, 0.0], [0.0, 0.0]
            for h in heads:
                of_keys = self.both(b, h, ALL, keys)
                if not self.spots or h in (heads[0], heads[-1]):
                    of_rows = self.both(b, h, rows, ALL) if self.spots else of_keys
                    into.compare("dq", results[0][b, h][rows], of_rows[0][0], of_rows[1][0])
                slopes[h] += (of_keys[0][3], of_keys[1][3])
                sums = [[total[n] + part[1 + n] for n in range(2)] for total, part in zip(sums, of_keys)]
            for n, name in enumerate(("dk", "dv")):
                into.compare(name, results[1 + n][b, kv][keys], sums[0][n], sums[1][n])
        if case["score"] == "alibi" and not self.spots:
            into.compare("dslope", results[3], slopes[:, 0], slopes[:, 1])


class Multiplication(Subject):
    """The check of a product."""

    kind = Product

    def flops(self):
        return self.problem.flops()

    def compare(self, results, into):
        places = (spread(self.case["m"], SPOTS), spread(self.case["n"], COLUMNS)) if self.spots else (ALL, ALL)
        found = results[0][places[0]][:, places[1]]
        into.compare("c", found, self.problem.result(np.float64, *places), self.problem.low(*places))


SUBJECTS = {"forward": Forward, "backward": Backward, "product": Multiplication}


def verdict(subject, results, problems):
    """Compares results and returns the members of a row: {"status", "worst", "text"}."""
    into = Comparison(subject.case)
    subject.compare(results, into)
    problems = set(problems) | ({"results that are not finite"} if isinstance(subject, Multiplication) and not np.isfinite(results[0]).all() else set())
    worst = into.worst()
    is_right = all(v["ok"] for v in into.verdicts) and not problems
    text = f"worst {worst['result']} {worst['error']:.3g} of {worst['allowed']:.3g}"
    return {"status": "ok" if is_right else "wrong", "worst": worst, "text": "; ".join([text, *sorted(problems)])}
