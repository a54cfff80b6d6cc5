#!/usr/bin/env python3
# Writes attention kernels, forward and backward, for fsdp-kernel-test:
#   attention-grid.py small|tiles|parts|shifted|faulty|rounds|apart|together|sums|narrow|wide|captured|alone|spilled|crowded|slices|large|few|blocks|orders|turns|balance|uneven|table|sizes|shared|full|softcap|long|owned|entries|dropout|huge|brief both|forward|backward DTYPE... [--emulated]
# --emulated: full, softcap and long at sizes that an emulator runs in seconds.
# With both directions, gradients are computed at O and LSE of the forward kernel's oracle.
import functools
import itertools
import random
import sys

WIDE = {"f32": "f32", "bf16": "f32", "f16": "f32", "f64": "f64"}
MINUS_INFINITY = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}
CAP = 50.0
# With a drawn LSE, larger scores would give a few P of up to e^40. They exceed f16, and the rounding of one of them decides the error.
CAP_OF_DRAWN = 5.0


class Case:
    """One problem: sizes, a score function and a mask function by name."""

    def __init__(self, dtype, b, h, hkv, sq, sk, d, dv, mod="none", mask="none", scale=None, weight="none", entries=0, part=None):
        self.dtype, self.wide = dtype, WIDE[dtype]
        self.b, self.h, self.hkv, self.sq, self.sk, self.d, self.dv = b, h, hkv, sq, sk, d, dv
        self.mod, self.mask, self.weight, self.entries = mod, mask, weight, entries
        # The coordinate of a rank and the number of ranks of the axis context. The queries are the rank's part of all rows.
        # These are neighbours, or every row whose number modulo the ranks is the coordinate.
        self.part, self.ranks, self.striped = part or (0, 1, False)
        self.rows = sq * self.ranks
        self.cap = CAP
        self.scale = scale if scale is not None else d**-0.5
        self.name = f"{dtype}_{b}x{h}x{hkv}_{sq}x{sk}_{d}x{dv}_{mod}_{mask}" + ("" if weight == "none" else "_" + weight)
        self.name += f"_{'stripes' if self.striped else 'part'}{self.part}of{self.ranks}" if part else ""

    # Captured tensors: (name, type, kernel attribute).
    def captures(self):
        w = self.wide
        slow = " {fsdp.range = [0.001, 0.01]}"
        table = {
            "alibi": [("slope", f"tensor<{self.h}x{w}>", slow)],
            "cap": [("cap", f"tensor<{w}>", " {fsdp.range = [1.0, 2.0]}")],
            "rows": [("rowbias", f"tensor<{self.h}x{self.rows}x{w}>", "")],
            "columns": [("colbias", f"tensor<{self.b}x{self.sk}x{w}>", "")],
            "bias": [("bias", f"tensor<{self.h}x{self.rows}x{self.sk}x{w}>", "")],
            "batchbias": [("bias", f"tensor<{self.b}x1x{self.rows}x{self.sk}x{self.dtype}>", "")],
            "relative": [("relative", f"tensor<{self.rows + self.sk}x{w}>", "")],
            "gathered": [("table", f"tensor<{self.entries}x{w}>", ""),
                         ("entry", f"tensor<{self.rows}x{self.sk}xi32>", f" {{fsdp.limit = {self.entries} : i64}}")],
            "swapped": [("table", f"tensor<{self.rows}x{self.rows}x{self.sk}x{w}>", "")],
            "transposed": [("bias", f"tensor<{self.sk}x{self.rows}x{w}>", "")],
            "all": [("slope", f"tensor<{self.h}x{w}>", slow), ("rowbias", f"tensor<{self.h}x{self.rows}x{w}>", ""),
                    ("relative", f"tensor<{self.rows + self.sk}x{self.dtype}>", ""),
                    ("gain", f"tensor<2x{w}>", " {fsdp.range = [0.5, 1.5]}")],
        }.get(self.mod, [])
        masks = {
            "documents": [("docq", f"tensor<{self.b}x{self.rows}xi32>", " {fsdp.limit = 3 : i64}"),
                          ("dock", f"tensor<{self.b}x{self.sk}xi32>", " {fsdp.limit = 3 : i64}")],
            "table": [("keep", f"tensor<{self.rows}x{self.sk}xi1>", " {fsdp.limit = 2 : i64}")],
            "lengths": [("length", f"tensor<{self.b}xi64>", f" {{fsdp.limit = {self.sk} : i64}}")],
        }.get(self.mask, [])
        key = [(n, "tensor<i64>", " {fsdp.limit = 1000 : i64}") for n in ("seed", "step", "first")]
        part = [("part", "tensor<i64>", f" {{fsdp.values = dense<{self.part}> : tensor<i64>}}")] if self.ranks > 1 else []
        return table + masks + part + (key if self.weight in ("dropout", "uniform", "batches") else [])

    def arguments(self, leading):
        types = ["index"] * 4 + [t for _, t, _ in self.captures()]
        names = ["b", "h", "i" if self.ranks == 1 else "own", "j"] + [n for n, _, _ in self.captures()]
        every = leading + [f"%{n}: {t}" for n, t in zip(names, types)]
        return ", ".join(every)

    def type(self, name):
        return next(t for n, t, _ in self.captures() if n == name)

    def load(self, out, name, indices):
        """Reads a captured tensor as a score."""
        t = self.type(name)
        element = t[t.rindex("x") + 1:-1] if "x" in t else t[7:-1]
        lines = [f"    {out}{'' if element == self.wide else '.n'} = tensor.extract %{name}[{indices}] : {t}"]
        if element != self.wide:
            lines.append(f"    {out} = arith.extf {out}.n : {element} to {self.wide}")
        return lines, element

    def contribute(self, value, name, indices):
        t = self.type(name)
        element = t[t.rindex("x") + 1:-1] if "x" in t else t[7:-1]
        lines = []
        if element != self.wide:
            lines.append(f"    {value}.n = arith.truncf {value} : {self.wide} to {element}")
            value += ".n"
        return lines + [f"    fsdp.contribute {value} to %{name}[{indices}] : {element}, {t}"]

    def distance(self):
        return ["    %d = arith.subi %j, %i : index", "    %d64 = arith.index_cast %d : index to i64",
                f"    %dist = arith.sitofp %d64 : i64 to {self.wide}"]

    def relative(self):
        return [f"    %off = arith.constant {self.rows} : index", "    %d = arith.subi %j, %i : index",
                "    %at = arith.addi %d, %off : index"]

    # Bodies of (score_mod, score_grad).
    def mods(self):
        w = self.wide
        add = {"rows": ("rowbias", "%h, %i"), "columns": ("colbias", "%b, %j"), "bias": ("bias", "%h, %i, %j"),
               "batchbias": ("bias", "%b, %z, %i, %j"), "relative": ("relative", "%at"), "transposed": ("bias", "%j, %i")}
        if self.mod == "none":
            return None
        if self.mod in add:
            name, indices = add[self.mod]
            before = self.relative() if self.mod == "relative" else []
            if self.mod == "batchbias":
                before = ["    %z = arith.constant 0 : index"]
            load, _ = self.load("%x", name, indices)
            return (before + load + [f"    %r = arith.addf %s, %x : {w}", f"    fsdp.yield %r : {w}"],
                    before + self.contribute("%g", name, indices) + [f"    fsdp.yield %g : {w}"])
        if self.mod == "gathered":
            index = [f"    %e = tensor.extract %entry[%i, %j] : {self.type('entry')}", "    %at = arith.index_cast %e : i32 to index"]
            load, _ = self.load("%x", "table", "%at")
            return (index + load + [f"    %r = arith.addf %s, %x : {w}", f"    fsdp.yield %r : {w}"],
                    index + self.contribute("%g", "table", "%at") + [f"    fsdp.yield %g : {w}"])
        if self.mod == "swapped":  # the head is once the first index and once the second
            load = self.load("%x", "table", "%h, %i, %j")[0] + self.load("%y", "table", "%i, %h, %j")[0]
            return (load + [f"    %a = arith.addf %s, %x : {w}", f"    %r = arith.addf %a, %y : {w}", f"    fsdp.yield %r : {w}"],
                    self.contribute("%g", "table", "%h, %i, %j") + self.contribute("%g", "table", "%i, %h, %j")
                    + [f"    fsdp.yield %g : {w}"])
        if self.mod == "alibi":
            load, _ = self.load("%m", "slope", "%h")
            before = self.distance()
            return (before + load + [f"    %x = arith.mulf %m, %dist : {w}", f"    %r = arith.addf %s, %x : {w}", f"    fsdp.yield %r : {w}"],
                    before + [f"    %c = arith.mulf %g, %dist : {w}"] + self.contribute("%c", "slope", "%h") + [f"    fsdp.yield %g : {w}"])
        if self.mod in ("softcap", "cap"):
            load, contribute = [f"    %c = arith.constant {self.cap} : {w}"], []
            if self.mod == "cap":
                load, contribute = self.load("%c", "cap", "")[0], self.contribute("%gc", "cap", "")
            body = load + [f"    %q = arith.divf %s, %c : {w}", f"    %t = math.tanh %q : {w}"]
            return (body + [f"    %r = arith.mulf %c, %t : {w}", f"    fsdp.yield %r : {w}"],
                    body + [f"    %one = arith.constant 1.0 : {w}", f"    %tt = arith.mulf %t, %t : {w}",
                            f"    %k = arith.subf %one, %tt : {w}", f"    %gs = arith.mulf %g, %k : {w}",
                            f"    %qk = arith.mulf %q, %k : {w}", f"    %e = arith.subf %t, %qk : {w}",
                            f"    %gc = arith.mulf %g, %e : {w}"] + contribute + [f"    fsdp.yield %gs : {w}"])
        assert self.mod == "all"
        # gain[h mod 2] · s + slope[h] · (k - q) + rowbias[h, q] + relative[k - q]
        before = self.distance() + ["    %two = arith.constant 2 : index", "    %parity = arith.remui %h, %two : index",
                                    f"    %off = arith.constant {self.rows} : index", "    %at = arith.addi %d, %off : index"]
        before += self.load("%m", "slope", "%h")[0] + self.load("%rb", "rowbias", "%h, %i")[0]
        before += self.load("%rel", "relative", "%at")[0] + self.load("%gn", "gain", "%parity")[0]
        body = [f"    %a0 = arith.mulf %gn, %s : {w}", f"    %a1 = arith.mulf %m, %dist : {w}", f"    %a2 = arith.addf %a0, %a1 : {w}",
                f"    %a3 = arith.addf %a2, %rb : {w}", f"    %r = arith.addf %a3, %rel : {w}", f"    fsdp.yield %r : {w}"]
        back = [f"    %gm = arith.mulf %g, %dist : {w}", f"    %gg = arith.mulf %g, %s : {w}", f"    %gs = arith.mulf %g, %gn : {w}"]
        back += self.contribute("%gm", "slope", "%h") + self.contribute("%g", "rowbias", "%h, %i")
        back += self.contribute("%g", "relative", "%at") + self.contribute("%gg", "gain", "%parity")
        return before + body, before + back + [f"    fsdp.yield %gs : {w}"]

    def masks(self):
        offset = self.sk - self.rows
        aligned = [f"    %o = arith.constant {offset} : index", "    %q = arith.addi %i, %o : index"]
        end = ["    fsdp.yield %keep : i1"]
        compare = lambda out, p, a, b: [f"    {out} = arith.cmpi {p}, {a}, {b} : index"]
        both = lambda out, a, b: [f"    {out} = arith.andi {a}, {b} : i1"]
        causal = aligned + compare("%causal", "sge", "%q", "%j")
        return {
            "none": None,
            "causal": causal + ["    fsdp.yield %causal : i1"],
            "window": causal + ["    %w = arith.constant 40 : index", "    %far = arith.subi %q, %j : index"]
            + compare("%near", "slt", "%far", "%w") + both("%keep", "%causal", "%near") + end,
            "sink": causal + ["    %w = arith.constant 40 : index", "    %four = arith.constant 4 : index", "    %far = arith.subi %q, %j : index"]
            + compare("%near", "slt", "%far", "%w") + compare("%first", "slt", "%j", "%four")
            + ["    %some = arith.ori %near, %first : i1"] + both("%keep", "%causal", "%some") + end,
            "prefix": aligned + ["    %p = arith.constant 17 : index"] + compare("%causal", "sge", "%q", "%j") + compare("%in", "slt", "%j", "%p")
            + ["    %keep = arith.ori %causal, %in : i1"] + end,
            "documents": causal + [f"    %x = tensor.extract %docq[%b, %i] : tensor<{self.b}x{self.rows}xi32>",
                                   f"    %y = tensor.extract %dock[%b, %j] : tensor<{self.b}x{self.sk}xi32>",
                                   "    %same = arith.cmpi eq, %x, %y : i32"] + both("%keep", "%causal", "%same") + end,
            "table": [f"    %kept = tensor.extract %keep[%i, %j] : tensor<{self.rows}x{self.sk}xi1>", "    fsdp.yield %kept : i1"],
            "lengths": [f"    %n = tensor.extract %length[%b] : tensor<{self.b}xi64>", "    %ni = arith.index_cast %n : i64 to index"]
            + compare("%keep", "slt", "%j", "%ni") + end,
            # Rows below the diagonal lose all their keys if there are more rows than keys.
            "strict": compare("%keep", "sgt", "%i", "%j") + end,
            "nothing": ["    %keep = arith.constant false"] + end,
        }[self.mask]

    def weights(self):
        """Bodies of weight_mod: dropout row by row, numbers for other positions, a function of the position."""
        w = self.wide
        key = [f"    %{n}0 = tensor.extract %{n}[] : tensor<i64>" for n in ("seed", "step", "first")] if self.captures() else []
        sample = ["    %b64 = arith.index_cast %b : index to i64", "    %n = arith.addi %first0, %b64 : i64"]
        place = [f"    %sq = arith.constant {self.rows} : index", f"    %sk = arith.constant {self.sk} : index",
                 "    %e0 = arith.muli %h, %sq : index", "    %e1 = arith.addi %e0, %i : index",
                 "    %e2 = arith.muli %e1, %sk : index", "    %e = arith.addi %e2, %j : index"]
        draw = lambda kind, element: [f"    %f = fsdp.random_element {kind} seed %seed0 step %step0 sample %n element {element} site 7 : {w}"]
        end = [f"    fsdp.yield %f : {w}"]
        return {
            "none": None,
            "dropout": key + sample + place + draw("bernoulli keep 0.75", "%e") + end,
            "uniform": key + sample + place + draw("uniform", "%e") + end,
            # One sample per key, elements along rows.
            "batches": key + ["    %j64 = arith.index_cast %j : index to i64", "    %n = arith.addi %first0, %j64 : i64"]
            + draw("bernoulli keep 0.5", "%i") + end,
            # A division by zero at positions that the causal mask excludes.
            "place": ["    %c1 = arith.constant 1 : index", f"    %one = arith.constant 1.0 : {w}", "    %d = arith.subi %i, %j : index",
                      "    %d1 = arith.addi %d, %c1 : index", "    %d64 = arith.index_cast %d1 : index to i64",
                      f"    %x = arith.sitofp %d64 : i64 to {w}", f"    %f = arith.divf %one, %x : {w}"] + end,
        }[self.weight]

    def row(self):
        """Computes the number of the row among the rows of all ranks, as SequenceRewrite.cpp does."""
        if self.ranks == 1:
            return []
        stride, factor, rest = (self.ranks, "%own", "%row_rank") if self.striped else (self.sq, "%row_rank", "%own")
        return ["    %row_p64 = tensor.extract %part[] : tensor<i64>", "    %row_p = arith.index_cast %row_p64 : i64 to index",
                f"    %row_ranks = arith.constant {self.ranks} : index", "    %row_rank = arith.remui %row_p, %row_ranks : index",
                f"    %row_each = arith.constant {stride} : index", f"    %row_scaled = arith.muli {factor}, %row_each : index",
                f"    %i = arith.addi {rest}, %row_scaled : index"]

    def functions(self, grad):
        text, w = "", self.wide
        mods, masks = self.mods(), self.masks()

        def function(name, leading, body):
            return f"\n      {name}({self.arguments(leading)}) {{\n" + "\n".join(self.row() + body) + "\n  }"

        if mods:
            text += function("score_mod", [f"%s: {w}"], mods[0])
        if masks:
            text += function("mask_mod", [], masks)
        if self.weights():
            text += function("weight_mod", [], self.weights())
        if mods and grad:
            text += function("score_grad", [f"%g: {w}", f"%s: {w}"], mods[1])
        return text

    def operands(self):
        t = self.dtype
        q, k = f"tensor<{self.b}x{self.h}x{self.sq}x{self.d}x{t}>", f"tensor<{self.b}x{self.hkv}x{self.sk}x{self.d}x{t}>"
        v = f"tensor<{self.b}x{self.hkv}x{self.sk}x{self.dv}x{t}>"
        o, lse = f"tensor<{self.b}x{self.h}x{self.sq}x{self.dv}x{t}>", f"tensor<{self.b}x{self.h}x{self.sq}x{self.wide}>"
        return q, k, v, o, lse

    def captured(self):
        caps = self.captures()
        if not caps:
            return ""
        return "capture(" + ", ".join(f"%in_{n}" for n, _, _ in caps) + " : " + ", ".join(t for _, t, _ in caps) + ")"

    def kernel(self, name, ins, outs, op):
        caps = self.captures()
        # Q, K, V and captured tensors come first, so that both directions draw the same numbers.
        args = [f"%in_{n}: {t}{a}" for n, t, a in ins[:3] + caps + ins[3:]]
        args += [f"%out{i}: {t} {{fsdp.out = {i} : i64{self.given(t, name, i)}}}" for i, t in enumerate(outs)]
        results = ", ".join(f"%r{i}" for i in range(len(outs)))
        print(f"func.func private @{name}({', '.join(args)}) -> ({', '.join(outs)}) attributes {{fsdp.kernel, fsdp.kind = \"attention\"}} {{")
        print(f"  {results} = {op}\n  return {results} : {', '.join(outs)}\n}}")

    def given(self, type, kernel, number):
        """Rows without keys contribute exactly nothing."""
        if self.mask != "nothing":
            return ""
        value = MINUS_INFINITY[self.wide] if kernel.startswith("fwd_") and number == 1 else "0.0"
        return f", fsdp.values = dense<{value}> : {type}"

    def projections(self, q, k, v):
        """With capped scores: numbers of variance 1, and q a quarter of the cap times that, so that the cap has an effect."""
        if self.mod != "softcap":
            return [("q", q, ""), ("k", k, ""), ("v", v, "")]
        unit = 3**0.5
        bounds = lambda x: f" {{fsdp.range = [{-x:.6f}, {x:.6f}]}}"
        return [("q", q, bounds(unit * self.cap / 4)), ("k", k, bounds(unit)), ("v", v, bounds(unit))]

    def forward(self):
        q, k, v, o, lse = self.operands()
        self.kernel("fwd_" + self.name, self.projections(q, k, v), [o, lse],
                    f"fsdp.attention %in_q, %in_k, %in_v scale {self.scale:.6f} {self.captured()} : {q}, {k}, {v} -> {o}, {lse}{self.functions(False)}")

    def backward(self, alone):
        q, k, v, o, lse = self.operands()
        floats = [t for _, t, _ in self.captures() if not any(t.endswith(i + ">") for i in ("i1", "i32", "i64"))]
        gradients = f" gradients({', '.join(floats)})" if floats else ""
        given = [f' {{fsdp.from = ["fwd_{self.name}", {i} : i64]}}' for i in range(2)]
        if alone:  # as large as the logarithm of a sum over the keys
            given = ["", " {fsdp.range = [3.0, 4.0]}"]
            self.cap = CAP_OF_DRAWN
        elif self.sk < 4 or (self.dtype == "f64" and self.mod in ("rows", "all")):
            # With its own O, dS of a single key is 0, as is the sum of a row. Only the order of sums would remain, on which low
            # precision, correct by chance, gives no information. Any other O will do.
            given[0] = ""
        self.kernel("bwd_" + self.name,
                    self.projections(q, k, v) + [("o", o, given[0]), ("lse", lse, given[1]), ("do", o, "")], [q, k, v] + floats,
                    f"fsdp.attention_grad %in_q, %in_k, %in_v, %in_o, %in_lse, %in_do scale {self.scale:.6f} {self.captured()} : "
                    f"{q}, {k}, {v}, {o}, {lse}, {o} -> {q}, {k}, {v}{gradients}{self.functions(True)}")


