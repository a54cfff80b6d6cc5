"""Writes a small language model with its weights in the file, and the same model with arguments and a safetensors file.

    model-with-values.py constants|arguments OUT.mlir
    model-with-values.py weights OUT.safetensors
    model-with-values.py compare WEIGHTS.safetensors FILE.safetensors   # every tensor, bit for bit

wte is tied (embedding and, transposed, head); w is read transposed; w2 has the same bytes as w; scale is f64
in an f32 model, and must stay f64.
"""
import json
import math
import re
import struct
import sys

V, D, B, T = 7, 4, 2, 3
SHAPES = {"wte": [V, D], "w": [D, D], "w2": [D, D], "scale": [D]}


def values(name):
    seed = 1 if name == "w2" else len(name)
    count = math.prod(SHAPES[name])
    return [math.sin(1 + seed * 37 + i * (i + 3)) * (1.0 if name == "scale" else 0.5) for i in range(count)]


def code(name):
    return "d" if name == "scale" else "f"


def packed(name, how=None):
    v = values(name)
    return struct.pack("<%d%s" % (len(v), how or code(name)), *v)


def tensor(name):
    return "tensor<%sx%s>" % ("x".join(map(str, SHAPES[name])), "f64" if name == "scale" else "f32")


def resource(name):
    return '      %s: "0x%s%s"' % (name, struct.pack("<I", 8).hex(), packed(name).hex())


BODY = """
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<BTxDxf32>
  %x = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%flat : tensor<BTxi64>) outs(%e : tensor<BTxDxf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %wte[%i, %j] : tensor<VxDxf32>
    linalg.yield %v : f32
  } -> tensor<BTxDxf32>
  %fill = linalg.fill ins(%zero : f32) outs(%e : tensor<BTxDxf32>) -> tensor<BTxDxf32>
  %square = tensor.empty() : tensor<DxDxf32>
  %wt = linalg.transpose ins(%w : tensor<DxDxf32>) outs(%square : tensor<DxDxf32>) permutation = [1, 0]
  %h0 = linalg.matmul ins(%x, %wt : tensor<BTxDxf32>, tensor<DxDxf32>) outs(%fill : tensor<BTxDxf32>) -> tensor<BTxDxf32>
  %h1 = linalg.matmul ins(%h0, %w2 : tensor<BTxDxf32>, tensor<DxDxf32>) outs(%fill : tensor<BTxDxf32>) -> tensor<BTxDxf32>
  %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%h1, %scale : tensor<BTxDxf32>, tensor<Dxf64>) outs(%e : tensor<BTxDxf32>) {
  ^bb0(%a: f32, %s: f64, %o: f32):
    %as = arith.extf %a : f32 to f64
    %p = arith.mulf %as, %s : f64
    %q = arith.truncf %p : f64 to f32
    linalg.yield %q : f32
  } -> tensor<BTxDxf32>
  %tall = tensor.empty() : tensor<DxVxf32>
  %wtet = linalg.transpose ins(%wte : tensor<VxDxf32>) outs(%tall : tensor<DxVxf32>) permutation = [1, 0]
  %l = tensor.empty() : tensor<BTxVxf32>
  %lf = linalg.fill ins(%zero : f32) outs(%l : tensor<BTxVxf32>) -> tensor<BTxVxf32>
  %logits = linalg.matmul ins(%h, %wtet : tensor<BTxDxf32>, tensor<DxVxf32>) outs(%lf : tensor<BTxVxf32>) -> tensor<BTxVxf32>
  return %logits : tensor<BTxVxf32>
}"""


def module(constants):
    text = "#row = affine_map<(d0, d1) -> (d0)>\n#col = affine_map<(d0, d1) -> (d1)>\n#id = affine_map<(d0, d1) -> (d0, d1)>\n"
    args = [] if constants else ['%%%s: %s {fsdp.param = "%s"}' % (n, tensor(n), n) for n in SHAPES]
    text += "func.func @model(%s) -> tensor<%dx%dxf32> {" % (", ".join(args + ["%%flat: tensor<%dxi64>" % (B * T)]), B * T, V)
    if constants:
        for name in SHAPES:
            text += "\n  %%%s = arith.constant dense_resource<%s> : %s" % (name, name, tensor(name))
    sizes = {"BT": B * T, "V": V, "D": D}
    text += re.sub(r"(?<=[<x])(BT|V|D)(?=x)", lambda m: str(sizes[m[0]]), BODY)
    if constants:
        text += "\n{-#\n  dialect_resources: {\n    builtin: {\n"
        text += ",\n".join(resource(name) for name in SHAPES) + "\n    }\n  }\n#-}"
    return text + "\n"


def write_weights(path):
    header, data = {}, b""
    for name in SHAPES:
        piece = packed(name)
        header[name] = {"dtype": "F64" if code(name) == "d" else "F32", "shape": SHAPES[name], "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    return {
        name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]])
        for name, t in header.items()
        if name != "__metadata__"
    }


def main():
    kind, path = sys.argv[1], sys.argv[2]
    if kind == "weights":
        write_weights(path)
    elif kind == "compare":
        a, b = read(path), read(sys.argv[3])
        different = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
        if different:
            sys.exit("different: " + ", ".join(different))
    else:
        open(path, "w").write(module(kind == "constants"))


main()
