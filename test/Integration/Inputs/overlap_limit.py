"""Plans with --overlap under the lowest limit that the plan without --overlap meets."""
import json
import subprocess
import sys


def plan(model, *options):
    out = subprocess.run(["fsdp-compile", model + ".mlir", *options, "--target-cpu=x86-64-v3", "--explain=json"], capture_output=True, text=True)
    return json.loads(out.stdout), out


AWAY = ["--mesh=shard=2", "--offload=activations", "--offload-min-bytes=1"]
CASES = [
    ["--mesh=shard=2"],
    AWAY,
    ["--mesh=shard=2", "--offload=activations+parameters+gradients+optimizer", "--offload-min-bytes=1", "--param-dtype=bf16"],
    ["--mesh=shard=2", "--offload=parameters+gradients+optimizer"],
    ["--mesh=shard=4", "--param-dtype=bf16", "--reduce-dtype=bf16", "--grad-accum=2"],
    ["--mesh=replicate=2,shard=2", "--bucket-bytes=1M"],
    ["--mesh=shard=2", "--sharding-strategy=zero2", "--activation-checkpointing=full"],
]
limited, out = plan("gpt", *AWAY, "--overlap", "--memory-limit=1500000")
schedule = limited["schedule"]
if out.returncode or limited["memory"]["peak"] > 1500000 or schedule["scheduled_seconds"] > 0.95 * schedule["unscheduled_seconds"]:
    sys.exit(f"{limited['memory']} {schedule} {out.stderr}")
print("1500000 bytes are kept, and something is hidden")
kept = 0
for model in ("gpt", "llama"):
    for options in CASES:
        peak = plan(model, *[option for option in options if "bucket" not in option])[0]["memory"]["peak"]
        limited, out = plan(model, *options, "--overlap", f"--memory-limit={peak}")
        if out.returncode or limited["memory"]["peak"] > peak:
            sys.exit(f"{model} {options}: {limited['memory']['peak']} of {peak}: {out.stderr}")
        kept += 1
print(f"{kept} limits kept")
