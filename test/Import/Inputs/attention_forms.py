#!/usr/bin/env python3
"""Prints a model of one attention layer in one of the forms of exporters: attention_forms.py FORM.

The forms differ in the softmax (lse, lse-shifted, narrow, shifted), in a sink (sink, sink-first, sink-window, sink-table), or
in the mask (table, added, distance, alibi; masked by a finite number, with a key in every row)."""
import sys

form = sys.argv[1]
B, S, H, D, V = 2, 10, 4, 4, 23
C = H * D
lines, count = [], 0
ELEMENT = "bf16" if form == "narrow" else "f32"
LOW, INF = "-3.40282347E+38", {"f32": "0xFF800000", "bf16": "0xFF80"}


def fresh():
    global count
    count += 1
    return f"%v{count}"


def tensor(*shape, element="f32"):
    return f"tensor<{''.join(f'{s}x' for s in shape)}{element}>"


def filled(type_text, value):
    element = type_text[:-1].split("x")[-1].removeprefix("tensor<")
    c, e, f = fresh(), fresh(), fresh()
    lines.extend([f"{c} = arith.constant {value} : {element}", f"{e} = tensor.empty() : {type_text}",
                  f"{f} = linalg.fill ins({c} : {element}) outs({e} : {type_text}) -> {type_text}"])
    return f


def generic(dims, ins, out, body, sums="", init=None):
    """ins: [(value, type, dims)], out: (type, dims); body yields %y of %a0, %a1, .. and %o."""
    element = lambda t: t[:-1].split("x")[-1].removeprefix("tensor<")
    where = filled(out[0], init) if init is not None else fresh()
    if init is None:
        lines.append(f"{where} = tensor.empty() : {out[0]}")
    maps = ", ".join(f"affine_map<({', '.join(dims)}) -> ({', '.join(d)})>" for d in [i[2] for i in ins] + [out[1]])
    kinds = ", ".join('"reduction"' if d in sums else '"parallel"' for d in dims)
    result = fresh()
    inputs = f"ins({', '.join(v for v, _, _ in ins)} : {', '.join(t for _, t, _ in ins)}) " if ins else ""
    args = ", ".join([f"%a{n}: {element(t)}" for n, (_, t, _) in enumerate(ins)] + [f"%o: {element(out[0])}"])
    lines.extend([f"{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {inputs}"
                  f"outs({where} : {out[0]}) {{", f"^bb0({args}):", body, f"linalg.yield %y : {element(out[0])}", f"}} -> {out[0]}"])
    return result


def product(dims, ins, out, sums):
    e = ELEMENT if ELEMENT in ins[0][1] else "f32"
    return generic(dims, ins, out, f"%p = arith.mulf %a0, %a1 : {e}\n%y = arith.addf %o, %p : {e}", sums, "0.0")


def cast(value, shape, source, target):
    dims = "abcdefg"[: len(shape)]
    op = "truncf" if target == "bf16" else "extf"
    return generic(dims, [(value, tensor(*shape, element=source), dims)], (tensor(*shape, element=target), dims),
                   f"%y = arith.{op} %a0 : {source} to {target}")


def project(x, weight, outputs):
    return product("nco", [(x, tensor(B * S, C), "nc"), (weight, tensor(C, outputs), "co")], (tensor(B * S, outputs), "no"), "c")


def heads(weight):
    value, shape = fresh(), (B, S, H, D)
    flat = project("%x", weight, C)
    lines.append(f"{value} = tensor.expand_shape {flat} [[0, 1], [2, 3]] output_shape [{B}, {S}, {H}, {D}] : "
                 f"{tensor(B * S, C)} into {tensor(*shape)}")
    return cast(value, shape, "f32", "bf16") if ELEMENT == "bf16" else value


ELEMENTWISE = f"%c = arith.constant 1.5 : {ELEMENT}\n%s = arith.mulf %a0, %c : {ELEMENT}\n"
INDICES = ("%i = linalg.index 2 : index\n%j = linalg.index 3 : index\n%ii = arith.index_cast %i : index to i64\n"
           "%jj = arith.index_cast %j : index to i64\n")
CAUSAL = "%keep = arith.cmpi sle, %jj, %ii : i64\n"
WINDOW = CAUSAL.replace("%keep", "%past") + ("%w = arith.constant 3 : i64\n%b = arith.subi %ii, %w : i64\n"
                                             "%near = arith.cmpi sgt, %jj, %b : i64\n%keep = arith.andi %past, %near : i1\n")
