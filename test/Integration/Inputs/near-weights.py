"""near-weights.py A B TOLERANCE: checks that f32 tensors of two safetensors files agree, relative to the largest number of each tensor."""
import array
import json
import math
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: array.array("f", data[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items()}


first, second = read(sys.argv[1]), read(sys.argv[2])
assert first.keys() == second.keys() and first, "the same tensors"
worst, where = 0.0, ""
for name, numbers in first.items():
    assert all(map(math.isfinite, [*numbers, *second[name]])), f"{name} is not finite"
    largest = max(map(abs, second[name]))
    assert largest > 0, f"{name} is zero"
    error = max(abs(a - b) for a, b in zip(numbers, second[name])) / largest
    worst, where = max((worst, where), (error, name))
print(f"{len(first)} tensors, worst difference {worst:.1e} of the largest number, in {where}")
sys.exit(0 if worst <= float(sys.argv[3]) else 1)
