#!/usr/bin/env python3
"""Writes attention with random score, mask and weight functions, in f64.

    random-attention.py functions SEED COUNT    one function each, for fsdp-gradcheck
    random-attention.py model SEED COUNT        one loss over all ops, with their operands as parameters

A score function is a smooth formula of the score, of captured floats (a scalar, one per head, row or column,
a whole bias, tables that are read by distance or by an index from memory) and of the indices. Masks are
comparisons of indices, tables of bits and documents, joined by and, or, not. The seed determines everything."""
import math
import random
import sys


class Region:
    """Ops of one function; captured tensors are shared by all functions of an op."""

    def __init__(self, op, rng):
        self.op, self.rng, self.lines, self.count = op, rng, [], 0

    def emit(self, text):
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}")
        return f"%v{self.count}"

    def real(self, value):
        return self.emit(f"arith.constant {float(value)!r} : f64")

    def index(self, value):
        return self.emit(f"arith.constant {value} : index")

    def binary(self, name, a, b, type):
        return self.emit(f"arith.{name} {a}, {b} : {type}")

    def as_real(self, index):
        return self.emit(f"arith.sitofp {self.emit(f'arith.index_cast {index} : index to i64')} : i64 to f64")

    def read(self, kind, indices, shape, element="f64"):
        name, type = self.op.capture(kind, shape, element)
        return self.emit(f"tensor.extract %{name}[{', '.join(indices)}] : {type}")