MODS = ["none", "alibi", "softcap", "cap", "rows", "columns", "bias", "batchbias", "relative", "transposed", "gathered", "all"]
MASKS = ["none", "causal", "window", "sink", "prefix", "documents", "table", "lengths", "strict", "nothing"]


def small(dtype):
    """Each function once (except the table by entry), each mask once, sizes that fill no tile."""
    sizes = itertools.cycle([(2, 4, 2, 37, 53, 24, 40), (1, 2, 2, 130, 131, 16, 16), (2, 2, 1, 5, 140, 8, 33), (1, 4, 1, 101, 9, 20, 8)])
    for mod, mask in zip((m for m in MODS if m != "gathered"), itertools.cycle(MASKS[1:] + MASKS[:1])):
        yield Case(dtype, *next(sizes), mod, mask)
    yield Case(dtype, 1, 1, 1, 1, 1, 8, 8, "all", "causal")
    yield Case(dtype, 1, 1, 1, 3, 5, 7, 11, "none", "none", -0.3)
    yield Case(dtype, 2, 4, 2, 37, 140, 16, 24, "all", "none", None, "dropout")
    yield Case(dtype, 2, 2, 1, 101, 53, 16, 16, "none", "window", None, "dropout")
    yield Case(dtype, 2, 2, 2, 37, 20, 16, 16, "softcap", "none", None, "uniform")
    yield Case(dtype, 1, 2, 2, 130, 130, 16, 16, "none", "causal", None, "place")
    yield Case(dtype, 1, 2, 1, 37, 140, 16, 16, "rows", "lengths", None, "batches")


