#!/usr/bin/env python3
# Writes contraction kernels for fsdp-kernel-test:
#   gemm-grid.py short|full|tiles|splits|groups|groupgrid|gates|faulty|faultyboxes|uneven|sums|sumtable|gradients|equalparts|table|grouptable|grouploops|rates|work|narrow|training DTYPE...
# DTYPE tf32 stands for f32 factors that tf32 holds exactly, and for the tiles of --f32-products=tf32.
# short: every epilogue and every transpose once; full: all combinations at odd sizes; tiles: each tile of the type; splits: k in parts;
# gradients, equalparts: those of GPT-2's weights; table, grouptable: the input of the ptxas tables; grouploops: that of grouptable with 16 times as many k, so that main loops take most of the time.
import itertools
import sys

TF32 = "tf32" in sys.argv
MAPS = {"n": "(m,k)", "t": "(k,m)"}, {"n": "(k,n)", "t": "(n,k)"}
TILES = {16: ["128x256", "128x128", "128x64", "64x128", "64x64", "32x64", "64x32", "32x32"], 32: ["128x128"] * TF32 + ["128x64", "64x64", "32x32"]}
GROUP_TILES = ["wg128x256c2", "wg128x256", "wg128x192", "wg128x128c2", "wg128x128", "wg128x64"]
TRANSPOSES = ["nn", "nt", "tn", "tt"]
EPILOGUES = ["none", "accumulate", "bias", "gelu", "gelu_grad", "residual", "rows", "swapped"]
GATES = ["swiglu", "swiglu_grad"] # with two results of DTYPE


def generic(result, ins, types, maps, body, out, shape):
    """A linalg.generic over (i, j)."""
    every = ", ".join(f"affine_map<(i,j)->{m}>" for m in maps + ["(i,j)"])
    arguments = ", ".join(f"%x{i}: {t.split('x')[-1].rstrip('>')}" for i, t in enumerate(types)) + f", %o: {out}"
    return f"""  %e_{result} = tensor.empty() : tensor<{shape}x{out}>
  %{result} = linalg.generic {{indexing_maps = [{every}], iterator_types = ["parallel", "parallel"]}} ins({", ".join(ins)} : {", ".join(types)}) outs(%e_{result} : tensor<{shape}x{out}>) {{
  ^bb0({arguments}):
{body}
  }} -> tensor<{shape}x{out}>
"""


TANH = """    %h = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.797884583 : f32
    %d = arith.constant 0.044715 : f32
    %x2 = arith.mulf %x, %x : f32
    %dx2 = arith.mulf %d, %x2 : f32
    %p = arith.addf %one, %dx2 : f32
    %cx = arith.mulf %root, %x : f32
    %u = arith.mulf %cx, %p : f32
    %t = math.tanh %u : f32
    %t1 = arith.addf %one, %t : f32
"""
GELU = TANH + """    %hx = arith.mulf %h, %x : f32
    %y = arith.mulf %hx, %t1 : f32
"""
# Derivative at x: t1 / 2 + x / 2 · (1 - t²) · c · (1 + 3 d x²)
GELU_GRAD = TANH + """    %three = arith.constant 3.0 : f32
    %tt = arith.mulf %t, %t : f32
    %s = arith.subf %one, %tt : f32
    %d3 = arith.mulf %three, %dx2 : f32
    %p3 = arith.addf %one, %d3 : f32
    %cp = arith.mulf %cx, %p3 : f32
    %sp = arith.mulf %s, %cp : f32
    %sum = arith.addf %t1, %sp : f32
    %y = arith.mulf %h, %sum : f32
"""
# With power = exp(-x) and d = 1 + power: x / d, and its derivative.
SILU = """    %limit = arith.constant 40.0 : f32
    %one = arith.constant 1.0 : f32
    %nx = arith.negf %x : f32
    %least = arith.minimumf %nx, %limit : f32
    %power = math.exp %least : f32
    %d = arith.addf %power, %one : f32
    %s = arith.divf %x, %d : f32
"""
SILU_GRAD = SILU + """    %g0 = arith.divf %w, %d : f32
    %g1 = arith.mulf %w, %s : f32
    %g2 = arith.divf %g1, %d : f32
    %g3 = arith.mulf %g2, %power : f32
    %y = arith.addf %g0, %g3 : f32
"""


