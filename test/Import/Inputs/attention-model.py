#!/usr/bin/env python3
"""Makes a model of functions: attention-model.py FORMS.mlir. Float arguments are parameters, integers
come with a batch, bits are integers that are not 0; the loss is the sum of the results' mean squares."""
import re
import sys

text = re.sub(r' \{fsdp.param = "\w+"\}', "", open(sys.argv[1]).read())
functions = re.findall(r"func\.func @(\w+)\((.*?)\) -> (tensor<\S+>) \{", text)
arguments, lines, total = {}, [], None


def count(type_text):
    n = 1
    for s in type_text[len("tensor<") : -1].split("x")[:-1]:
        n *= int(s)
    return n


def kinds(rank, kind):
    return ", ".join([f'"{kind}"'] * rank)


for name, args, result in functions:
    values = []
    for arg in args.split(", %"):
        label, kind = re.match(r"%?(\w+): (\S+)", arg).groups()
        key = f"{label}_{kind[7:-1]}"
        source = kind.replace("xi1>", "xi64>")
        arguments[key] = source
        value = f"%{key}"
        if kind != source:
            value = f"%{name}_{label}"
            rank = source.count("x")
            dims = ", ".join(f"d{i}" for i in range(rank))
            lines += [f"{value}_e = tensor.empty() : {kind}",
                      f"{value} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ({dims})>], "
                      f"iterator_types = [{kinds(rank, 'parallel')}]}} ins(%{key} : {source}) outs({value}_e : {kind}) {{",
                      "^bb0(%a: i64, %out: i1):", "%z = arith.constant 0 : i64", "%y = arith.cmpi ne, %a, %z : i64",
                      "linalg.yield %y : i1", f"}} -> {kind}"]
        values.append((value, kind))
    rank = result.count("x")
    dims = ", ".join(f"d{i}" for i in range(rank))
    lines += [f"%{name} = func.call @{name}({', '.join(v for v, _ in values)}) : ({', '.join(t for _, t in values)}) -> {result}"]
    if total is None:
        lines += ["%zero = arith.constant 0.0 : f32", "%scalar = tensor.empty() : tensor<f32>",
                  "%start = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>"]
        total = "%start"
    lines += [f"%{name}_sum = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ()>], "
              f"iterator_types = [{kinds(rank, 'reduction')}]}} ins(%{name} : {result}) outs(%start : tensor<f32>) {{",
              "^bb0(%a: f32, %out: f32):", f"%n = arith.constant {1.0 / count(result)} : f32", "%s = arith.mulf %a, %a : f32",
              "%m = arith.mulf %s, %n : f32", "%y = arith.addf %out, %m : f32", "linalg.yield %y : f32", "} -> tensor<f32>",
              f"%{name}_total = linalg.generic {{indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], "
              f"iterator_types = []}} ins({total}, %{name}_sum : tensor<f32>, tensor<f32>) outs(%scalar : tensor<f32>) {{",
              "^bb0(%a: f32, %b: f32, %out: f32):", "%y = arith.addf %a, %b : f32", "linalg.yield %y : f32", "} -> tensor<f32>"]
    total = f"%{name}_total"
ordered = sorted(arguments, key=lambda k: "i64" in arguments[k])
print(text.replace("func.func @", "func.func private @"))
print("func.func @loss(" + ", ".join(
    f"%{k}: {arguments[k]} " + (f'{{fsdp.batch = "{k}"}}' if "i64" in arguments[k] else f'{{fsdp.param = "{k}"}}') for k in ordered)
    + ") -> tensor<f32> {")
print("\n".join(lines))
print(f"return {total} : tensor<f32>\n}}")
