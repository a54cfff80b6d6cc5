"""Compiles and simulates a model on clusters whose collectives occupy no multiprocessors, many, or none for all-gathers by copy engines. Compares the
schedule of the compiler with the simulator, and prints by how much kernels are slowed, and which way of all-gathers both have chosen."""
import copy
import json
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


plain = json.load(open(sys.argv[1]))
plain["links"][0]["bytes_per_second"] = 4e8  # so that all-gathers and reductions take about as long as kernels
kernels = copy.deepcopy(plain)
kernels["device"].update(multiprocessors=10, bytes_per_second=2e13)  # the multiprocessors limit all kernels
kernels["links"][0]["multiprocessors"] = kernels["links"][1]["multiprocessors"] = 4
fast, slow = copy.deepcopy(kernels), copy.deepcopy(kernels)
fast["links"][0]["copy_engines"] = {"seconds": 2e-6, "bytes_per_second": 4e8}  # as fast as a ring, but without multiprocessors
slow["links"][0]["copy_engines"] = {"seconds": 1e-3, "bytes_per_second": 4e8}
for name, file, cluster in [("no multiprocessors", "plain", plain), ("kernels", "kernels", kernels), ("fast copy engines", "fast", fast),
                            ("slow copy engines", "slow", slow)]:
    with open(file + ".json", "w") as out:
        json.dump(cluster, out)
    options = ["fsdp-compile", "llama.mlir", "--mesh=shard=2", f"--cluster={file}.json", "--overlap"]
    schedule = json.loads(run(*options, "--explain=json"))["schedule"]
    run(*options, "--no-code", "-o", "a.fsdp")
    report = run("fsdp-run", "a.fsdp", f"--simulate={file}.json")
    step = float(re.search(r"a step of ([0-9.]+) ms", report)[1]) / 1e3
    slowed = re.search(r"compute includes ([0-9.]+) ms", report)
    slowed = float(slowed[1]) / 1e3 if slowed else 0
    way = re.search(r"^all-gathers by (copy engines|kernels)", report, re.M)
    if schedule["copy_engines"] != bool(way and way[1] == "copy engines"):
        sys.exit(f"{name}: the schedule and the simulator choose different ways of all-gathers\n{report}")
    for what, ours, theirs in [("a step takes", schedule["scheduled_seconds"], step), ("kernels are slowed by", schedule["slowed_seconds"], slowed)]:
        if abs(ours - theirs) > 0.05 * step:
            sys.exit(f"{name}: {what} {ours} s in the schedule and {theirs} s in the simulator\n{report}")
    print(f"{name}: {way[0] + '; ' if way else ''}kernels slowed by {100 * slowed / (step - slowed):.1f} %, schedule and simulator agree")
