#!/usr/bin/env python3
"""same-weights.py A B FIRST TOLERANCE: checks that two safetensors files in f64 agree, relative to their distance from FIRST."""
import json
import math
import struct
import sys


def read(name):
    data = open(name, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            assert about["dtype"] == "F64", about
            begin, end = about["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
    return tensors


a, b, first = (read(name) for name in sys.argv[1:4])
tolerance, moved = float(sys.argv[4]), 0
assert a.keys() == b.keys() == first.keys()
for name, start in first.items():
    assert all(map(math.isfinite, a[name] + b[name])), f"{name} is not finite"
    way = max(abs(x - s) for x, s in zip(a[name], start))
    error = max(abs(x - y) for x, y in zip(a[name], b[name]))
    assert error <= tolerance * max(way, 1e-3), (name, error, way)
    moved += way > 0
print(f"{moved} of {len(first)} tensors moved; they agree")
