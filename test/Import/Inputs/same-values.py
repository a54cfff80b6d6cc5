#!/usr/bin/env python3
"""Runs a module before and after Import on the same numbers and compares the losses.

    same-values.py MODEL.mlir [--tolerance=1e-5] [--buffer=N] [fsdp-import options...]

Both sides go through upstream loops and libm. The fsdp ops of the imported side are
written out here as plain generics. Where the model returns logits (attach-loss), the same
cross-entropy is put behind both. --buffer=N: argument N of the source is a causal mask."""
import re
import subprocess
import sys

OPT = ["fsdp-opt", "--allow-unregistered-dialect"]
LOWER = (
    "builtin.module(convert-elementwise-to-linalg,"
    "empty-tensor-to-alloc-tensor,one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},cse,canonicalize,buffer-deallocation-pipeline,"
    "convert-bufferization-to-memref,convert-linalg-to-loops,fold-memref-alias-ops,lower-affine,convert-scf-to-cf,"
    "expand-strided-metadata,lower-affine,convert-math-to-llvm,convert-math-to-libm,convert-to-llvm,"
    "reconcile-unrealized-casts)"
)


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:300]}\n{done.stderr[:3000]}")
    return done.stdout


def split(text):
    """Splits text at top-level commas."""
    parts, depth, current = [], 0, ""
    for c in text:
        depth += c in "<{(["
        depth -= c in ">})]"
        if c == "," and not depth:
            parts.append(current)
            current = ""
        else:
            current += c
    return [p.strip() for p in parts + [current] if p.strip()]


def signature(text):
    """Returns (name, [argument text], [result types]) of the public function."""
    start = re.search(r"func\.func (?:public )?@([\w$.]+)\(", text)
    depth, end = 1, start.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    results = re.match(r"\s*->\s*\(?([^{\n]*?)\)?\s*(?:\{|attributes)", text[end:])
    return start.group(1), split(text[start.end() : end - 1]), split(results.group(1))


def shape(type_text):
    """Returns ([sizes], element) of tensor<..>."""
    *sizes, element = type_text[len("tensor<") : -1].split("x")
    return [int(s) for s in sizes], element


def dims(n):
    return ", ".join(f"d{i}" for i in range(n))


def affine(n, results):
    return f"affine_map<({dims(n)}) -> ({', '.join(results)})>"