class Kernel:
    """C[b, m, n] = Σ A · B, with an epilogue; A and B transposed or not; `tile` selects the tile; `summed` names a factor that is also added over k."""

    def __init__(self, dtype, transposes, m, n, k, epilogue="none", out=None, batch=0, tile=None, summed=None):
        self.summed = summed
        self.dtype, self.transposes, self.m, self.n, self.k = dtype, transposes, m, n, k
        self.epilogue, self.out, self.batch, self.tile = epilogue, out or dtype, batch, tile
        self.name = f"{transposes}_{dtype}_{batch}x{m}x{n}x{k}_{epilogue}_{self.out}" + (f"_{tile}" if tile else "").replace("/", "in").replace("+", "and")
        self.name += f"_sum_{summed}" if summed else ""

    def contraction(self, start):
        lead, dims = (f"{self.batch}x", "b,") if self.batch else ("", "")
        left, right = ((f"{self.k}x{self.m}" if self.transposes[0] == "t" else f"{self.m}x{self.k}"),
                       (f"{self.n}x{self.k}" if self.transposes[1] == "t" else f"{self.k}x{self.n}"))
        self.types = f"tensor<{lead}{left}x{self.dtype}>", f"tensor<{lead}{right}x{self.dtype}>", f"tensor<{lead}{self.m}x{self.n}xf32>"
        maps = ", ".join(f"affine_map<({dims}m,n,k)->({dims}{access[1:-1]})>"
                         for access in (MAPS[0][self.transposes[0]], MAPS[1][self.transposes[1]], "(m,n)"))
        return (f"  %r = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {self.types[0]}, {self.types[1]}) "
                f"outs({start} : {self.types[2]}) -> {self.types[2]}\n")

    def finish(self):
        """Returns the code after the contraction, further arguments, the results and their types, separated by commas."""
        shape, wide = f"{self.m}x{self.n}", f"tensor<{self.m}x{self.n}xf32>"
        other, result = f"tensor<{shape}x{self.dtype}>", f"tensor<{shape}x{self.out}>"
        cast = f"    %q = arith.truncf %y : f32 to {self.out}\n    linalg.yield %q : {self.out}" if self.out != "f32" else "    linalg.yield %y : f32"
        widen = lambda name, value: f"    %{name} = arith.extf %{value} : {self.dtype} to f32\n" if self.dtype != "f32" else f"    %zero_{name} = arith.constant -0.0 : f32\n    %{name} = arith.addf %{value}, %zero_{name} : f32\n"
        if self.epilogue in ("none", "accumulate"):
            if self.out == "f32":
                return "", [], "%r", f"tensor<{f'{self.batch}x' if self.batch else ''}{shape}xf32>"
            return generic("y", ["%r"], [wide], ["(i,j)"], f"    %q = arith.truncf %x0 : f32 to {self.out}\n    linalg.yield %q : {self.out}", self.out, shape), [], "%y", result
        bias = "    %x = arith.addf %x0, %x1 : f32\n"
        if self.epilogue == "bias":
            return generic("y", ["%r", "%bias"], [wide, f"tensor<{self.n}xf32>"], ["(i,j)", "(j)"], bias.replace("%x =", "%y =") + cast, self.out, shape), [f"%bias: tensor<{self.n}xf32>"], "%y", result
        if self.epilogue == "gelu":
            return generic("y", ["%r", "%bias"], [wide, f"tensor<{self.n}xf32>"], ["(i,j)", "(j)"], bias + GELU + cast, self.out, shape), [f"%bias: tensor<{self.n}xf32>"], "%y", result
        if self.epilogue == "gelu_grad":
            body = widen("x", "x1") + GELU_GRAD.replace("%y =", "%g =") + "    %y = arith.mulf %x0, %g : f32\n" + cast
            return generic("y", ["%r", "%before"], [wide, other], ["(i,j)", "(i,j)"], body, self.out, shape), [f"%before: {other}"], "%y", result
        if self.epilogue == "residual":
            body = bias + widen("w", "x2") + "    %y = arith.addf %x, %w : f32\n" + cast
            return (generic("y", ["%r", "%bias", "%other"], [wide, f"tensor<{self.n}xf32>", other], ["(i,j)", "(j)", "(i,j)"], body, self.out, shape),
                    [f"%bias: tensor<{self.n}xf32>", f"%other: {other}"], "%y", result)
        if self.epilogue in GATES:
            return self.finish_gate(shape, wide, other, cast, widen)
        if self.epilogue == "rows": # a factor for each row, and the number of the column
            body = "    %j = linalg.index 1 : index\n    %i = arith.index_cast %j : index to i32\n    %f = arith.sitofp %i : i32 to f32\n    %x = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %x, %f : f32\n" + cast
            return generic("y", ["%r", "%scale"], [wide, f"tensor<{self.m}xf32>"], ["(i,j)", "(i)"], body, self.out, shape), [f"%scale: tensor<{self.m}xf32>"], "%y", result
        # The other inputs are transposed.
        body = bias.replace("%x =", "%y =") + cast
        return generic("y", ["%r", "%other"], [wide, f"tensor<{self.n}x{self.m}xf32>"], ["(i,j)", "(j,i)"], body, self.out, shape), [f"%other: tensor<{self.n}x{self.m}xf32>"], "%y", result

    def finish_gate(self, shape, wide, other, cast, widen):
        """Rounds r to DTYPE first, as a model does. swiglu: silu(gate) r, and r; swiglu_grad: r up silu'(gate), and r silu(gate)."""
        same, both = ["(i,j)"], f"{other}, {other}"
        code = generic("h", ["%r"], [wide], same, f"    %q = arith.truncf %x0 : f32 to {self.dtype}\n    linalg.yield %q : {self.dtype}", self.dtype, shape)
        product = widen("x", "x1") + SILU + widen("w", "x0") + "    %y = arith.mulf %s, %w : f32\n" + cast
        code += generic("p", ["%h", "%gate"], [other, other], same * 2, product, self.dtype, shape)
        if self.epilogue == "swiglu":
            return code, [f"%gate: {other}"], "%h, %p", both
        slope = widen("x", "x1") + widen("v", "x0") + widen("u", "x2") + "    %w = arith.mulf %v, %u : f32\n" + SILU_GRAD + cast
        code += generic("g", ["%h", "%gate", "%up"], [other] * 3, same * 3, slope, self.dtype, shape)
        return code, [f"%gate: {other}", f"%up: {other}"], "%g, %p", both

    def sum(self, accumulates):
        """Returns the code of the sum of a factor, its argument and its type."""
        if not self.summed:
            return "", [], ""
        isLeft = self.summed == "a"
        access, factor, size = (MAPS[0][self.transposes[0]], self.types[0], self.m) if isLeft else (MAPS[1][self.transposes[1]], self.types[1], self.n)
        kept, result = "m" if isLeft else "n", f"tensor<{size}xf32>"
        start = "%s" if accumulates else "%zs"
        fill = "" if accumulates else f"  %zeros = arith.constant 0.0 : f32\n  %es = tensor.empty() : {result}\n  %zs = linalg.fill ins(%zeros : f32) outs(%es : {result}) -> {result}\n"
        return fill + f"""  %sum = linalg.generic {{indexing_maps = [affine_map<({kept},k)->{access}>, affine_map<({kept},k)->({kept})>], iterator_types = ["parallel", "reduction"]}} ins(%{self.summed} : {factor}) outs({start} : {result}) {{
  ^bb0(%x: {self.dtype}, %o: f32):
    %w = arith.extf %x : {self.dtype} to f32
    %p = arith.addf %o, %w : f32
    linalg.yield %p : f32
  }} -> {result}
""", [f"%s: {result} {{fsdp.{'inout' if accumulates else 'out'} = 1 : i64}}"], result

    def write(self):
        accumulates = self.epilogue == "accumulate"
        inplace = accumulates and self.out == "f32"
        contraction = self.contraction("%c" if inplace else "%acc" if accumulates else "%z")
        code, more, value, result = self.finish()
        bits = " {fsdp.bits = 11 : i64}" if TF32 and self.dtype == "f32" else ""
        arguments = [f"%a: {self.types[0]}{bits}", f"%b: {self.types[1]}{bits}"] + more
        if accumulates and not inplace:
            arguments.append(f"%acc: {self.types[2]}")
        for number, each in enumerate(result.split(", ")):
            arguments.append(f"%c{number or ''}: {each} {{fsdp.{'inout' if inplace else 'out'} = {number} : i64}}")
        sumCode, sumArguments, sumType = self.sum(accumulates)
        code, arguments = code + sumCode, arguments + sumArguments
        results, values = (f"({result}, {sumType})", f"{value}, %sum : {result}, {sumType}") if self.summed else (f"({result})", f"{value} : {result}")
        tile = f', fsdp.gemm_tile = "{self.tile}"' if self.tile else ""
        fill = "" if accumulates else f"""  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {self.types[2]}
  %z = linalg.fill ins(%zero : f32) outs(%e : {self.types[2]}) -> {self.types[2]}
"""
        print(f"""func.func private @{self.name}({", ".join(arguments)}) -> {results} attributes {{fsdp.kernel, fsdp.kind = "contract"{tile}}} {{
{fill}{contraction}{code}  return {values}
}}
""")


