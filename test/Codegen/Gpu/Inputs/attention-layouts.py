"""Writes attention kernels, forward and backward, whose tensors of heads lie in tensors of projections, [batch, rows, heads · cols], for
fsdp-kernel-test. In half of the kernels, Q, K and V and their gradients lie in one tensor.

usage: attention-layouts.py few|all ATTENTION-GRID.py DTYPE
"""
import importlib.util
import sys

kind, path, dtype = sys.argv[1:]
spec = importlib.util.spec_from_file_location("grid", path)
grid = importlib.util.module_from_spec(spec)
spec.loader.exec_module(grid)

LOOPS = "affine_map<(b, h, i, d) -> (b, h, i, d)>", "affine_map<(b, h, i, d) -> (b, i, h, d)>"


def sizes(heads):
    return [int(n) for n in heads[7:-1].split("x")[:-1]]


def permute(out, value, source, result, maps):
    element = result[result.rindex("x") + 1:-1]
    return f"""  {out}_e = tensor.empty() : {result}
  {out} = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins({value} : {source}) outs({out}_e : {result}) {{
  ^bb0(%x: {element}, %y: {element}):
    linalg.yield %x : {element}
  }} -> {result}"""


class Inside(grid.Case):
    """An attention whose tensors of heads lie in tensors of projections."""

    def __init__(self, joined, *case):
        super().__init__(dtype, *case)
        self.joined = joined
        self.name += "_joined" if joined else "_apart"

    def split(self, heads):
        b, h, s, d = sizes(heads)
        return f"tensor<{b}x{s}x{h}x{d}x{self.dtype}>"

    def width(self, all):
        return sum(sizes(heads)[1] * sizes(heads)[3] for heads in all)

    def projection(self, all):
        b, _, s, _ = sizes(all[0])
        return f"tensor<{b}x{s}x{self.width(all)}x{self.dtype}>"

    def groups(self, names):
        """The tensors of heads by the tensors in which they lie."""
        qkv = [n for n in names if n in ("q", "k", "v")]
        return ([qkv] if self.joined and len(qkv) == 3 else [[n] for n in qkv]) + [[n] for n in names if n in ("o", "do")]

    def kernel(self, name, ins, outs, op):
        types, attributes = {n: t for n, t, _ in ins}, {n: a for n, _, a in ins}
        args, body = [], []
        for group in self.groups(list(types)):
            source, whole, at = "%arg_" + group[0], self.projection([types[n] for n in group]), 0
            args.append(f"{source}: {whole}{attributes[group[0]]}")
            for n in group:
                b, h, s, d = sizes(types[n])
                part = f"tensor<{b}x{s}x{h * d}x{self.dtype}>"
                body.append(f"  %{n}_s = tensor.extract_slice {source}[0, 0, {at}] [{b}, {s}, {h * d}] [1, 1, 1] : {whole} to {part}")
                body.append(f"  %{n}_x = tensor.expand_shape %{n}_s [[0], [1], [2, 3]] output_shape [{b}, {s}, {h}, {d}] : {part} into {self.split(types[n])}")
                body.append(permute(f"%in_{n}", f"%{n}_x", self.split(types[n]), types[n], LOOPS[::-1]))
                at += h * d
            if group[-1] == "v" and (self.joined or group == ["v"]):
                args += [f"%in_{n}: {t}{a}" for n, t, a in self.captures()]
        args += [f"%in_lse: {types['lse']}{attributes['lse']}"] if "lse" in types else []
        body.append("  " + ", ".join(f"%r{i}" for i in range(len(outs))) + f" = {op}")
        values, results = [], []
        for number, heads in enumerate(outs):
            if name.startswith("fwd_") and number == 1 or number > 2:
                values.append(f"%r{number}")
                results.append(heads)
                continue
            b, h, s, d = sizes(heads)
            flat = self.projection([heads])
            body.append(permute(f"%p{number}", f"%r{number}", heads, self.split(heads), LOOPS))
            body.append(f"  %c{number} = tensor.collapse_shape %p{number} [[0], [1], [2, 3]] : {self.split(heads)} into {flat}")
            values.append(f"%c{number}")
            results.append(flat)
        if self.joined and name.startswith("bwd_"):
            whole, at = self.projection(outs[:3]), 0
            body.append(f"  %all0 = tensor.empty() : {whole}")
            for number in range(3):
                b, s, width = sizes(results[number])
                body.append(f"  %all{number + 1} = tensor.insert_slice {values[number]} into %all{number}[0, 0, {at}] [{b}, {s}, {width}] [1, 1, 1] : {results[number]} into {whole}")
                at += width
            values, results = ["%all3"] + values[3:], [whole] + results[3:]
        args += [f"%out{i}: {t} {{fsdp.out = {i} : i64}}" for i, t in enumerate(results)]
        print(f"func.func private @{name}({', '.join(args)}) -> ({', '.join(results)}) attributes {{fsdp.kernel, fsdp.kind = \"attention\"}} {{")
        print("\n".join(body))
        print(f"  return {', '.join(values)} : {', '.join(results)}\n}}")


# Several batches and one, shared keys, one head, lengths that fill no block, every width of heads, functions and captured tensors.
CASES = [(True, 2, 4, 2, 150, 150, 64, 64, "none", "causal"), (False, 2, 2, 1, 70, 140, 40, 72, "alibi", "none")]
if kind == "all":
    CASES += [(True, 1, 4, 4, 200, 200, 64, 64), (True, 2, 1, 1, 150, 150, 64, 64, "rows", "window"), (False, 2, 4, 2, 130, 260, 128, 128, "none", "causal"),
              (False, 1, 2, 2, 130, 260, 128, 128), (False, 2, 1, 1, 130, 130, 64, 64, "none", "strict"), (False, 2, 2, 1, 70, 140, 256, 256, "softcap", "causal"),
              (True, 2, 2, 2, 70, 70, 192, 192, "all", "none", None, "dropout"), (False, 3, 2, 2, 64, 64, 16, 16, "columns", "documents")]
for case in CASES:
    inside = Inside(*case)
    inside.forward()
    inside.backward(False)