def tiles(dtype):
    """Head dimensions that are multiples of 8, as tensor maps require: each function and each mask over several blocks of keys, heads of
    all widths without functions, more blocks of queries than a GPU has multiprocessors."""
    sizes = itertools.cycle([(1, 4, 2, 200, 333, 64, 64), (2, 2, 1, 257, 300, 128, 128), (1, 2, 2, 130, 400, 96, 96), (1, 2, 1, 70, 530, 40, 72),
                             (1, 1, 1, 150, 270, 192, 128), (1, 1, 1, 129, 270, 256, 256)])
    for mod, mask in zip((m for m in MODS if m != "gathered"), itertools.cycle(MASKS[1:] + MASKS[:1])):
        yield Case(dtype, *next(sizes), mod, mask)
    for d, dv in [(64, 64), (128, 128), (64, 256), (256, 16), (8, 8), (104, 88)]:
        yield Case(dtype, 1, 1, 1, 193, 720, d, dv)
    yield Case(dtype, 1, 1, 1, 60, 352, 128, 128)
    yield Case(dtype, 2, 12, 3, 1100, 40, 16, 24)
    yield Case(dtype, 2, 12, 3, 1100, 260, 8, 8, "none", "causal")
    yield Case(dtype, 2, 4, 2, 300, 300, 64, 64, "all", "window", None, "dropout")