class Writer:
    """Writes plain generics for ops that upstream does not lower."""

    def __init__(self):
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def generic(self, loops, ins, out, body, reductions=(), init=None):
        """ins: [(value, type, [map results])], out: (type, [map results])."""
        empty, result = self.fresh(), self.fresh()
        sizes, element = shape(out[0])
        lines = [f"{empty} = tensor.empty() : {out[0]}"]
        if init is not None:
            c, filled = self.fresh(), self.fresh()
            lines += [f"{c} = arith.constant {init} : {element}",
                      f"{filled} = linalg.fill ins({c} : {element}) outs({empty} : {out[0]}) -> {out[0]}"]
            empty = filled
        maps = ", ".join([affine(loops, m) for _, _, m in ins] + [affine(loops, out[1])])
        kinds = ", ".join('"reduction"' if d in reductions else '"parallel"' for d in range(loops))
        inputs = f"ins({', '.join(v for v, _, _ in ins)} : {', '.join(t for _, t, _ in ins)})" if ins else ""
        args = ", ".join([f"%a{i}: {shape(t)[1]}" for i, (_, t, _) in enumerate(ins)] + [f"%o: {element}"])
        lines += [f"{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {inputs} "
                  f"outs({empty} : {out[0]}) {{", f"^bb0({args}):", body, f"}} -> {out[0]}"]
        return result, lines

    def gather(self, table, ids, table_type, ids_type, out_type):
        rank = len(shape(out_type)[0])
        all_dims = [f"d{i}" for i in range(rank)]
        integer = shape(ids_type)[1]
        body = (f"%p = arith.index_cast %a0 : {integer} to index\n%c = linalg.index {rank - 1} : index\n"
                f"%e = tensor.extract {table}[%p, %c] : {table_type}\nlinalg.yield %e : {shape(out_type)[1]}")
        return self.generic(rank, [(ids, ids_type, all_dims[:-1])], (out_type, all_dims), body)

    def rows(self, x, x_type, dim):
        """max over `dim`, and exp(x - max)."""
        sizes, e = shape(x_type)
        n = len(sizes)
        every = [f"d{i}" for i in range(n)]
        kept = [d for i, d in enumerate(every) if i != dim]
        row_type = f"tensor<{''.join(f'{s}x' for i, s in enumerate(sizes) if i != dim)}{e}>"
        lowest = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}[e]
        top, lines = self.generic(n, [(x, x_type, every)], (row_type, kept),
                                  f"%m = arith.maximumf %a0, %o : {e}\nlinalg.yield %m : {e}", (dim,), lowest)
        exps, more = self.generic(n, [(x, x_type, every), (top, row_type, kept)], (x_type, every),
                                  f"%s = arith.subf %a0, %a1 : {e}\n%x = math.exp %s : {e}\nlinalg.yield %x : {e}")
        total, last = self.generic(n, [(exps, x_type, every)], (row_type, kept),
                                   f"%s = arith.addf %a0, %o : {e}\nlinalg.yield %s : {e}", (dim,), "0.0")
        return top, exps, total, row_type, every, kept, lines + more + last

    def softmax(self, x, x_type, dim):
        top, exps, total, row_type, every, kept, lines = self.rows(x, x_type, dim)
        e = shape(x_type)[1]
        y, more = self.generic(len(every), [(exps, x_type, every), (total, row_type, kept)], (x_type, every),
                               f"%q = arith.divf %a0, %a1 : {e}\nlinalg.yield %q : {e}")
        return y, lines + more

    def cross_entropy(self, x, t, x_type, t_type, ignore):
        top, _, total, row_type, every, kept, lines = self.rows(x, x_type, 1)
        e, integer = shape(x_type)[1], shape(t_type)[1]
        body = (f"%r = linalg.index 0 : index\n%p0 = arith.index_cast %a0 : {integer} to index\n"
                f"%i = arith.constant {ignore if ignore is not None else -1000} : {integer}\n%z = arith.constant 0 : index\n"
                f"%skip = arith.cmpi eq, %a0, %i : {integer}\n%p = arith.select %skip, %z, %p0 : index\n"
                f"%e = tensor.extract {x}[%r, %p] : {x_type}\n%l = math.log %a1 : {e}\n%s = arith.addf %l, %a2 : {e}\n"
                f"%d = arith.subf %s, %e : {e}\n%n = arith.constant 0.0 : {e}\n%v = arith.select %skip, %n, %d : {e}\n"
                f"linalg.yield %v : {e}")
        each, more = self.generic(1, [(t, t_type, ["d0"]), (total, row_type, ["d0"]), (top, row_type, ["d0"])],
                                  (row_type, ["d0"]), body)
        body = (f"%i = arith.constant {ignore if ignore is not None else -1000} : {integer}\n"
                f"%one = arith.constant 1.0 : {e}\n%n = arith.constant 0.0 : {e}\n"
                f"%skip = arith.cmpi eq, %a0, %i : {integer}\n%v = arith.select %skip, %n, %one : {e}\n"
                f"%s = arith.addf %o, %v : {e}\nlinalg.yield %s : {e}")
        count, last = self.generic(1, [(t, t_type, ["d0"])], (f"tensor<{e}>", []), body, (0,), "0.0")
        body = f"%s = arith.addf %a0, %o : {e}\nlinalg.yield %s : {e}"
        summed, then = self.generic(1, [(each, row_type, ["d0"])], (f"tensor<{e}>", []), body, (0,), "0.0")
        mean, end = self.generic(0, [(summed, f"tensor<{e}>", []), (count, f"tensor<{e}>", [])], (f"tensor<{e}>", []),
                                 f"%q = arith.divf %a0, %a1 : {e}\nlinalg.yield %q : {e}")
        return mean, lines + more + last + then + end


    def attention(self, q, k, v, scale, captures, types, functions):
        """functions: {name: ([arguments], [lines], yielded)}, indices after the score."""
        qt, kt, vt, ot = types
        (b, h, m, d), e = shape(qt)
        n, g = shape(kt)[0][2], h // shape(kt)[0][1]
        dv = shape(vt)[0][3]
        st, lines = f"tensor<{b}x{h}x{m}x{n}x{e}>", []

        def head(value, value_type, length):  # one kv head per query head
            one = f"%h{self.count}"
            body = ("%b = linalg.index 0 : index\n%h = linalg.index 1 : index\n%m = linalg.index 2 : index\n"
                    f"%d = linalg.index 3 : index\n%g = arith.constant {g} : index\n{one} = arith.divui %h, %g : index\n"
                    f"%x = tensor.extract {value}[%b, {one}, %m, %d] : {value_type}\nlinalg.yield %x : {e}")
            wide = f"tensor<{b}x{h}x{length}x{shape(value_type)[0][3]}x{e}>"
            result, more = self.generic(4, [], (wide, ["d0", "d1", "d2", "d3"]), body)
            lines.extend(more)
            return result, wide

        def product(x, xt, xd, y, yt, yd, ot, od, sums):
            result, more = self.generic(5, [(x, xt, xd), (y, yt, yd)], (ot, od),
                                        f"%p = arith.mulf %a0, %a1 : {e}\n%s = arith.addf %p, %o : {e}\nlinalg.yield %s : {e}",
                                        (sums,), "0.0")
            lines.extend(more)
            return result

        (kk, kkt), (vv, vvt) = head(k, kt, n), head(v, vt, n)
        x = product(q, qt, ["d0", "d1", "d2", "d4"], kk, kkt, ["d0", "d1", "d3", "d4"], st, ["d0", "d1", "d2", "d3"], 4)
        body = [f"%at{i} = linalg.index {i} : index" for i in range(4)]
        body += [f"%scale = arith.constant {scale} : {e}", f"%scaled = arith.mulf %a0, %scale : {e}"]
        score = "%scaled"
        if "score_mod" in functions:
            names, inner_lines, score = functions["score_mod"]
            text = "\n".join(inner_lines + [score])
            for old, new in zip(names, ["%scaled"] + [f"%at{i}" for i in range(4)] + captures):
                text = re.sub(re.escape(old) + r"(?![\w])", new, text)
            *inner_lines, score = text.split("\n")
            body += inner_lines
        body += [f"%lowest = arith.constant {'0xFF800000' if e == 'f32' else '0xFFF0000000000000'} : {e}"]
        if "mask_mod" in functions:
            names, inner_lines, keep = functions["mask_mod"]
            text = re.sub(r"%(\w)", r"%mask_\1", "\n".join(inner_lines + [keep]))
            for old, new in zip(names, [f"%at{i}" for i in range(4)] + captures):
                text = re.sub(re.escape(old.replace("%", "%mask_")) + r"(?![\w])", new, text)
            *inner_lines, keep = text.split("\n")
            body += inner_lines + [f"%kept = arith.select {keep}, {score}, %lowest : {e}"]
            score = "%kept"
        s, more = self.generic(4, [(x, st, ["d0", "d1", "d2", "d3"])], (st, ["d0", "d1", "d2", "d3"]),
                               "\n".join(body + [f"linalg.yield {score} : {e}"]))
        lines += more
        p, more = self.softmax(s, st, 3)
        lines += more
        # A row without a key is 0, not NaN.
        p, more = self.generic(4, [(p, st, ["d0", "d1", "d2", "d3"])], (st, ["d0", "d1", "d2", "d3"]),
                               f"%c = arith.cmpf uno, %a0, %a0 : {e}\n%z = arith.constant 0.0 : {e}\n"
                               f"%y = arith.select %c, %z, %a0 : {e}\nlinalg.yield %y : {e}")
        lines += more
        return product(p, st, ["d0", "d1", "d2", "d4"], vv, vvt, ["d0", "d1", "d4", "d3"], ot, ["d0", "d1", "d2", "d3"], 4), lines