def tiles_of(dtype):
    return TILES[32 if dtype == "f32" else 16]


def short(dtype):
    for transposes, epilogue in zip(TRANSPOSES * 2, EPILOGUES):
        yield Kernel(dtype, transposes, 72, 80, 48, epilogue, tile=tiles_of(dtype)[-3])
    yield Kernel(dtype, "nt", 67, 45, 33, "residual", tile=tiles_of(dtype)[-1])
    yield Kernel(dtype, "tn", 37, 45, 70, "gelu", "f32", tile=tiles_of(dtype)[-1])
    yield Kernel(dtype, "nn", 40, 36, 28, "none", "f32", batch=3)
    yield Kernel(dtype, "tn", 40, 72, 530, "bias", tile=tiles_of(dtype)[-1] + "/3")


def full(dtype):
    for transposes, (m, n, k), epilogue in itertools.product(TRANSPOSES, [(1, 1, 1), (72, 136, 64), (67, 45, 33), (130, 50, 20), (33, 66, 130)], EPILOGUES):
        for out in sorted({dtype, "f32"}):
            yield Kernel(dtype, transposes, m, n, k, epilogue, out)
    for transposes, batch in itertools.product(TRANSPOSES, (2, 5)):
        yield Kernel(dtype, transposes, 40, 36, 28, "none", "f32", batch)
        yield Kernel(dtype, transposes, 40, 36, 28, "accumulate", "f32", batch)