def parts(dtype):
    """The rows of one rank of an axis context, and all keys: each mask and each function, the first, a middle and the last rank. Parts that fill
    no block and that fill several."""
    functions = itertools.cycle(m for m in MODS if m != "gathered")
    for number, mask in enumerate(m for m in MASKS if m != "nothing"):
        yield Case(dtype, 1, 4, 2, 37, 111, 24, 40, next(functions), mask, part=(number % 3, 3, number % 2 == 0))
        yield Case(dtype, 1, 2, 1, 150, 300, 64, 64, next(functions), mask, part=(number % 2, 2, number % 4 < 2))
    for rank in range(4):
        yield Case(dtype, 1, 2, 1, 64, 256, 128, 128, "none", "causal", part=(rank, 4, rank % 2 == 1))
    yield Case(dtype, 2, 1, 1, 70, 140, 16, 16, "all", "window", None, "dropout", part=(1, 2, False))


def shifted(dtype):
    """A kernel of parts.test, in which faults are planted."""
    yield Case(dtype, 1, 1, 1, 96, 480, 64, 64, "none", "causal", part=(2, 5, False))


def faulty(dtype):
    """A kernel that uses every mechanism of sm_90a: alternating warpgroups, reused buffers, a partly masked block."""
    yield Case(dtype, 1, 1, 1, 128, 640, 128, 128, "none", "causal")