def parse_attention(first, rest):
    """Returns operands and functions of an attention op; `rest` has the lines after it."""
    m = re.match(r"\s*(%\S+?):2 = fsdp.attention (\S+), (\S+), (\S+) scale (\S+)(?: capture\((.*?) : .*?\))? : "
                 r"(\S+), (\S+), (\S+) -> (\S+), (\S+)\s*(.*)", first)
    functions, head = {}, m[12]
    while head:
        name, arguments = re.match(r"(\w+)\((.*)\) \{", head).groups()
        body = []
        while not (line := next(rest).strip()).startswith("}"):
            body.append(line)
        yielded = re.match(r"fsdp.yield (\S+) :", body.pop())[1]
        functions[name] = ([a.split(":")[0].strip() for a in split(arguments)], body, yielded)
        head = line[1:].strip()
    return m, split(m[6]) if m[6] else [], functions


def expand(text, writer):
    """Expands the fsdp ops and softmax."""
    names, out = {}, []
    rest = iter(text.split("\n"))
    for line in rest:
        for old, new in names.items():
            line = re.sub(re.escape(old) + r"(?![\w])", new, line)
        m = re.match(r"\s*(%\S+) = fsdp.gather_rows (\S+)\[(\S+)\] : (\S+), (\S+) -> (\S+)", line)
        if m:
            value, lines = writer.gather(*m.groups()[1:])
        elif m := re.match(r"\s*(%\S+), %\S+ = fsdp.cross_entropy (\S+), (\S+?)(?: ignore (\S+))? : (\S+), (\S+) -> ", line):
            value, lines = writer.cross_entropy(m[2], m[3], m[5], m[6], m[4])
        elif m := re.match(r"\s*(%\S+) = linalg.softmax dimension\((\d+)\) ins\((\S+) : (\S+)\)", line):
            value, lines = writer.softmax(m[3], m[4], int(m[2]))
        elif ":2 = fsdp.attention " in line:
            m, captures, functions = parse_attention(line, rest)
            value, lines = writer.attention(m[2], m[3], m[4], m[5], captures, [m[7], m[8], m[9], m[10]], functions)
            names[m[1] + "#0"] = value
            out += lines
            continue
        else:
            out.append(line)
            continue
        names[m[1]] = value
        out += lines
    return "\n".join(out)