SELECT = f"%low = arith.constant {LOW if ELEMENT == 'f32' else INF['bf16']} : {ELEMENT}\n%y = arith.select %keep, %s, %low : {ELEMENT}"


def mask(scores, type_text):
    ins, body = [(scores, type_text, "bhij")], ELEMENTWISE + INDICES + CAUSAL + SELECT
    if form in ("table", "sink-table"):  # causal within a window, as a table of bits
        rows = ", ".join("[" + ", ".join(str(int(i - 3 < j <= i)) for j in range(S)) + "]" for i in range(S))
        lines.append(f"%table = arith.constant dense<[{rows}]> : {tensor(S, S, element='i8')}")
        ins.append(("%table", tensor(S, S, element="i8"), "ij"))
        body = ELEMENTWISE + "%z = arith.constant 0 : i8\n%keep = arith.cmpi ne, %a1, %z : i8\n" + SELECT
    elif form == "added":  # the same as numbers that are added
        rows = ", ".join("[" + ", ".join("0.0" if i - 3 < j <= i else LOW for j in range(S)) + "]" for i in range(S))
        lines.append(f"%table = arith.constant dense<[{rows}]> : {tensor(S, S)}")
        ins.append(("%table", tensor(S, S), "ij"))
        body = ELEMENTWISE + "%y = arith.addf %s, %a1 : f32"
    elif form == "distance":
        body = (ELEMENTWISE + INDICES + "%d = arith.subi %ii, %jj : i64\n%far = math.absi %d : i64\n%w = arith.constant 2 : i64\n"
                "%keep = arith.cmpi sle, %far, %w : i64\n" + SELECT)
    elif form == "alibi":  # the mask is a number, of which another number is made
        body = (ELEMENTWISE + INDICES + CAUSAL.replace("%keep", "%past") + f"%lowest = arith.constant {LOW} : f32\n"
                "%zero = arith.constant 0.0 : f32\n%number = arith.select %past, %zero, %lowest : f32\n"
                "%is = arith.cmpf une, %number, %zero : f32\n%yes = arith.constant true\n%keep = arith.xori %is, %yes : i1\n"
                "%h = linalg.index 1 : index\n%hh = arith.index_cast %h : index to i64\n%slope = arith.sitofp %hh : i64 to f32\n"
                "%dist = arith.subi %jj, %ii : i64\n%df = arith.sitofp %dist : i64 to f32\n%bias = arith.mulf %df, %slope : f32\n"
                "%biased = arith.addf %s, %bias : f32\n" + SELECT.replace("%s,", "%biased,"))
    elif form == "sink-window":
        body = ELEMENTWISE + INDICES + WINDOW + SELECT
    return generic("bhij", ins, (type_text, "bhij"), body)


def softmax(x, keys):
    e = ELEMENT
    whole, row, wide = tensor(B, H, S, keys, element=e), tensor(B, H, S, element=e), tensor(B, H, S)
    top = generic("bhij", [(x, whole, "bhij")], (row, "bhi"), f"%y = arith.maximumf %o, %a0 : {e}", "j", INF[e])
    exps = generic("bhij", [(x, whole, "bhij"), (top, row, "bhi")], (whole, "bhij"),
                   f"%d = arith.subf %a0, %a1 : {e}\n%y = math.exp %d : {e}")
    term = "%w = arith.extf %a0 : bf16 to f32\n%y = arith.addf %o, %w : f32" if e == "bf16" else "%y = arith.addf %o, %a0 : f32"
    total = generic("bhij", [(exps, whole, "bhij")], (wide, "bhi"), term, "j", "0.0")
    total = cast(total, (B, H, S), "f32", "bf16") if e == "bf16" else total
    if form == "lse":
        lse = generic("bhi", [(top, row, "bhi"), (total, row, "bhi")], (row, "bhi"),
                      "%l = math.log %a1 : f32\n%y = arith.addf %a0, %l : f32")
        return generic("bhij", [(x, whole, "bhij"), (lse, row, "bhi")], (whole, "bhij"),
                       "%d = arith.subf %a0, %a1 : f32\n%y = math.exp %d : f32")
    if form == "lse-shifted":
        return generic("bhij", [(x, whole, "bhij"), (top, row, "bhi"), (total, row, "bhi")], (whole, "bhij"),
                       "%d = arith.subf %a0, %a1 : f32\n%l = math.log %a2 : f32\n%z = arith.subf %d, %l : f32\n"
                       "%y = math.exp %z : f32")
    return generic("bhij", [(exps, whole, "bhij"), (total, row, "bhi")], (whole, "bhij"), f"%y = arith.divf %a0, %a1 : {e}")