def rounds(dtype):
    """The same for gradients: reused buffers of queries, blocks of keys that add to the same queries."""
    yield Case(dtype, 1, 1, 1, 320, 384, 128, 128, "none", "causal")


def apart(dtype):
    """Gradients whose dQ a separate launch computes, because there are too many blocks of keys for sums of contributions to rows."""
    yield Case(dtype, 1, 1, 1, 130, 1040, 64, 64, "rows", "none")


def together(dtype):
    """Gradients of captured tensors of all kinds, whose sums several blocks of keys compute."""
    yield Case(dtype, 1, 2, 1, 130, 300, 64, 64, "all", "causal")


def wide(dtype):
    """Heads of more than 128 columns: several blocks of keys and of queries, masks, shared heads, documents, contributions per key, other widths
    of values, one slice of dQ."""
    functions = [("none", "none"), ("none", "causal"), ("none", "documents"), ("softcap", "window")]
    for number, dim in enumerate((136, 160, 192, 256)):
        for offset, function in enumerate(functions):
            heads = (1, 2, 2) if (number + offset) % 2 else (1, 2, 1)
            yield Case(dtype, *heads, 130, 140 if offset else 200, dim, dim, *function)
    for d, dv in (192, 64), (192, 128), (64, 256), (16, 200), (256, 16):
        yield Case(dtype, 1, 1, 1, 70, 140, d, dv)
    yield Case(dtype, 1, 4, 1, 70, 130, 256, 256, "columns", "causal")
    yield Case(dtype, 1, 2, 1, 130, 70, 192, 192, "rows", "none", None, "dropout")


def captured(dtype):
    """Gradients of captured tensors that are summed by head, by query or in tables, with and without a mask, over several blocks of keys."""
    for dim in (64, 128, 192):
        for mod, mask in ("alibi", "none"), ("cap", "causal"), ("bias", "window"), ("relative", "documents"), ("batchbias", "none"):
            yield Case(dtype, 2, 4, 2, 70, 140, dim, dim, mod, mask)
    for dim in (64, 128, 192, 256):
        yield Case(dtype, 2, 4, 2, 150, 270, dim, dim, "rows", "none")
        yield Case(dtype, 1, 4, 2, 130, 300, dim, dim, "rows", "causal", None, "dropout")
        yield Case(dtype, 1, 2, 1, 130, 140, dim, dim, "all", "documents")
        yield Case(dtype, 1, 2, 2, 128, 256, dim, dim, "all", "none")
    yield Case(dtype, 1, 2, 1, 130, 140, 256, 256, "transposed", "causal")
    yield Case(dtype, 1, 2, 2, 70, 270, 64, 64, "alibi", "causal", None, "dropout")


def alone(dtype):
    """Gradients of captured tensors whose dQ, dK and tables have launches of their own: each kind of indices with each mask, shared heads, sizes
    that fill no block, dropout, all widths."""
    functions = [("alibi", "strict"), ("rows", "causal"), ("columns", "window"), ("bias", "documents"), ("relative", "causal"), ("all", "none"),
                 ("transposed", "window"), ("cap", "documents"), ("batchbias", "strict"), ("all", "causal"), ("rows", "nothing"), ("columns", "none")]
    sizes = itertools.cycle([(1, 4, 2, 70, 140), (2, 2, 2, 130, 90), (1, 3, 1, 100, 200)])
    dims = itertools.cycle([(64, 64), (32, 32), (128, 128), (96, 64), (256, 256)])
    weights = itertools.cycle(["none", "none", "dropout"])
    for mod, mask in functions:
        yield Case(dtype, *next(sizes), *next(dims), mod, mask, None, next(weights))
    yield Case(dtype, 1, 4, 1, 199, 3, 64, 64, "rows", "causal")  # no block of keys visits the first queries
    yield Case(dtype, 1, 2, 1, 128, 256, 64, 64, "all", "none", None, "dropout")
    yield Case(dtype, 1, 2, 1, 37, 300, 192, 128, "gathered", "strict", None, "none", 97)


