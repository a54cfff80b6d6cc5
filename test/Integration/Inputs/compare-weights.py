"""compare-weights.py A B PATTERN: checks that the tensors of two safetensors files whose names match are equal, and that all others differ."""
import fnmatch
import json
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size:][slice(*entry["data_offsets"])] for name, entry in header.items()}


first, second = read(sys.argv[1]), read(sys.argv[2])
kept = 0
for name in first:
    frozen = any(fnmatch.fnmatch(name, p) or fnmatch.fnmatch(name, p + ".*") for p in sys.argv[3].split(","))
    if (first[name] == second[name]) != frozen:
        sys.exit(f"{name}: expected it to be {'as it was' if frozen else 'trained'}")
    kept += frozen
print(f"{kept} of {len(first)} parameters are as they were")