class Attention:
    def __init__(self, number, rng):
        self.rng, self.number = rng, number
        self.b, self.hkv, self.group = rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([1, 2, 3])
        self.h, self.sq, self.sk = self.hkv * self.group, rng.randint(1, 5), rng.randint(1, 6)
        self.d, self.dv = rng.randint(1, 5), rng.randint(1, 4)
        self.captures = {}  # name: (type, contents of integers, or None)
        self.score = self.body(lambda r: self.formula(r, rng.randint(1, 3)), "f64", leading=["%s: f64"])
        self.mask = self.body(lambda r: self.condition(r, rng.randint(0, 2)), "i1") if rng.random() < 0.8 else None
        self.weight = self.body(self.factor, "f64") if rng.random() < 0.5 else None

    def capture(self, kind, shape, element):
        type = f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"
        name = f"{kind}{len([n for n in self.captures if n.rstrip('0123456789') == kind])}"
        contents = None
        if element != "f64":
            flat = [self.rng.randint(0, 1 if element == "i1" else 2) for _ in range(math.prod(shape))]
            contents = self.nested(flat, shape, element)
        self.captures[name] = (type, contents)
        return name, type

    def nested(self, flat, shape, element):
        if not shape:
            return str(flat[0])
        if len(shape) == 1:
            return "[" + ", ".join(("true" if x else "false") if element == "i1" else str(x) for x in flat) + "]"
        step = len(flat) // shape[0]
        return "[" + ", ".join(self.nested(flat[i * step:(i + 1) * step], shape[1:], element) for i in range(shape[0])) + "]"

    # Score functions.
    def term(self, r):
        """Returns a number that does not depend on the score."""
        kind = r.rng.choice(["scalar", "head", "row", "column", "bias", "distance", "gathered", "place"])
        if kind == "scalar":
            return r.read("scalar", [], [])
        if kind == "head":
            return r.read("head", ["%h"], [self.h])
        if kind == "row":
            return r.read("row", ["%h", "%i"], [self.h, self.sq])
        if kind == "column":
            return r.read("column", ["%b", "%j"], [self.b, self.sk])
        if kind == "bias":
            return r.read("bias", ["%h", "%i", "%j"], [self.h, self.sq, self.sk])
        if kind == "distance":
            at = r.binary("addi", r.binary("subi", "%j", "%i", "index"), r.index(self.sq - 1), "index")
            return r.read("distance", [at], [self.sq + self.sk - 1])
        if kind == "gathered":
            id = r.read("ids", ["%j"], [self.sk], "i32")
            at = r.emit(f"arith.index_cast {id} : i32 to index")
            return r.read("gathered", ["%h", at], [self.h, 3])
        return r.binary("mulf", r.as_real(r.binary("subi", "%j", "%i", "index")), r.real(r.rng.uniform(-0.3, 0.3)), "f64")

    def formula(self, r, depth):
        if depth == 0:
            return "%s"
        x = self.formula(r, depth - 1)
        kind = r.rng.choice(["add", "add", "gain", "softcap", "tanh", "sin", "bump", "both"])
        if kind == "add":
            return r.binary(r.rng.choice(["addf", "subf"]), x, self.term(r), "f64")
        if kind == "gain":
            return r.binary("mulf", x, self.term(r), "f64")
        if kind == "softcap":
            cap = r.binary("addf", r.emit(f"math.exp {self.term(r)} : f64"), r.real(0.5), "f64")
            return r.binary("mulf", r.emit(f"math.tanh {r.binary('divf', x, cap, 'f64')} : f64"), cap, "f64")
        if kind == "bump":
            square = r.binary("mulf", x, x, "f64")
            negative = r.emit(f"arith.negf {square} : f64")
            return r.emit(f"math.exp {negative} : f64")
        if kind == "both":
            return r.binary("addf", x, r.binary("mulf", r.emit(f"math.sin {x} : f64"), self.term(r), "f64"), "f64")
        return r.emit(f"math.{kind} {x} : f64")

    # Mask functions.
    def condition(self, r, depth):
        if depth:
            a = self.condition(r, depth - 1)
            kind = r.rng.choice(["andi", "ori", "not"])
            if kind == "not":
                return r.binary("xori", a, r.emit("arith.constant true"), "i1")
            return r.binary(kind, a, self.condition(r, depth - 1), "i1")
        compare = lambda p, a, b: r.emit(f"arith.cmpi {p}, {a}, {b} : index")
        kind = r.rng.choice(["causal", "causal", "window", "prefix", "table", "documents", "heads", "lengths"])
        if kind == "causal":
            return compare("sge", r.binary("addi", "%i", r.index(self.sk - self.sq), "index"), "%j")
        if kind == "window":
            return compare("slt", r.binary("subi", "%i", "%j", "index"), r.index(r.rng.randint(1, 3)))
        if kind == "prefix":
            return compare("slt", "%j", r.index(r.rng.randint(0, self.sk)))
        if kind == "heads":
            return compare("eq", r.binary("remui", "%h", r.index(2), "index"), r.index(r.rng.randint(0, 1)))
        if kind == "table":
            return r.read("kept", ["%i", "%j"], [self.sq, self.sk], "i1")
        if kind == "lengths":
            length = r.emit(f"arith.index_cast {r.read('length', ['%b'], [self.b], 'i32')} : i32 to index")
            return compare("sle", "%j", length)
        rows, columns = r.read("docq", ["%i"], [self.sq], "i32"), r.read("dock", ["%j"], [self.sk], "i32")
        return r.emit(f"arith.cmpi eq, {rows}, {columns} : i32")

    # Weight functions.
    def factor(self, r):
        if r.rng.random() < 0.3:
            return r.as_real(r.binary("subi", "%i", "%j", "index"))
        place = "%h"
        for extent, at in ((self.sq, "%i"), (self.sk, "%j")):
            place = r.binary("addi", r.binary("muli", place, r.index(extent), "index"), at, "index")
        seed = r.emit(f"arith.constant {r.rng.randint(0, 2**40)} : i64")
        sample = r.emit("arith.index_cast %b : index to i64")
        kind = r.rng.choice(["uniform", "bernoulli keep 0.7"])
        return r.emit(f"fsdp.random_element {kind} seed {seed} step {seed} sample {sample} element {place} site {self.number} : f64")

    def body(self, make, type, leading=()):
        region = Region(self, self.rng)
        region.lines.append(f"    fsdp.yield {make(region)} : {type}")
        return list(leading), region.lines

    def functions(self):
        text = ""
        for name, function in (("score_mod", self.score), ("mask_mod", self.mask), ("weight_mod", self.weight)):
            if function:
                arguments = function[0] + [f"%{x}: index" for x in "bhij"] + [f"%{n}: {t}" for n, (t, _) in self.captures.items()]
                text += f"\n      {name}({', '.join(arguments)}) {{\n" + "\n".join(function[1]) + "\n  }"
        return text

    def write(self, prefix):
        """Returns the op, its arguments and its result's type. All names start with `prefix`."""
        q = f"tensor<{self.b}x{self.h}x{self.sq}x{self.d}xf64>"
        k, v = (f"tensor<{self.b}x{self.hkv}x{self.sk}x{n}xf64>" for n in (self.d, self.dv))
        o, lse = f"tensor<{self.b}x{self.h}x{self.sq}x{self.dv}xf64>", f"tensor<{self.b}x{self.h}x{self.sq}xf64>"
        arguments = [(f"{prefix}{n}", t) for n, t in (("q", q), ("k", k), ("v", v))]
        arguments += [(f"{prefix}{n}", t) for n, (t, contents) in self.captures.items() if contents is None]
        text = "".join(f"  %{prefix}{n} = arith.constant dense<{contents}> : {t}\n"
                       for n, (t, contents) in self.captures.items() if contents is not None)
        capture = ""
        if self.captures:
            capture = (" capture(" + ", ".join(f"%{prefix}{n}" for n in self.captures) + " : " +
                       ", ".join(t for t, _ in self.captures.values()) + ")")
        text += (f"  %{prefix}o, %{prefix}lse = fsdp.attention %{prefix}q, %{prefix}k, %{prefix}v scale {self.rng.choice([0.7, -0.4, 1.1])}"
                 f"{capture} : {q}, {k}, {v} -> {o}, {lse}{self.functions()}\n")
        return text, arguments, o