def tiles(dtype):
    for tile, transposes in itertools.product(tiles_of(dtype), TRANSPOSES):
        for m, n, k in ((256, 512, 160), (200, 328, 136), (131, 259, 65)):
            yield Kernel(dtype, transposes, m, n, k, "residual", tile=tile)


def splits(dtype):
    for transposes, parts, epilogue in itertools.product(TRANSPOSES, (2, 3, 16), ("none", "accumulate", "gelu")):
        yield Kernel(dtype, transposes, 67, 90, 700, epilogue, tile=f"{tiles_of(dtype)[-1]}/{parts}")


def table(dtype):
    for tile, transposes in itertools.product(tiles_of(dtype), TRANSPOSES):
        yield Kernel(dtype, transposes, 2048, 2048, 2048, tile=tile)
    for epilogue in ("accumulate", "gelu", "gelu_grad", "residual"):
        yield Kernel(dtype, "nt", 2048, 2048, 2048, epilogue, tile=tiles_of(dtype)[0])
    yield Kernel(dtype, "tn", 2048, 2048, 2048, tile=tiles_of(dtype)[-1] + "/4")
    yield Kernel(dtype, "nt", 2000, 2000, 2000, "residual", tile=tiles_of(dtype)[0])
    yield Kernel(dtype, "nt", 1999, 1999, 1999, "residual", tile=tiles_of(dtype)[0])