def inner(text, suffix):
    """Returns the functions of a module with maps and symbols renamed."""
    text = re.sub(r"#(map\d*)", rf"#\1{suffix}", text)
    text = re.sub(r"@([\w$.]+)", rf"@\1{suffix}", text)
    head = "\n".join(l for l in text.split("\n") if l.startswith("#"))
    tail = re.search(r"\{-#.*?#-\}", text, flags=re.S)
    text = text[: tail.start()] if tail else text
    body = re.sub(r"^.*?\bmodule(?:\s+@\S+)?(?:\s+attributes\s*\{[^}]*\})?\s*\{(.*)\}\s*$", r"\1", text, count=1, flags=re.S)
    return head, body, tail.group(0) if tail else ""


def filler(writer, type_text, k, limit, causal):
    sizes, e = shape(type_text)
    n = len(sizes)
    lines = ["%lin0 = arith.constant 0 : index"]
    for i, s in enumerate(sizes):
        lines += [f"%s{i} = arith.constant {s} : index", f"%m{i} = arith.muli %lin{i}, %s{i} : index",
                  f"%i{i} = linalg.index {i} : index", f"%lin{i + 1} = arith.addi %m{i}, %i{i} : index"]
    last = f"%lin{n}"
    if causal:
        lines += [f"%v = arith.cmpi sle, %i{n - 1}, %i{n - 2} : index"]
        if e != "i1":
            lines[-1] = lines[-1].replace("%v", "%b")
            lines += [f"%one = arith.constant 1.0 : {e}", f"%no = arith.constant 0.0 : {e}", f"%v = arith.select %b, %one, %no : {e}"]
    elif e.startswith("i"):
        lines += [f"%k = arith.constant {k} : index", "%seven = arith.constant 7 : index",
                  f"%x = arith.muli {last}, %seven : index", "%y = arith.addi %x, %k : index",
                  f"%l = arith.constant {limit} : index", "%r = arith.remsi %y, %l : index",
                  f"%v = arith.index_cast %r : index to {e}"]
    else:
        wide = "f64" if e == "f64" else "f32"
        lines += [f"%ii = arith.index_cast {last} : index to i64", f"%f = arith.sitofp %ii : i64 to {wide}",
                  f"%c = arith.constant 0.737 : {wide}", f"%p = arith.constant {k * 0.61:.6f} : {wide}",
                  f"%g = arith.mulf %f, %c : {wide}", f"%h = arith.addf %g, %p : {wide}", f"%s = math.sin %h : {wide}",
                  f"%scale = arith.constant 0.7 : {wide}", f"%{'v' if e == wide else 'w'} = arith.mulf %s, %scale : {wide}"]
        if e != wide:
            lines.append(f"%v = arith.truncf %w : {wide} to {e}")
    return writer.generic(n, [], (type_text, [f"d{i}" for i in range(n)]), "\n".join(lines + [f"linalg.yield %v : {e}"]))


