#!/usr/bin/env python3
"""Compares the instructions that the model counts for an operation with those of ptxas.

usage: op-work.py kernels                writes a kernel for each operation, and `none`
       op-work.py compare CLOCKS STATS   compares the outputs of --emit=clocks and --emit=sass-stats
       op-work.py epilogues CLOCKS STATS compares these outputs for the kernels of `gemm-grid.py work`

A kernel applies an operation CHAIN times to each of 4 elements of a thread. An epilogue is compared, per element of the result, with the plain
product that has a result of the same type. Fails if the counted instructions of an operation or epilogue differ by more than 10 % and half an instruction.
"""
import re
import sys

CHAIN, ELEMENTS, SIZE, MULTIPROCESSORS, LANES = 8, 4, 1 << 24, 132, 128
EPILOGUE_ELEMENTS = 128 * 256 // 256 # of a thread that multiplies
OPS = {
    "none": "",
    "add": "{y} = arith.addf {x}, %three : f32",
    "fma": "{y} = math.fma {x}, %three, %three : f32",
    "exp2": "{y} = math.exp2 {x} : f32",
    "rsqrt": "{y} = math.rsqrt {x} : f32",
    "floor": "%f{i} = math.floor {x} : f32\n{y} = arith.addf %f{i}, %three : f32",
    "exp": "{y} = math.exp {x} : f32",
    "div": "{y} = arith.divf %three, {x} : f32",
    "scale": "{y} = arith.divf {x}, %three : f32",
    "erf": "{y} = math.erf {x} : f32",
    "tanh": "{y} = math.tanh {x} : f32",
}


def kernel(name, text):
    lines = [text.format(i=i, x=f"%x{i}", y=f"%x{i + 1}") for i in range(CHAIN if text else 0)]
    type = f"tensor<{SIZE}xf32>"
    print(f"""func.func private @{name}(%a: {type}, %b: {type} {{fsdp.out = 0 : i64}}) -> {type} attributes {{fsdp.kernel, fsdp.kind = "map"}} {{
  %e = tensor.empty() : {type}
  %three = arith.constant 3.0 : f32
  %r = linalg.generic {{indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]}} ins(%a : {type}) outs(%e : {type}) {{
  ^bb0(%x0: f32, %o: f32):
    {chr(10).join(lines)}
    linalg.yield %x{len(lines)} : f32
  }} -> {type}
  return %r : {type}
}}""")


def column(path, title):
    rows = [line.split() for line in open(path) if not line.startswith("//")]
    at = rows[0].index(title)
    return {row[0].split("$")[0]: float(row[at]) for row in rows[1:]}


def differs(name, counted, assembled):
    wrong = abs(counted - assembled) > 0.1 * assembled + 0.5
    print(f"{name:6} counted {counted:5.2f}  assembled {assembled:5.2f}{'  DIFFERS' if wrong else ''}")
    return wrong


def main():
    if sys.argv[1] == "kernels":
        for name, text in OPS.items():
            kernel(name, text)
        return 0
    clocks, instructions = column(sys.argv[2], "issue"), column(sys.argv[3], "instructions")
    failed = False
    if sys.argv[1] == "epilogues":
        for name in clocks:
            plain = re.sub("_(accumulate|bias|gelu_grad|gelu|residual|swiglu_grad|swiglu)_", "_none_", name)
            if name == plain:
                continue
            failed |= differs(name, (clocks[name] - clocks[plain]) * LANES * MULTIPROCESSORS / 8192**2, (instructions[name] - instructions[plain]) / EPILOGUE_ELEMENTS)
        return failed
    for name in OPS:
        if name == "none":
            continue
        # All clocks of a multiprocessor issue LANES instructions of a lane.
        counted = (clocks[name] - clocks["none"]) * LANES * MULTIPROCESSORS / SIZE / CHAIN
        assembled = (instructions[name] - instructions["none"]) / ELEMENTS / CHAIN
        failed |= differs(name, counted, assembled)
    return failed


sys.exit(main())