def groups(dtype):
    """Kernels for warpgroups: each transpose and epilogue, more tiles than a round, a batch, tails."""
    for tile, (transposes, epilogue) in zip(["wg128x128", "wg128x256", "wg128x64", "wg128x256c2", "wg128x128c2"] * 2, zip(TRANSPOSES * 2, EPILOGUES)):
        yield Kernel(dtype, transposes, 192, 296, 136, epilogue, tile=tile)
    yield Kernel(dtype, "nn", 136, 128, 72, "none", "f32", batch=3, tile="wg128x128")
    yield Kernel(dtype, "tn", 296, 520, 200, "none", tile="wg128x256c2")
    yield Kernel(dtype, "nt", 1600, 1552, 16, "residual", tile="wg128x128")
    for epilogue, out in (("swapped", dtype), ("accumulate", "f32"), ("residual", dtype)):  # the last block of a cluster has no rows
        yield Kernel(dtype, "nt", 384, 264, 72, epilogue, out, tile="wg128x256c2")
    yield Kernel(dtype, "nt", 1600, 1544, 16, "residual", "f32", tile="wg128x64")  # boxes of more than a round in several stages
    yield Kernel(dtype, "nn", 1160, 3080, 16, "accumulate", "f32", tile="wg128x192")
    for transposes in ("nn", "nt"):  # more than a round, an odd number of panels
        yield Kernel(dtype, transposes, 1152, 3072, 16, "none", tile="wg128x192")
    for (tile, parts), epilogue in zip((("wg128x128", 4), ("wg128x192", 2), ("wg128x256c2", 2), ("wg128x128c2", 4)), EPILOGUES[::2]):
        yield Kernel(dtype, "tn", 200, 328, 512, epilogue, tile=f"{tile}/{parts}")
    yield Kernel(dtype, "nt", 520, 520, 256, "accumulate", "f32", tile="wg128x64/4")  # more parts than a round
    yield from uneven(dtype)
    if dtype != "f32":  # several results, whose boxes are written together
        yield Kernel(dtype, "nn", 264, 520, 456, "swiglu", tile="wg128x256c2")
        yield Kernel(dtype, "nt", 200, 328, 136, "swiglu_grad", tile="wg128x256c2")
        yield Kernel(dtype, "nt", 3400, 648, 16, "swiglu_grad", tile="wg128x64")


def uneven(dtype):
    """k in unequal parts: a helper for each tile of k, for parts of tiles, for several tiles; in clusters; in a batch; in several rows of groups."""
    yield Kernel(dtype, "tn", 200, 328, 512, "none", tile="wg128x128/1+5")
    yield Kernel(dtype, "tn", 1032, 392, 512, "gelu", tile="wg128x64/2+3")
    yield Kernel(dtype, "nt", 1160, 584, 328, "accumulate", "f32", tile="wg128x64/1+3")
    yield Kernel(dtype, "nn", 520, 1288, 456, "residual", tile="wg128x256c2/3+2")
    yield Kernel(dtype, "tt", 264, 392, 576, "none", "f32", batch=9, tile="wg128x128/1+6")