def write_functions(all):
    for a in all:
        text, arguments, o = a.write("x")
        print(f"func.func @f{a.number}({', '.join(f'%{n}: {t}' for n, t in arguments)}) -> {o} {{\n{text}  return %xo : {o}\n}}")


def write_model(all):
    """Returns the sum of o · sin(linear index) over all elements of o."""
    arguments, text, sums = [], "  %zero = arith.constant dense<0.0> : tensor<f64>\n", "%zero"
    for a in all:
        p = f"a{a.number}_"
        op, own, o = a.write(p)
        arguments += own
        text += op + f"""  %{p}sum = linalg.generic {{indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>, affine_map<(b, h, i, d) -> ()>],
    iterator_types = ["reduction", "reduction", "reduction", "reduction"]}} ins(%{p}o : {o}) outs({sums} : tensor<f64>) {{
  ^bb0(%x: f64, %sum: f64):
    %i = linalg.index 2 : index
    %d = linalg.index 3 : index
    %at = arith.addi %i, %d : index
    %n = arith.index_cast %at : index to i64
    %y = arith.sitofp %n : i64 to f64
    %w = math.sin %y : f64
    %p = arith.mulf %x, %w : f64
    %r = arith.addf %p, %sum : f64
    linalg.yield %r : f64
  }} -> tensor<f64>
"""
        sums = f"%{p}sum"
    init = "fsdp.init = #fsdp.init<normal, 0.0, 0.5>"
    signature = ", ".join(f'%{n}: {t} {{fsdp.param = "{n}", {init}}}' for n, t in arguments)
    print(f"func.func @loss({signature}, %batch: tensor<1xi64> {{fsdp.batch = \"tokens\", fsdp.limit = 4 : i64}}) -> tensor<f64> {{\n{text}  return {sums} : tensor<f64>\n}}")


mode, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
{"functions": write_functions, "model": write_model}[mode]([Attention(i, random.Random(seed * 1000 + i)) for i in range(count)])
