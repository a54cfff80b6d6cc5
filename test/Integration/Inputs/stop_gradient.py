"""stop_gradient.py FOLDER: trains models with stopped gradients, and compares them with the expected results.

1. One step of SGD on sum(w * stop(w)) from ones moves each weight by lr, and by 2 lr without the marker.
2. A model of two layers, with tied and held values, trains equally sharded and unsharded, in f32 and in bf16, with
   resharding after the forward, accumulation and checkpointing.
3. A stop has no cost: the forward has as many kernels as without the markers, and a step has no more kernels and no
   larger arena.
"""
import json
import re
import struct
import subprocess
import sys

folder = sys.argv[1]
SQUARE = """
func.func private @fsdp.stop_gradient(tensor<16x8xf32>) -> tensor<16x8xf32>
func.func @loss(%w: tensor<16x8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                %ids: tensor<2x3xi64> {fsdp.batch = "tokens", fsdp.limit = 16 : i64}) -> tensor<f32> {
  HOLD
  %p = arith.mulf %w, %h : tensor<16x8xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.reduce { arith.addf } ins(%p : tensor<16x8xf32>) outs(%f : tensor<f32>) dimensions = [0, 1]
  return %l : tensor<f32>
}
"""
LAYERS = """
func.func private @fsdp.stop_gradient(tensor<24x16xf32>) -> tensor<24x16xf32>
func.func private @fsdp.stop_gradient.w(tensor<16x16xf32>) -> tensor<16x16xf32>
func.func @loss(%wte: tensor<37x16xf32> {fsdp.param = "wte"}, %a: tensor<16x16xf32> {fsdp.param = "h.0.w"},
                %b: tensor<16x16xf32> {fsdp.param = "h.1.w"},
                %ids: tensor<4x6xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %t: tensor<4x6xi64> {fsdp.batch = "targets", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %n = tensor.collapse_shape %t [[0, 1]] : tensor<4x6xi64> into tensor<24xi64>
  %i = tensor.collapse_shape %ids [[0, 1]] : tensor<4x6xi64> into tensor<24xi64>
  %x = fsdp.gather_rows %wte[%i] : tensor<37x16xf32>, tensor<24xi64> -> tensor<24x16xf32>
  %e = tensor.empty() : tensor<24x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<24x16xf32>) -> tensor<24x16xf32>
  %u = linalg.matmul ins(%x, %a : tensor<24x16xf32>, tensor<16x16xf32>) outs(%f : tensor<24x16xf32>) -> tensor<24x16xf32>
  %v = math.tanh %u : tensor<24x16xf32>
  HOLD
  %m = arith.mulf %x, %h : tensor<24x16xf32>
  %w = arith.addf %v, %m : tensor<24x16xf32>
  %o = linalg.matmul ins(%w, %b : tensor<24x16xf32>, tensor<16x16xf32>) outs(%f : tensor<24x16xf32>) -> tensor<24x16xf32>
  %q = linalg.matmul ins(%o, %c : tensor<24x16xf32>, tensor<16x16xf32>) outs(%f : tensor<24x16xf32>) -> tensor<24x16xf32>
  %r = arith.addf %x, %q : tensor<24x16xf32>
  %el = tensor.empty() : tensor<24x37xf32>
  %fl = linalg.fill ins(%z : f32) outs(%el : tensor<24x37xf32>) -> tensor<24x37xf32>
  %l = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%r, %wte : tensor<24x16xf32>, tensor<37x16xf32>) outs(%fl : tensor<24x37xf32>) -> tensor<24x37xf32>
  %loss, %lse = fsdp.cross_entropy %l, %n : tensor<24x37xf32>, tensor<24xi64> -> tensor<f32>, tensor<24xf32>
  return %loss : tensor<f32>
}
"""
HELD = """%h = call @fsdp.stop_gradient(%v) : (tensor<24x16xf32>) -> tensor<24x16xf32>
  %c = call @fsdp.stop_gradient.w(%a) : (tensor<16x16xf32>) -> tensor<16x16xf32>"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compile_text(name, text, *options):
    path = f"{folder}/{name}.mlir"
    with open(path, "w") as file:
        file.write(text)
    run("fsdp-compile", path, *options, "-o", f"{folder}/{name}.fsdp")
    return f"{folder}/{name}.fsdp"


def first_weight(name, text, ranks):
    artifact = compile_text(name, text, f"--mesh=shard={ranks}", "--optimizer=sgd", "--lr=0.25", "--weight-decay=0")
    run("fsdp-run", artifact, "--steps=1", f"--export={folder}/{name}.safetensors")
    data = open(f"{folder}/{name}.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["w"]["data_offsets"]
    values = set(struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end]))
    return values.pop() if len(values) == 1 else sorted(values)


HOLD_W = "%h = call @fsdp.stop_gradient(%w) : (tensor<16x8xf32>) -> tensor<16x8xf32>"
for ranks in 1, 3:
    held = first_weight("held", SQUARE.replace("HOLD", HOLD_W), ranks)
    free = first_weight("free", SQUARE.replace("%h ", "%w ").replace("%w, %h", "%w, %w").replace("HOLD", ""), ranks)
    print(f"{ranks} ranks: held {held}, free {free}")

for name, options in {
        "f32": ["--mesh=shard=3"],
        "regathered": ["--mesh=shard=2", "--reshard-after-forward=true", "--grad-accum=2"],
        "checkpointed": ["--mesh=replicate=2,shard=2", "--activation-checkpointing=full"],
        "bf16": ["--mesh=shard=2", "--param-dtype=bf16"]}.items():
    artifact = compile_text(name, LAYERS.replace("HOLD", HELD), *options)
    told = run("fsdp-run", artifact, "--steps=5", "--check-against=unsharded", "--assert-no-allocations")
    print(name + ":", re.search("check against unsharded passed.*", told).group())


def measure(name, text):
    """Returns the kernels of @step and of @eval, and the bytes of the arena."""
    compile_text(name, text, "--mesh=shard=2")
    plan = run("fsdp-compile", f"{folder}/{name}.mlir", "--mesh=shard=2", "--compile-to=plan", "-o", "-")
    programs = {part.split()[0]: part.count("fsdp.launch") for part in re.split(r"fsdp.program @", plan)[1:]}
    return programs["step"], programs["eval"], int(re.search(r"fsdp.layout @arena arena (\d+)", plan).group(1))


# The held value is the result of a kernel in any case. Between two maps, a stop would keep the maps in separate kernels.
held = measure("measured", LAYERS.replace("HOLD", HELD.replace("(%v)", "(%x)")))
free = measure("unheld", LAYERS.replace("HOLD", "").replace("%x, %h", "%x, %x").replace("%o, %c", "%o, %a"))
print("as many kernels in the forward:", held[1] == free[1])
print("no more kernels and no more memory in a step:", held[0] <= free[0], held[2] <= free[2])