def sums(dtype):
    """Sums of both factors: each tile, tails, k in equal and unequal parts, more tiles than a round, and tiles that the plan chooses."""
    for tile, summed in itertools.product(GROUP_TILES, "ab"):
        yield Kernel(dtype, "tn", 392, 328, 200, out="f32", tile=tile, summed=summed)
        for parts, epilogue in ((4, "none"), ("1+5", "accumulate")):
            yield Kernel(dtype, "tn", 392, 328, 512, epilogue, "f32", tile=f"{tile}/{parts}", summed=summed)
    yield Kernel(dtype, "tt", 200, 328, 136, "accumulate", "f32", tile="wg128x128", summed="a")
    yield Kernel(dtype, "nn", 200, 328, 136, "accumulate", "f32", tile="wg128x128", summed="b")
    yield Kernel(dtype, "tn", 1600, 1552, 16, out="f32", tile="wg128x128", summed="b")
    for summed in "ab":
        yield Kernel(dtype, "tn", 264, 392, 1160, out="f32", summed=summed)


def sumtable(dtype):
    for tile, parts in itertools.product(GROUP_TILES, ("", "/4", "/1+24")):
        yield Kernel(dtype, "tn", 768, 768, 8192, "accumulate", "f32", tile=tile + parts, summed="b")
    yield Kernel(dtype, "tn", 768, 3072, 8192, "accumulate", "f32", tile="wg128x256", summed="a")


def groupgrid(dtype):
    """Each tile with each transpose and epilogue, and at other sizes; a batch."""
    for tile, transposes in itertools.product(GROUP_TILES, TRANSPOSES):
        for epilogue in EPILOGUES:
            for out in sorted({dtype, "f32"}):
                yield Kernel(dtype, transposes, 200, 328, 136, epilogue, out, tile=tile)
        for m, n, k in ((8, 8, 8), (264, 520, 456), (136, 136, 1032)):
            yield Kernel(dtype, transposes, m, n, k, tile=tile)
        yield Kernel(dtype, transposes, 264, 264, 72, "none", "f32", batch=3, tile=tile)
        for parts, epilogue in itertools.product((2, 4, "1+5", "3+2"), EPILOGUES):
            yield Kernel(dtype, transposes, 200, 328, 512, epilogue, tile=f"{tile}/{parts}")


def gates(dtype):
    """Epilogues with two results: each tile with each transpose, tails, odd numbers of tiles and more tiles than a round, k in parts."""
    for epilogue, tile, transposes in itertools.product(GATES, GROUP_TILES, TRANSPOSES):
        yield Kernel(dtype, transposes, 200, 328, 136, epilogue, tile=tile)
    for epilogue in GATES:
        yield Kernel(dtype, "nn", 264, 520, 456, epilogue, tile="wg128x256c2")
        yield Kernel(dtype, "nt", 3400, 648, 16, epilogue, tile="wg128x64")
        yield Kernel(dtype, "nn", 1160, 3080, 16, epilogue, tile="wg128x192")
        yield Kernel(dtype, "nt", 200, 328, 512, epilogue, tile="wg128x128/2")
        yield Kernel(dtype, "nt", 200, 328, 136, epilogue, tile=tiles_of(dtype)[0])


def faulty(dtype):
    """A kernel that uses every mechanism: reused stages, clusters, boxes of the result."""
    yield Kernel(dtype, "nt", 264, 264, 456, tile="wg128x256c2")


def faultyboxes(dtype):
    """A kernel whose epilogue reads boxes, with more tiles than a round."""
    yield Kernel(dtype, "nt", 3400, 648, 16, "accumulate", "f32", tile="wg128x64")


GRADIENTS = [(768, 3072), (3072, 768), (768, 768), (768, 2304)]


