"""check_loss.py CONFIG.json [fsdp-modelgen options]: the generated f64 model against reference.py.

 1. Generate the model from CONFIG.json, with --dtype=f64.
 2. Give every argument values from a fixed generator.
 3. Write fsdp.gather_rows and fsdp.cross_entropy out as linalg, lower the rest
    with upstream passes alone, run it with mlir-runner.
 4. The losses differ by at most 1e-12, relative.
"""

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import reference

HERE = os.path.dirname(os.path.abspath(__file__))
PASSES = [
    "--one-shot-bufferize=bufferize-function-boundaries",
    "--convert-linalg-to-loops",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-vector-to-llvm",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-arith-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-cf-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
]


def tool(args, text=None):
    done = subprocess.run(args, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(args)}\n{done.stderr}")
    return done.stdout


def shape_of(type_text):
    return [int(d) for d in re.findall(r"(\d+)x", type_text)]


def fill(shape, draw):
    return [fill(shape[1:], draw) for _ in range(shape[0])] if shape else draw()


def arguments(text):
    """(name, parameter or batch name, type) of each argument of @loss."""
    signature = re.search(r"func\.func @loss\((.*?)\) -> tensor<f64>", text, re.S).group(1)
    pattern = r'%([\w.]+): (tensor<[^>]*>) \{(.*?fsdp\.(?:param|batch) = "([^"]+)"[^}]*)\}'
    return [(name, label, type_text) for name, type_text, _, label in re.findall(pattern, signature)]


def write_out_gathers(text):
    def one(m):
        result, table, ids, table_type, ids_type, type_text = m.groups()
        return f"""%{result}.empty = tensor.empty() : {type_text}
    %{result} = linalg.generic {{indexing_maps = [affine_map<(b, t, c) -> (b, t)>, affine_map<(b, t, c) -> (b, t, c)>],
        iterator_types = ["parallel", "parallel", "parallel"]}} ins(%{ids} : {ids_type}) outs(%{result}.empty : {type_text}) {{
    ^bb0(%id: i64, %o: f64):
      %row = arith.index_cast %id : i64 to index
      %col = linalg.index 2 : index
      %value = tensor.extract %{table}[%row, %col] : {table_type}
      linalg.yield %value : f64
    }} -> {type_text}"""

    return re.sub(r"%([\w.]+) = fsdp\.gather_rows %([\w.]+)\[%([\w.]+)\] : (\S+), (\S+) -> (\S+)", one, text)


def write_out_loss(text):
    """-log softmax(logits)[target], straight from the definition: these logits are small."""

    def one(m):
        result, logits, targets, type_text, targets_type = m.groups()
        rows, columns = shape_of(type_text)
        return f"""%ce.zero = arith.constant 0.0 : f64
    %ce.e = tensor.empty() : tensor<{rows}xf64>
    %ce.z = linalg.fill ins(%ce.zero : f64) outs(%ce.e : tensor<{rows}xf64>) -> tensor<{rows}xf64>
    %ce.sums = linalg.generic {{indexing_maps = [affine_map<(n, v) -> (n, v)>, affine_map<(n, v) -> (n)>],
        iterator_types = ["parallel", "reduction"]}} ins(%{logits} : {type_text}) outs(%ce.z : tensor<{rows}xf64>) {{
    ^bb0(%x: f64, %acc: f64):
      %e = math.exp %x : f64
      %s = arith.addf %acc, %e : f64
      linalg.yield %s : f64
    }} -> tensor<{rows}xf64>
    %ce.e0 = tensor.empty() : tensor<f64>
    %ce.z0 = linalg.fill ins(%ce.zero : f64) outs(%ce.e0 : tensor<f64>) -> tensor<f64>
    %{result} = linalg.generic {{indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>, affine_map<(n) -> ()>],
        iterator_types = ["reduction"]}} ins(%ce.sums, %{targets} : tensor<{rows}xf64>, {targets_type}) outs(%ce.z0 : tensor<f64>) {{
    ^bb0(%sum: f64, %t: i64, %acc: f64):
      %n = linalg.index 0 : index
      %v = arith.index_cast %t : i64 to index
      %x = tensor.extract %{logits}[%n, %v] : {type_text}
      %rows = arith.constant {rows}.0 : f64
      %lse = math.log %sum : f64
      %nll = arith.subf %lse, %x : f64
      %term = arith.divf %nll, %rows : f64
      %s = arith.addf %acc, %term : f64
      linalg.yield %s : f64
    }} -> tensor<f64>"""

    return re.sub(r"%([\w.]+), %[\w.]+ = fsdp\.cross_entropy %([\w.]+), %([\w.]+) : (\S+), (\S+) -> .*", one, text)


def driver(args, values):
    lines = ["  func.func @main() {"]
    for (name, _, type_text), value in zip(args, values):
        lines.append(f"    %{name} = arith.constant dense<{json.dumps(value)}> : {type_text}")
    operands = ", ".join("%" + name for name, _, _ in args)
    types = ", ".join(type_text for _, _, type_text in args)
    lines += [
        f"    %loss = call @loss({operands}) : ({types}) -> tensor<f64>",
        "    %value = tensor.extract %loss[] : tensor<f64>",
        "    %bits = arith.bitcast %value : f64 to i64",
        "    vector.print %bits : i64",
        "    return\n  }\n}\n",
    ]
    return "\n".join(lines)


def run(text, args, values):
    text = re.sub(r"\{fsdp\.[^}]*\}", "", text)
    text = write_out_loss(write_out_gathers(text)).rstrip()
    assert "fsdp." not in text and text.endswith("}")
    text = text[:-1] + driver(args, values)
    bin_dir = os.path.dirname(os.path.realpath(shutil.which("mlir-runner")))
    lib = os.path.join(bin_dir, "..", "lib", "libmlir_c_runner_utils.so")
    prepare = ["--transform-preload-library=transform-library-paths=" + os.path.join(HERE, "lower.mlir"),
               "--transform-interpreter", "--canonicalize"]
    text = tool(["mlir-opt", *prepare, *PASSES], text)
    bits = tool(["mlir-runner", "-e", "main", "--entry-point-result=void", "--shared-libs=" + lib], text)
    return struct.unpack("d", struct.pack("q", int(bits)))[0]


def main():
    path, *options = sys.argv[1:]
    with open(path) as f:
        config = json.load(f)
    text = tool(["fsdp-modelgen", "--hf-config=" + path, "--dtype=f64", *options])
    args = arguments(text)
    rng = random.Random(20)
    values = []
    for _, label, type_text in args:
        if label in ("tokens", "targets"):
            values.append(fill(shape_of(type_text), lambda: rng.randrange(config["vocab_size"])))
        else:
            values.append(fill(shape_of(type_text), lambda: rng.uniform(-0.7, 0.7)))
    params = {label: value for (_, label, _), value in zip(args, values)}
    expected = reference.loss(config, params, params.pop("tokens"), params.pop("targets"))
    found = run(text, args, values)
    error = abs(found - expected) / abs(expected)
    print(f"loss {found:.15g}, expected {expected:.15g}, relative error {error:.1e}, {len(params)} parameters")
    if not error <= 1e-12:
        sys.exit("the generated model computes something else")


main()
