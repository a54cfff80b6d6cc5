"""Compares the metrics and the exported weights of two runs.

    compare-runs.py RUN REFERENCE [--bytes=N] [--gathers=N] [--scatters=N] [--shifts=N]

RUN and REFERENCE are prefixes of RUN.jsonl (fsdp-run --metrics) and RUN.safetensors (--export).
Losses and norms of each step, and each tensor of the weights, must be equal within 2e-6: relative
for numbers, and by the Euclidean norm of the difference for tensors. If the weights are f64, each of
their tensors must be equal within 1e-12. A tensor of f32 whose norm is below 1e-10 in both runs
counts as zero: the gradient of a bias of keys consists of rounding errors, because softmax cancels
it. With --bytes, each step of RUN must send N bytes to all_reduces, with --gathers to all_gathers,
with --scatters to reduce_scatters, and with --shifts to shifts. Prints the largest differences.
"""

import array
import json
import math
import struct
import sys

LIMIT = 2e-6
LIMIT_F64 = 1e-12
ZERO = 1e-10
COUNTERS = {"bytes": "all_reduce_bytes", "gathers": "all_gather_bytes", "scatters": "reduce_scatter_bytes",
            "shifts": "shift_bytes"}


def read_metrics(prefix):
    with open(prefix + ".jsonl") as file:
        return [json.loads(line) for line in file]


def read_weights(prefix):
    with open(prefix + ".safetensors", "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    weights = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        code = {"F32": "f", "F64": "d"}[about["dtype"]]
        weights[name] = (about["shape"], array.array(code, data[8 + size + begin:8 + size + end]))
    return weights


def difference(a, b):
    """Returns the distance of two tensors, relative to the second. It is infinite if a number is NaN or infinite, because max() overlooks NaN."""
    if not all(map(math.isfinite, [*a, *b])):
        return math.inf
    if a.typecode == "f" and max(math.hypot(*a), math.hypot(*b)) < ZERO:
        return 0.0
    return math.dist(a, b) / max(math.hypot(*b), 1e-30)


def main(run, reference, *options):
    steps, expected = read_metrics(run), read_metrics(reference)
    assert len(steps) == len(expected) and steps, "different numbers of steps"
    worst = {"loss": 0.0, "grad_norm": 0.0}
    for step, other in zip(steps, expected):
        for key in worst:
            assert math.isfinite(step[key]), f"step {step['step']}: {key} is {step[key]}"
            worst[key] = max(worst[key], abs(step[key] - other[key]) / abs(other[key]))
        for option in options:
            name, wanted = option.removeprefix("--").split("=")
            if step[COUNTERS[name]] != int(wanted):
                sys.exit(f"step {step['step']}: expected {wanted} {COUNTERS[name]}, found "
                         f"{step[COUNTERS[name]]}")
    weights, others = read_weights(run), read_weights(reference)
    if {n: s for n, (s, _) in weights.items()} != {n: s for n, (s, _) in others.items()}:
        sys.exit("the runs have different weights")
    name, worst["weights"] = max(((n, difference(weights[n][1], others[n][1])) for n in weights),
                                 key=lambda pair: pair[1])
    text = ", ".join(f"{key} {value:.1e}" for key, value in worst.items())
    is_f64 = weights[name][1].typecode == "d"
    if max(worst.values()) > LIMIT or (is_f64 and worst["weights"] > LIMIT_F64):
        sys.exit(f"differs: {text} (most in {name})")
    print(f"equal within {'1e-12' if is_f64 else '2e-6'}: {text}, {len(steps)} steps, {len(weights)} tensors")


main(*sys.argv[1:])