def gradients(dtype):
    """Gradients of GPT-2's weights: of k tokens. The plan chooses tiles and parts."""
    for (m, n), k, out in itertools.product(GRADIENTS, (1024, 2048, 4096, 8192, 16384), (dtype, "f32")):
        yield Kernel(dtype, "tn", m, n, k, out=out)


def equalparts(dtype):
    """The kernels of gradients() with each tile and each number of equal parts, of 512 k or more."""
    for kernel, tile, parts in itertools.product(gradients(dtype), GROUP_TILES, (1, 2, 3, 4, 6, 8, 12, 16)):
        if kernel.k % (64 * parts) == 0 and (parts == 1 or kernel.k >= 512 * parts):
            yield Kernel(dtype, "tn", kernel.m, kernel.n, kernel.k, out=kernel.out, tile=f"{tile}/{parts}")


def grouptable(dtype, times=1):
    for tile, transposes in itertools.product(GROUP_TILES, TRANSPOSES):
        yield Kernel(dtype, transposes, 4096, 4096, 4096 * times, tile=tile)
    for epilogue in ("accumulate", "gelu", "gelu_grad", "residual"):
        yield Kernel(dtype, "nt", 4096, 4096, 4096 * times, epilogue, tile="wg128x256")
    yield Kernel(dtype, "nt", 4000, 4000, 4000 * times, "residual", tile="wg128x256")
    for tile in GROUP_TILES:
        yield Kernel(dtype, "tn", 768, 768, 8192 * times, "accumulate", "f32", tile=tile + "/4")
        yield Kernel(dtype, "tn", 768, 768, 8192 * times, "accumulate", "f32", tile=tile + f"/1+{24 * times}")


def rates(dtype):
    """Products of a Llama of 1 B parameters for 8,192 tokens, with epilogues; a large one."""
    for epilogue, n in itertools.product(("none", "bias", "gelu", "residual", "gelu_grad", "accumulate"), (2048, 8192)):
        for out in sorted({dtype, "f32"}):
            yield Kernel(dtype, "nt", 8192, n, 2048, epilogue, out)
    for epilogue in GATES:
        yield Kernel(dtype, "nt", 8192, 8192, 2048, epilogue)
    yield Kernel(dtype, "nt", 8192, 8192, 8192)


def work(dtype):
    """Each epilogue at one size and tile."""
    for epilogue, out in list(itertools.product(EPILOGUES[:6], sorted({dtype, "f32"}))) + [(gate, dtype) for gate in GATES]:
        yield Kernel(dtype, "nt", 8192, 8192, 2048, epilogue, out, tile="wg128x256c2")


def narrow(dtype):
    """The projection to the keys of a Llama of 1 B parameters with four kv heads, and the gradient of its weight."""
    yield Kernel(dtype, "nt", 2048, 256, 2048)
    yield Kernel(dtype, "tn", 256, 2048, 2048, out="f32")


def training(dtype):
    """A product of a layer, the gradient of its input and that of its weight."""
    for transposes in ("nt", "nn", "tn"):
        yield Kernel(dtype, transposes, 4096, 4096, 8192)
        yield Kernel(dtype, transposes, 8192, 2048, 2048)


def grouploops(dtype):
    return grouptable(dtype, times=16)


for dtype in sys.argv[2:] if __name__ == "__main__" else []:
    for kernel in {"groups": groups, "groupgrid": groupgrid, "gates": gates, "faulty": faulty, "faultyboxes": faultyboxes, "uneven": uneven, "sums": sums, "sumtable": sumtable, "gradients": gradients, "equalparts": equalparts, "grouptable": grouptable, "grouploops": grouploops, "rates": rates, "work": work, "narrow": narrow, "training": training, "short": short, "full": full, "tiles": tiles, "splits": splits, "table": table}[sys.argv[1]](dtype.removeprefix("t")):
        kernel.write()