def spilled(dtype):
    """Kernels of attention-spills.test whose gradients take most registers of the type, most of which once spilled: all queries in one block,
    blocks of queries that all have masked elements, shared heads, functions with many values, dropout. f16 has those for sm_80."""
    if dtype == "f32":
        yield Case(dtype, 1, 4, 2, 70, 140, 64, 64, "alibi", "strict")
        yield Case(dtype, 1, 3, 1, 100, 200, 96, 64, "batchbias", "strict", None, "dropout")
        yield Case(dtype, 1, 2, 1, 37, 300, 192, 128, "gathered", "strict", None, "none", 97)
        yield Case(dtype, 2, 4, 2, 70, 140, 128, 128, "batchbias", "none")
        yield Case(dtype, 2, 4, 2, 37, 140, 16, 24, "all", "none", None, "dropout")
        yield Case(dtype, 2, 4, 2, 37, 53, 24, 40, "none", "causal")
        yield Case(dtype, 4, 16, 16, 2048, 2048, 256, 256, "all", "causal")
        for case in ((1, 4, 1, 130, 130, 128, 128, "none", "strict"), (1, 4, 1, 199, 3, 256, 256, "relative", "sink"),
                     (1, 4, 1, 1, 150, 96, 96, "alibi", "sink"), (1, 2, 2, 1, 150, 256, 256, "transposed", "documents"),
                     (1, 4, 1, 1, 1, 128, 128, "none", "causal")):
            yield Case(dtype, *case)
        return
    if dtype == "f16":
        for case in ((1, 2, 2, 128, 256, 256, 256, "all"), (1, 2, 2, 128, 256, 128, 128, "all"), (1, 2, 2, 70, 113, 80, 100, "transposed", "sink")):
            yield Case(dtype, *case)
        return
    for case in ((1, 4, 2, 70, 140, 64, 64, "alibi", "strict"), (1, 4, 2, 70, 140, 96, 64, "bias", "documents"),
                 (2, 4, 2, 70, 140, 64, 64, "cap", "causal"), (2, 4, 2, 70, 140, 64, 64, "bias", "window"),
                 (2, 4, 2, 70, 140, 128, 128, "cap", "causal"), (2, 4, 2, 70, 140, 128, 128, "bias", "window"),
                 (2, 4, 2, 70, 140, 128, 128, "relative", "documents"), (2, 2, 2, 130, 90, 128, 128, "cap", "documents"),
                 (2, 4, 2, 333, 520, 128, 128, "softcap", "documents"), (2, 2, 1, 257, 300, 128, 128, "alibi", "window"),
                 (1, 4, 2, 200, 333, 64, 64, "bias", "lengths"), (1, 4, 1, 199, 3, 64, 64, "softcap", "table"),
                 (1, 4, 2, 500, 512, 64, 64, "softcap", "table"), (1, 8, 2, 2000, 2000, 128, 128, "none", "causal"),
                 (1, 32, 8, 4096, 4096, 256, 256, "none", "window"), (4, 16, 16, 2048, 2048, 256, 256, "all", "causal"),
                 (1, 2, 1, 130, 140, 256, 256, "all", "documents"), (1, 2, 2, 70, 113, 33, 17, "all", "table"),
                 (2, 2, 1, 199, 3, 128, 128, "relative", "table"), (1, 4, 1, 70, 113, 128, 128, "batchbias", "lengths"),
                 (2, 2, 1, 257, 300, 128, 128, "batchbias", "strict"), (1, 2, 2, 500, 512, 128, 128, "relative", "causal"),
                 (1, 2, 1, 1024, 1024, 64, 64, "alibi", "window"), (2, 4, 1, 113, 203, 33, 17, "rows", "table")):
        yield Case(dtype, *case)
    yield Case(dtype, 1, 2, 1, 400, 400, 64, 64, "gathered", "causal", entries=2000)
    yield Case(dtype, 2, 4, 2, 300, 300, 64, 64, "all", "window", None, "dropout")
    yield Case(dtype, 1, 4, 2, 37, 111, 24, 40, "all", "documents", part=(2, 3, False))
    yield Case(dtype, 1, 2, 1, 150, 300, 64, 64, "softcap", "table", part=(0, 2, False))
    yield Case(dtype, 4, 12, 12, 1024, 1024, 128, 128, "none", "causal", None, "dropout")
    yield Case(dtype, 4, 16, 16, 2048, 2048, 64, 64, "rows", "causal", None, "dropout")


def crowded(dtype):
    """Kernels of attention-spills.test whose forward pass takes most registers of the type: two blocks of keys, shared heads, dropout. f16 has those
    for sm_80."""
    if dtype == "f16":
        yield Case(dtype, 1, 2, 2, 130, 130, 16, 16, "none", "causal", None, "place")
        yield Case(dtype, 1, 4, 1, 70, 113, 96, 96, "all", "none")
        yield Case(dtype, 1, 4, 1, 130, 130, 40, 72, "gathered", "window", entries=97)
        yield Case(dtype, 1, 4, 2, 70, 140, 96, 64, "bias", "documents")
        yield Case(dtype, 1, 2, 2, 70, 113, 40, 72, "relative", "window")
        yield Case(dtype, 1, 2, 2, 70, 113, 33, 17, "all", "table")
        yield Case(dtype, 1, 3, 1, 100, 200, 64, 64, "all", "none", None, "dropout")
        yield Case(dtype, 1, 2, 2, 70, 270, 64, 64, "alibi", "causal", None, "dropout")
        return
    if dtype != "f32":
        for case in ((2, 4, 2, 70, 140, 192, 192, "alibi"), (1, 2, 2, 128, 256, 128, 128, "all"), (1, 2, 1, 130, 200, 192, 192),
                     (1, 1, 1, 60, 352, 128, 128), (1, 6, 3, 200, 333, 128, 96, "none", "sink"), (2, 4, 2, 260, 270, 128, 128),
                     (1, 4, 4, 200, 200, 64, 64), (1, 8, 2, 2048, 2048, 64, 64, "none", "causal")):
            yield Case(dtype, *case)
        yield Case(dtype, 2, 4, 2, 37, 140, 16, 24, "all", "none", None, "dropout")
        return
    for dim in (64, 128):
        yield Case(dtype, 4, 12, 12, 1024, 1024, dim, dim, "none", "causal", None, "dropout")
        for function in ("softcap", "causal"), ("none", "documents"):
            yield Case(dtype, 4, 16, 16, 2048, 2048, dim, dim, *function)
    yield Case(dtype, 4, 16, 4, 2048, 2048, 128, 128, "all", "documents")
    yield Case(dtype, 1, 4, 2, 130, 300, 256, 256, "rows", "causal", None, "dropout")


def slices(dtype):
    """The kernel of `rounds` for a head whose dQ is summed in two slices, of two panels and of one."""
    yield Case(dtype, 1, 1, 1, 200, 192, 192, 192, "none", "causal")