def main():
    tolerance, causal, options = 1e-5, set(), []
    for arg in sys.argv[2:]:
        if arg.startswith("--tolerance="):
            tolerance = float(arg.split("=")[1])
        elif arg.startswith("--buffer="):
            causal.add(int(arg.split("=")[1]))
            options.append(f"buffers={arg.split('=')[1]}=causal")
        else:
            options.append(arg)
    source = re.sub(r"^\s*ml_program.*\n", "", open(sys.argv[1]).read(), flags=re.M)
    imported = run(OPT + [f"--fsdp-import={' '.join(options)}"], source)
    source = run(OPT + ["--inline", "--symbol-dce", "--tosa-to-linalg-pipeline"] if "tosa." in source
                 else OPT + ["--inline", "--symbol-dce"], source)
    writer = Writer()
    name, new_args, new_results = signature(imported)
    old_name, old_args, old_results = signature(source)
    types = lambda args: [re.match(r"%\S+:\s*(tensor<[^>]*>)", a)[1] for a in args]
    new_types, old_types = types(new_args), types(old_args)
    limits = [int(m[1]) if (m := re.search(r"fsdp.limit = (\d+)", a)) else 3 for a in new_args]

    lines, values = [], []
    kept = [i for i in range(len(old_types)) if i not in causal]
    for k, (t, limit) in enumerate(zip(new_types, limits)):
        value, made = filler(writer, t, k, limit, False)
        values.append(value)
        lines += made
    old_values = [None] * len(old_types)
    for j, i in enumerate(kept):
        old_values[i] = values[j]
    for i in causal:
        old_values[i], made = filler(writer, old_types[i], 0, 1, True)
        lines += made
    lines.append(f"%new = func.call @{name}_new({', '.join(values)}) : ({', '.join(new_types)}) -> {new_results[0]}")
    lines.append(f"%old0 = func.call @{old_name}_old({', '.join(old_values)}) : ({', '.join(old_types)}) -> {old_results[0]}")
    old = "%old0"
    if old_results[0] != new_results[0]:  # logits
        sizes, e = shape(old_results[0])
        rows, v = 1, sizes[-1]
        for s in sizes[:-1]:
            rows *= s
        flat, ids = f"tensor<{rows}x{v}x{e}>", f"tensor<{rows}xi64>"
        groups = f"[[{', '.join(map(str, range(len(sizes) - 1)))}], [{len(sizes) - 1}]]"
        lines += [f"%flat = tensor.collapse_shape %old0 {groups} : {old_results[0]} into {flat}",
                  f"%ids = tensor.collapse_shape {values[-1]} {groups.split('], [')[0] + ']]'} : {new_types[-1]} into {ids}"]
        old, made = writer.cross_entropy("%flat", "%ids", flat, ids, None)
        lines += made
    e = shape(new_results[0])[1]
    for v in ("%new", old):
        lines.append(f"{v}s = tensor.extract {v}[] : tensor<{e}>")
        lines.append(f"{v}d = arith.extf {v}s : f32 to f64\nvector.print {v}d : f64" if e == "f32" else f"vector.print {v}s : f64")
    head_new, body_new, _ = inner(expand(imported, writer), "_new")
    head_old, body_old, resources = inner(expand(source, writer), "_old")
    program = "\n".join([head_new, head_old, "module {", body_new, body_old, "func.func @main() {", *lines, "return", "}", "}",
                         resources])
    lowered = run(OPT + ["--pass-pipeline=" + LOWER], program)
    libs = run(["llvm-config", "--libdir"], "").strip()
    printed = run(["mlir-runner", "-e", "main", "-O0", "-entry-point-result=void",
                   f"-shared-libs={libs}/libmlir_runner_utils.so,{libs}/libmlir_c_runner_utils.so"], lowered)
    new, old = map(float, printed.split())
    error = abs(new - old) / max(abs(old), 1e-30)
    print(f"imported {new:.9g}, source {old:.9g}, relative difference {error:.2g}")
    sys.exit(0 if error <= tolerance else 1)


main()
