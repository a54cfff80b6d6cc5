"""Compares the estimated steps of a model that gathers parameters again from all ranks, or from pairs of ranks with a kept half, within a limit
for the arena.

    kept-parts.py MODEL CLUSTER LIMIT
"""
import json
import subprocess
import sys

model, cluster, limit = sys.argv[1:]


def seconds(reshard):
    words = ["fsdp-compile", model, "--mesh=shard=8", "--param-dtype=bf16", f"--reshard-after-forward={reshard}", "--overlap", f"--cluster={cluster}",
             f"--memory-limit={limit}", "--explain=json"]
    plan = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert plan["memory"]["peak"] <= int(limit), plan["memory"]["peak"]
    return plan["schedule"]["scheduled_seconds"]


print(f"kept halves: {seconds('2') / seconds('true'):.2f} of the time without")
