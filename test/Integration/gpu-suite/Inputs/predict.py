"""Writes predictions for a kernel of a bundle: FILE KERNEL. Its predicted time is a nanosecond."""
import json
import sys

file, kernel = sys.argv[1:]
with open(file, "w") as out:
    json.dump({"remark": "planted", "kernels": {"sm_90a": {kernel: {"ms": 1e-9}}}, "steps": {}}, out)
