"""Checks how rounding of moments to bf16 affects training. usage: optimizer_state.py FOLDER momentum|training

momentum: the gradient is constant, so that a momentum of 0.999 grows to a thousand times the gradient. Rounding to
nearest stops the growth when a step is less than half of the last digit; stochastic rounding is right on average.
training: trains a small GPT-2 on one batch by AdamW with slow moments.
"""
import json, os, struct, subprocess, sys

FOLDER, WHAT = sys.argv[1:]
os.makedirs(FOLDER, exist_ok=True)
KINDS = {
    "f32": [],
    "stochastic": ["--optimizer-state-dtype=bf16"],
    "nearest": ["--optimizer-state-dtype=bf16", "--optimizer-state-rounding=nearest"],
}
N = 4096
CONSTANT = f"""
#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> ()>
func.func @loss(%w: tensor<{N}xf32> {{fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}}) -> tensor<f32> {{
  %zero = arith.constant 0.0 : f32
  %slope = arith.constant 0.3 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {{indexing_maps = [#in, #out], iterator_types = ["reduction"]}} ins(%w : tensor<{N}xf32>) outs(%f : tensor<f32>) {{
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %slope : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> tensor<f32>
  return %l : tensor<f32>
}}
"""


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"


def momentum(kind, *run, mesh="--mesh=shard=2"):
    call("fsdp-compile", f"{FOLDER}/constant.mlir", "--optimizer=sgd", "--momentum=0.999", "--weight-decay=0", "--lr=1e-4",
         mesh, *KINDS[kind], "-o", f"{FOLDER}/constant.fsdp")
    call("fsdp-run", f"{FOLDER}/constant.fsdp", "--steps=1500", f"--export={FOLDER}/out.safetensors", *run)
    data = open(f"{FOLDER}/out.safetensors", "rb").read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    return struct.unpack(f"<{N}f", data[begin:begin + 4 * N])


def train(kind):
    metrics = f"{FOLDER}/{kind}.jsonl"
    call("fsdp-compile", f"{FOLDER}/gpt.mlir", "--mesh=shard=2", "--beta1=0.999", "--beta2=0.9999", "--weight-decay=0",
         *KINDS[kind], "-o", f"{FOLDER}/gpt.fsdp")
    call("fsdp-run", f"{FOLDER}/gpt.fsdp", "--overfit", "--steps=1000", "--lr=0.0003", f"--metrics={metrics}")
    last = [json.loads(line)["loss"] for line in open(metrics)][-100:]
    return sum(last) / len(last)


if WHAT == "momentum":
    open(f"{FOLDER}/constant.mlir", "w").write(CONSTANT)
    exact, noisy, stuck = (momentum(kind) for kind in KINDS)
    assert len(set(exact)) == len(set(stuck)) == 1
    mean = sum(noisy) / N
    deviation = (sum((x - mean) ** 2 for x in noisy) / (N - 1)) ** 0.5
    # The mean of 4096 elements, each rounded 1500 times.
    assert abs(mean - exact[0]) <= 4 * deviation / N ** 0.5, (mean, exact[0], deviation)
    assert 0 < deviation < 0.05 * abs(mean), deviation
    assert abs(stuck[0]) < 0.6 * abs(exact[0]), (stuck[0], exact[0])
    assert momentum("stochastic", mesh="--mesh=shard=4") == noisy, "another mesh rounds in another way"
    other = momentum("stochastic", "--seed=5")
    assert sum(a == b for a, b in zip(other, noisy)) < N / 10, "another seed rounds alike"
    print("right on average")
else:
    call("fsdp-modelgen", "gpt2", "--layers=1", "--hidden=32", "--heads=2", "--vocab=128", "--seq=16", "--batch=8",
         "-o", f"{FOLDER}/gpt.mlir")
    exact, noisy, stuck = (train(kind) for kind in KINDS)
    assert abs(noisy - exact) <= 0.01 * exact, (noisy, exact)
    assert stuck >= 1.15 * exact, (stuck, exact)
    print("trains as in f32")
