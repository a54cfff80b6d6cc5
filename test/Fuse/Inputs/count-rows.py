#!/usr/bin/env python3
"""count-rows.py FUSED.mlir ROWS CHANNELS: counts the dispatches of the step that reduce rows of this shape."""
import re
import sys

rows, channels = sys.argv[2:]
shape = re.compile(rf"tensor<{rows}x{channels}x[a-z]*f\d+>")
counts = {"forward": 0, "backward": 0, "map": 0}
seen_loss = False
for line in open(sys.argv[1]):
    if "func.func @eval" in line:
        break
    found = re.search(r'fsdp\.dispatch.*kind = "(\w+)"\} : \((.*)\) -> (.*) \{', line)
    if not found:
        continue
    kind, takes, gives = found.groups()
    if kind == "row" and "xi64>" in takes and not shape.search(gives):
        seen_loss = True
    elif kind == "row" and shape.search(gives):
        counts["backward" if seen_loss else "forward"] += 1
        if seen_loss:
            # Two operands of the norm's backward, and the gradient of the residual path if it is added here.
            assert len(shape.findall(takes)) in (2, 3), line
    elif kind == "map" and not seen_loss and shape.search(takes) and len(shape.findall(takes)) > 1:
        counts["map"] += 1
print(f"{counts['forward']} row kernels forward, {counts['backward']} backward, {counts['map']} sums apart")
