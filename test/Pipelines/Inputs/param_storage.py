"""Prints whether plans of a model store parameters in bf16 beside their masters: for a GPU, with memory limits, for a CPU and in f32."""
import json
import subprocess
import sys


def plan(*options):
    """Returns the bytes of the arena, 'both' or 'master', and the remark on param-storage."""
    done = subprocess.run(["fsdp-compile", sys.argv[1], "--mesh=shard=2", "--explain=json", "--remarks", *options], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    masters = any(unit["dtype"] == "bf16" for unit in report["units"])
    remark = [line.split(": ", 1)[1] for line in done.stderr.splitlines() if "'auto' is 'master'" in line]
    return report["memory"]["peak"], "both" if masters else "master", "".join(", " + line for line in remark)


gpu = ["--target=sm_90a", "--param-dtype=bf16"]
both, master = plan(*gpu), plan(*gpu, "--param-storage=master")
print(f"sm_90a: {both[1]}, {both[0]} bytes; {master[1]}, {master[0]} bytes")
print(f"limit {both[0]}: {plan(*gpu, f'--memory-limit={both[0]}')[1]}")
below = plan(*gpu, f"--memory-limit={both[0] - 1}")
print(f"limit below: {below[1]}{below[2]}")
print(f"cpu: {plan('--param-dtype=bf16')[1]}")
print(f"f32: {plan('--target=sm_90a')[1]}")