def shifted(x, keys):
    """x - max(x), before the softmax that does so as well."""
    whole, row = tensor(B, H, S, keys), tensor(B, H, S)
    top = generic("bhij", [(x, whole, "bhij")], (row, "bhi"), "%y = arith.maximumf %o, %a0 : f32", "j", INF["f32"])
    return generic("bhij", [(x, whole, "bhij"), (top, row, "bhi")], (whole, "bhij"), "%y = arith.subf %a0, %a1 : f32")


def attend(x):
    """Returns softmax(x), without the weight of the sink."""
    if not form.startswith("sink"):
        return softmax(shifted(x, S) if form == "shifted" else x, S)
    column, parts = tensor(B, H, S, 1), (tensor(B, H, S, S), tensor(B, H, S, 1))
    sink = generic("bhis", [("%sink", tensor(H), "h")], (column, "bhis"), "%y = math.tanh %a0 : f32")
    first, joined, weights = form == "sink-first", fresh(), fresh()
    operands = (sink, x) if first else (x, sink)
    lines.append(f"{joined} = tensor.concat dim(3) {', '.join(operands)} : ({', '.join(reversed(parts) if first else parts)}) -> "
                 f"{tensor(B, H, S, S + 1)}")
    p = softmax(shifted(joined, S + 1), S + 1)
    lines.append(f"{weights} = tensor.extract_slice {p}[0, 0, 0, {int(first)}] [{B}, {H}, {S}, {S}] [1, 1, 1, 1] : "
                 f"{tensor(B, H, S, S + 1)} to {tensor(B, H, S, S)}")
    return weights


lines.append(f"%embedded = tensor.empty() : {tensor(B, S, C)}")
embedded = generic("bsc", [("%tokens", tensor(B, S, element="i64"), "bs")], (tensor(B, S, C), "bsc"),
                   f"%r = arith.index_cast %a0 : i64 to index\n%c = linalg.index 2 : index\n"
                   f"%y = tensor.extract %embed[%r, %c] : {tensor(V, C)}")
lines.append(f"%x = tensor.collapse_shape {embedded} [[0, 1], [2]] : {tensor(B, S, C)} into {tensor(B * S, C)}")
q, k, v = (heads(w) for w in ("%wq", "%wk", "%wv"))
per_head, scores = tensor(B, S, H, D, element=ELEMENT), tensor(B, H, S, S, element=ELEMENT)
s = product("bhijd", [(q, per_head, "bihd"), (k, per_head, "bjhd")], (scores, "bhij"), "d")
p = attend(mask(s, scores))
o = product("bihdj", [(p, scores, "bhij"), (v, per_head, "bjhd")], (per_head, "bihd"), "j")
o = cast(o, (B, S, H, D), "bf16", "f32") if ELEMENT == "bf16" else o
lines.append(f"%flat = tensor.collapse_shape {o} [[0, 1], [2, 3]] : {tensor(B, S, H, D)} into {tensor(B * S, C)}")
logits = project("%flat", "%head", V)
lines.append(f"%logits = tensor.expand_shape {logits} [[0, 1], [2]] output_shape [{B}, {S}, {V}] : {tensor(B * S, V)} into "
             f"{tensor(B, S, V)}")
weights = [("embed", tensor(V, C)), ("wq", tensor(C, C)), ("wk", tensor(C, C)), ("wv", tensor(C, C)), ("head", tensor(C, V))]
weights += [("sink", tensor(H))] if form.startswith("sink") else []
# With the usual 0.02, all scores would be near 0.
arguments = [f'%{n}: {t} {{fsdp.param = "{n}", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}}' for n, t in weights]
arguments.append(f'%tokens: {tensor(B, S, element="i64")} {{fsdp.batch = "tokens"}}')
print(f"func.func @logits({', '.join(arguments)}) -> {tensor(B, S, V)} {{")
print("\n".join(lines))
print(f"return %logits : {tensor(B, S, V)}\n}}")
