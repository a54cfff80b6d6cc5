"""Compares the activations of a rank of Llama 3 8B with the closed form of docs/explanation/tensor-parallel.md: usage SEQ [gather|ring|rows]. Two models with 2 and 4
layers give the bytes of a layer, so that the head of the model does not count."""
import json
import subprocess
import sys

SEQ, KEYS_OF_OTHERS = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "gather"
ROWS = KEYS_OF_OTHERS == "rows"  # rows of norms and residuals are split over tensor
KEYS_OF_OTHERS = "gather" if ROWS else KEYS_OF_OTHERS
HIDDEN, HEADS, KEYS, INTERMEDIATE = 4096, 32, 8 * 128, 14336
MODEL = [f"--hidden={HIDDEN}", f"--heads={HEADS}", "--kv-heads=8", f"--intermediate={INTERMEDIATE}", "--vocab=512", f"--seq={SEQ}"]


def measure(layers, mesh):
    way = [f"--context-attention={KEYS_OF_OTHERS}"] if "context=1" not in mesh else []
    way += ["--sequence-parallel"] if ROWS and "tensor=1" not in mesh else []
    done = subprocess.run(["fsdp-compile", f"{layers}.mlir", f"--mesh={mesh}", "--explain=json", *way], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["moment_of_peak"]["activations"]


def closed_form(context, tensor):
    whole = (2 * HIDDEN + 2) / (tensor if ROWS else 1)  # inputs of attention and MLP, a number per token of both norms
    split = 2 * HIDDEN + HEADS + 3 * INTERMEDIATE  # queries, result of attention, log-sum-exp; gate, up and their product
    blocks = context if KEYS_OF_OTHERS == "gather" else 1  # a ring keeps the own keys and values only
    return 4 * SEQ // context * (whole + (split + 2 * KEYS * blocks) / tensor)


for layers in (2, 4):
    subprocess.run(["fsdp-modelgen", "llama", f"--layers={layers}", *MODEL, "-o", f"{layers}.mlir"], check=True, capture_output=True)
for context, tensor in [(1, 1), (2, 1), (1, 8), (8, 1), (4, 2), (8, 8)]:
    mesh = f"shard=1,context={context},tensor={tensor}"
    found, expected = (measure(4, mesh) - measure(2, mesh)) / 2, closed_form(context, tensor)
    if abs(found / expected - 1) > 0.03:
        sys.exit(f"{mesh}: expected {expected:.0f} bytes of activations in a layer, found {found:.0f}")
    print(f"context={context} tensor={tensor}: {found / 2**20:.1f} MiB a layer, {100 * (found / expected - 1):+.2f} %")