def large(dtype):
    """Heads of more than 128 columns at the sizes of training."""
    for d, dv in (136, 136), (160, 160), (192, 192), (192, 128), (256, 256):
        for batch, length in (4, 2048), (1, 8192):
            for mask in ("none", "causal"):
                yield Case(dtype, batch, 16, 16, length, length, d, dv, "none", mask)


def narrow(dtype):
    """Gradients of heads with one small dimension, with few blocks and with many."""
    yield Case(dtype, 1, 2, 2, 1024, 1024, 136, 8)
    yield Case(dtype, 4, 16, 16, 2048, 2048, 136, 8, "none", "causal")


def few(dtype):
    """Gradients of captured tensors with each kind of indices, masks, shared heads, dropout, rows without keys; two of them in f32."""
    sizes = [(2, 4, 2, 37, 53, 24, 40), (1, 2, 2, 70, 90, 16, 16), (1, 4, 1, 37, 70, 16, 24), (1, 2, 1, 5, 90, 33, 17)]
    functions = [("none", "causal", "none"), ("all", "window", "none"), ("columns", "documents", "dropout"), ("bias", "prefix", "none"),
                 ("softcap", "nothing", "none")]
    for size, function in zip(itertools.cycle(sizes), functions[:2] if dtype == "f32" else functions):
        yield Case(dtype, *size, function[0], function[1], None, function[2])
    if dtype == "bf16":
        yield Case(dtype, 1, 4, 1, 199, 3, 64, 64, "rows", "causal")  # no block of keys visits the first queries


def blocks(dtype):
    """Several blocks of keys for each block of queries, and the reverse, so that all add to gradients of the other side. Masks that select a few
    blocks, shared heads, lengths that fill no block, sums of one and of two panels, a separate dQ for captured tensors."""
    yield Case(dtype, 1, 2, 1, 200, 333, 64, 64)
    yield Case(dtype, 1, 2, 1, 200, 333, 128, 96, "none", "causal")
    yield Case(dtype, 2, 1, 1, 300, 300, 40, 24, "softcap", "window")
    yield Case(dtype, 1, 2, 2, 130, 270, 16, 16, "columns", "sink")
    yield Case(dtype, 1, 1, 1, 257, 140, 72, 104, "none", "strict")
    yield Case(dtype, 1, 1, 1, 150, 140, 64, 128, "rows", "causal", None, "dropout")


def orders(dtype):
    """Kernels of attention-orders.test: an even and an odd number of kv heads, whose query heads can be divided, with masks that give blocks
    unequal work, and without."""
    yield Case(dtype, 1, 4, 2, 300, 400, 64, 64, "none", "causal")
    yield Case(dtype, 1, 6, 3, 200, 333, 128, 96, "none", "sink")
    yield Case(dtype, 2, 4, 2, 260, 270, 128, 128)


def turns(dtype):
    """More blocks of queries than a GPU has multiprocessors."""
    yield Case(dtype, 2, 12, 3, 1100, 260, 8, 8, "none", "causal")


