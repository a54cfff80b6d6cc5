"""Compares the losses and gradient norms of two files of metrics: equal_losses.py FILE FILE TOLERANCE."""
import json
import sys

runs = [[json.loads(line) for line in open(path)] for path in sys.argv[1:3]]
assert len(runs[0]) == len(runs[1]) > 0, runs
for one, other in zip(*runs):
    for name in ("loss", "grad_norm"):
        assert abs(one[name] - other[name]) <= float(sys.argv[3]) * abs(one[name]), (one, other)
print(f"{len(runs[0])} losses and norms agree")
