"""hostile.py FOLDER: writes inputs that exhaust or crash a parser: deep nesting, long expressions, a value of a wrong kind."""
import sys

MODEL = """func.func @loss(%w: tensor<8xf32> {fsdp.param = "w"}, %x: tensor<8xf32> {fsdp.batch = "x"}) -> tensor<f32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i) -> (MAP)>, affine_map<(i) -> ()>], iterator_types = [KIND]} ins(%w : tensor<8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
"""
levels = 200000


def write(name, text):
    with open(f"{sys.argv[1]}/{name}", "w") as file:
        file.write(text)


def model(name, index="i", kind='"reduction"'):
    write(name, MODEL.replace("MAP", index).replace("KIND", kind))


model("ok.mlir")
model("long-sum.mlir", "+".join(["i"] * levels))
model("minus-signs.mlir", "-" * levels + "i")
model("many-mods.mlir", "i" + " mod 2" * levels)
model("number-as-iterator.mlir", kind="1")
write("deep-list.mlir", "module attributes {a = " + "[" * levels + "]" * levels + "} {}\n")
write("deep-list.json", "[" * levels + "]" * levels)
write("deep-object.json", '{"a":' * levels + "1" + "}" * levels)

# Deep, but not too deep for MLIR's parser: fsdp-opt can write them as bytecode.
levels = 1000
write("deep-modules.mlir", "module {\n" * levels + "}\n" * levels)
write("long-lists.mlir", "module attributes {test.a = " + "[" * levels + "]" * levels + "} {}\n")
write("deep-types.mlir", "module attributes {test.a = " + "tuple<" * levels + "i1" + ">" * levels + "} {}\n")
write("long-map.mlir", "module attributes {test.a = affine_map<(i) -> (" + " + ".join(f"(i floordiv {n + 2})" for n in range(2000)) + ")>} {}\n")