def balance(dtype):
    """Kernels of attention-balance.test: 16,384 tokens with 2,048 columns of heads, shared heads, layers of GPT-2 and of Llamas."""
    shapes = [(16384 // length, 2048 // dim, 2048 // dim, length, dim) for length in (2048, 4096, 8192, 16384) for dim in (64, 128)]
    shapes += [(1, 64, 8, length, 128) for length in (2048, 4096, 8192, 16384)]
    shapes += [(4, 32, 4, 2048, 64), (8, 12, 12, 2048, 64), (1, 32, 8, 8192, 128), (2, 32, 8, 4096, 128)]
    for b, h, hkv, length, dim in shapes:
        for mask in ("none", "causal"):
            yield Case(dtype, b, h, hkv, length, length, dim, dim, "none", mask)


def uneven(dtype):
    """Gradients whose rounding errors differ from row to row: O is independent of the other values."""
    yield Case(dtype, 1, 2, 2, 300, 300, 64, 64)


def table(dtype):
    """Kernels of ptxas-table.test: 4 x 16 heads of 2048 rows and keys."""
    functions = [("none", "none"), ("none", "causal"), ("softcap", "none"), ("softcap", "causal"), ("alibi", "none"), ("alibi", "causal"),
                 ("none", "documents")]
    for dim in (64, 128, 256):
        for mod, mask in functions:
            yield Case(dtype, 4, 16, 16, 2048, 2048, dim, dim, mod, mask)


def sizes(dtype):
    """Kernels of ptxas-table.test: each head dimension with a tiling of its own, 2,048 and 8,192 rows and keys, with and without a causal mask."""
    for dim in (64, 96, 128, 192, 256):
        for batch, length in (4, 2048), (1, 8192):
            for mask in ("none", "causal"):
                yield Case(dtype, batch, 16, 16, length, length, dim, dim, "none", mask)


def shared(dtype):
    """Kernels of attention-spills.test: several query heads per kv head, masks of one and of several ranges, lengths that fill no block."""
    for dim in (64, 96, 112, 128):
        for heads, kv, length in (64, 8, 2048), (64, 8, 8192), (32, 8, 4096):
            for mask in ("none", "causal", "window"):
                yield Case(dtype, 1, heads, kv, length, length, dim, dim, "none", mask)
    for dim in (64, 128):
        for mask in ("none", "causal", "window", "strict", "documents"):
            yield Case(dtype, 1, 8, 2, 2048, 2048, dim, dim, "none", mask)
        yield Case(dtype, 1, 8, 2, 2048, 2048, dim, dim, "softcap", "window")
        yield Case(dtype, 1, 8, 2, 2000, 2000, dim, dim, "none", "causal")
    for dim in (136, 192, 256):
        for mask in ("none", "causal", "window"):
            yield Case(dtype, 1, 32, 8, 4096, 4096, dim, dim, "none", mask)
        yield Case(dtype, 1, 8, 2, 2000, 2000, dim, dim, "softcap", "documents")
    yield Case(dtype, 1, 16, 16, 2048, 2048, 192, 128, "none", "causal")
    yield Case(dtype, 4, 16, 4, 2048, 2048, 256, 256, "none", "causal")
    for dim in (64, 128, 192, 256):
        for mod, mask in ("alibi", "none"), ("cap", "causal"), ("relative", "none"), ("rows", "none"), ("rows", "causal"), ("all", "documents"):
            yield Case(dtype, 4, 16, 4, 2048, 2048, dim, dim, mod, mask)
        yield Case(dtype, 4, 16, 4, 2000, 2048, dim, dim, "alibi", "none")


def sums(dtype):
    """Gradients of captured tensors at the sizes of training."""
    for dim in (64, 128, 256):
        for mod in "alibi", "rows", "relative", "all":
            for mask in "none", "causal":
                yield Case(dtype, 4, 16, 16, 2048, 2048, dim, dim, mod, mask)


def full(dtype, softcap=False, emulated=False):
    """All pairs of a score and a mask function, and all triples of heads, lengths and head dimensions: combined one by one.
    Kernels with a softcap, whose scores are large, are separate."""
    lengths = [(1, 1), (1, 300), (113, 203), (799, 3), (260, 260)]
    if emulated:
        lengths = [(1, 1), (1, 150), (70, 113), (199, 3), (130, 130)]
    dims = [(64, 64), (96, 96), (128, 128), (256, 256), (40, 72), (33, 17), (8, 8), (80, 100)]
    heads = [(1, 2, 2), (2, 2, 1), (1, 4, 1)] if emulated else [(2, 2, 2), (2, 4, 1), (1, 8, 1)]
    pairs = list(itertools.product(MODS, MASKS))
    random.Random(1).shuffle(pairs)
    for shape, functions in zip(itertools.product(heads, lengths, dims), pairs, strict=True):
        if (functions[0] == "softcap") == softcap:
            yield Case(dtype, *itertools.chain(*shape), *functions, entries=97)


def long(dtype, emulated=False):
    """1024 x 1024: each mask, each score function. Emulated, 400 x 400."""
    size = (400, 400) if emulated else (1024, 1024)
    for mod, mask in zip(MODS, itertools.cycle(MASKS[1:] + MASKS[:1])):
        yield Case(dtype, 1, 2, 1, *size, 64, 64, mod, mask, entries=2000)
    yield Case(dtype, 1, 2, 1, *size, 64, 64, "alibi", "causal", None, "dropout")
    yield Case(dtype, 1, 2, 1, *size, 128, 128, "relative", "documents")


def owned(dtype):
    """Gradients of tables too large for a private copy per unit: units are divided so that no two write the same element."""
    yield Case(dtype, 2, 4, 2, 530, 540, 8, 8, "bias", "causal")
    yield Case(dtype, 2, 2, 2, 740, 750, 8, 8, "batchbias", "window")
    yield Case(dtype, 2, 2, 1, 1040, 1050, 8, 8, "transposed", "causal")
    yield Case(dtype, 2, 4, 2, 80, 203, 16, 16, "swapped", "none")
    yield Case(dtype, 2, 4, 2, 113, 203, 16, 16, "gathered", "causal", entries=1200000)


def entries(dtype):
    """The last kernel of `owned` with few rows."""
    yield Case(dtype, 2, 2, 2, 16, 200, 8, 8, "gathered", "none", entries=1200000)


def dropout(dtype):
    """Dropout at the sizes of training: each head dimension with a tiling of its own; also with captured tensors."""
    for dim in (64, 96, 128, 192, 256):
        for mask in ("none", "causal"):
            yield Case(dtype, 4, 12, 12, 1024, 1024, dim, dim, "none", mask, None, "dropout")
    for mod in ("alibi", "rows"):
        yield Case(dtype, 4, 16, 16, 2048, 2048, 64, 64, mod, "causal", None, "dropout")
    yield Case(dtype, 4, 16, 4, 2000, 2048, 64, 64, "all", "causal", None, "dropout")


def brief(dtype):
    """Few rows and keys, for which the latency of memory matters more than products."""
    for rows, dim in ((16, 8), (32, 16), (64, 64), (200, 64)):
        yield Case(dtype, 1, 4, 4, rows, rows, dim, dim)


def single(dtype):
    """Heads with one column."""
    for d, dv in ((1, 1), (1, 8), (8, 1), (3, 1)):
        yield Case(dtype, 1, 2, 1, 33, 17, d, dv)


def huge(dtype):
    """Tables of more than 32 MiB."""
    yield Case(dtype, 1, 4, 2, 1500, 1510, 8, 8, "bias", "causal")
    yield Case(dtype, 2, 2, 1, 2100, 2101, 8, 8, "batchbias", "prefix")
    yield Case(dtype, 2, 2, 2, 300, 310, 8, 8, "gathered", "none", entries=9000000)


def main():
    emulated = "--emulated" in sys.argv
    kind, directions, *dtypes = [argument for argument in sys.argv[1:] if argument != "--emulated"]
    kinds = {"small": small, "tiles": tiles, "parts": parts, "shifted": shifted, "faulty": faulty, "rounds": rounds, "apart": apart, "together": together, "sums": sums, "narrow": narrow, "wide": wide, "captured": captured, "alone": alone, "spilled": spilled, "crowded": crowded, "slices": slices, "large": large, "few": few, "blocks": blocks, "orders": orders, "turns": turns, "balance": balance, "uneven": uneven, "table": table, "sizes": sizes, "shared": shared, "full": functools.partial(full, emulated=emulated),
             "softcap": functools.partial(full, softcap=True, emulated=emulated), "long": functools.partial(long, emulated=emulated),
             "owned": owned, "entries": entries, "dropout": dropout, "huge": huge, "single": single, "brief": brief}
    for dtype in dtypes:
        seen = set()
        for case in kinds[kind](dtype):
            if case.name in seen:
                continue
            seen.add(case.name)
            if directions in ("both", "forward"):
                case.forward()
            if directions in ("both", "backward"):
                case.backward(alone=directions == "backward")


if __name__ == "__main__":
    main()
