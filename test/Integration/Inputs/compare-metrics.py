"""compare-metrics.py A.jsonl B.jsonl TOLERANCE: checks that losses and norms of two runs agree within a relative tolerance."""
import json
import math
import sys

a, b = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
tolerance = float(sys.argv[3])
assert len(a) == len(b) and a, f"{len(a)} and {len(b)} steps"
worst = 0.0
for x, y in zip(a, b):
    for key in ("loss", "grad_norm"):
        assert math.isfinite(x[key]) and math.isfinite(y[key]), f"{key} is {x[key]} and {y[key]}" # max() overlooks NaN
        worst = max(worst, abs(x[key] - y[key]) / max(abs(y[key]), 1e-30))
print(f"{len(a)} steps, worst relative difference {worst:.1e}")
sys.exit(0 if worst <= tolerance else 1)
