"""Trains with and without recomputed activations, and compares weights, memory, traffic and time."""
import json
import subprocess
import sys


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def weights(model, ranks, options):
    out = run("fsdp-compile", model + ".mlir", *options, "-o", "m.fsdp")
    if out.returncode:
        sys.exit(f"{options}: {out.stderr}")
    out = run("fsdp-run", "m.fsdp", f"--ranks={ranks}", "--overfit", "--steps=3", "--export=w.safetensors",
              "--assert-no-allocations", "--check-against=unsharded")
    if out.returncode:
        sys.exit(f"{options}: {out.stderr}")
    return open("w.safetensors", "rb").read()


CASES = [
    ("gpt", 2, ["--mesh=shard=2"]),
    ("gpt", 2, ["--mesh=shard=2", "--param-dtype=bf16", "--reduce-dtype=bf16", "--overlap"]),
    ("gpt", 2, ["--mesh=shard=2", "--grad-accum=2", "--overlap"]),
    ("gpt", 4, ["--mesh=replicate=2,shard=2", "--sharding-strategy=hybrid_shard_zero2"]),
    ("dropout", 2, ["--mesh=shard=2"]),
    ("llama", 4, ["--mesh=shard=4", "--reshard-after-forward=2"]),
    ("llama", 2, ["--mesh=shard=2", "--sharding-strategy=no_shard", "--fuse-attention=false"]),
    ("llama", 1, ["--mesh=shard=1", "--auto-wrap-policy=none"]),
    ("gpt", 1, ["--mesh=shard=1"]),
]
trainings = 0
for model, ranks, options in CASES:
    plain = weights(model, ranks, options)
    for policy in ("full", "selective=contract+attention", "selective=contract/2+attention"):
        if weights(model, ranks, options + ["--activation-checkpointing=" + policy]) != plain:
            sys.exit(f"{model} {options} {policy}: other weights")
        trainings += 1
print(f"{trainings} trainings, bit for bit as without")


def explain(policy, mesh="shard=2"):
    out = run("fsdp-compile", "gpt.mlir", "--mesh=" + mesh, "--activation-checkpointing=" + policy, "--explain=json")
    plan = json.loads(out.stdout)
    return plan["memory"], plan["communication"]


memory, communication = explain("none")
held = {}
for policy, most in (("full", 0.75), ("selective=contract+attention", 1), ("selective=contract/2+attention", 1)):
    less, sent = explain(policy)
    part = less["peak"] / memory["peak"]
    if part > most or less["activations"] >= memory["activations"] or sent != communication:
        sys.exit(f"{policy}: {part}, {less['activations']} of {memory['activations']}, {sent}")
    held[policy] = less["activations"]
    print(f"{policy}: {part:.2f} of the arena, the same bytes sent")
if not held["full"] < held["selective=contract/2+attention"] < held["selective=contract+attention"]:
    sys.exit(f"activations: {held}")
alone, _ = explain("none", "shard=1")
less, _ = explain("full", "shard=1")
if less["peak"] > 0.75 * alone["peak"]:
    sys.exit(f"one rank, full: {less['peak']} of {alone['peak']}")


# auto: the arena keeps to every limit that can be met, and a lower limit never takes less time.
def auto(limit):
    out = run("fsdp-compile", "gpt.mlir", "--mesh=shard=2", "--overlap", "--activation-checkpointing=auto",
              f"--memory-limit={limit}", "--explain=json")
    if out.returncode:
        return None, out.stderr
    plan = json.loads(out.stdout)
    return plan["memory"]["peak"], plan["schedule"]["scheduled_seconds"]


low, high = explain("full")[0]["peak"], memory["peak"]
times = []
for step in range(7):
    limit = low + (high - low) * step // 6
    peak, seconds = auto(limit)
    if step > 0 and (peak is None or peak > limit):
        sys.exit(f"auto: {peak} above {limit}: {seconds}")
    if peak is not None:
        times.append(seconds)
if any(more > less * 1.0001 for less, more in zip(times, times[1:])) or times[-1] >= times[0]:
    sys.exit(f"auto: not monotone: {times}")
print(f"auto: {len(times)} limits kept, from {times[0] / times[-1]:.2f} of the time at the tightest")
peak, error = auto(low // 2)
print(error, end="")
plain = weights(*CASES[0])
limit = (low + high) // 2
if weights(*CASES[0][:2], CASES[0][2] + ["--activation-checkpointing=auto", f"--memory-limit={limit}"]) != plain:
    sys.exit("auto: other weights")
print("auto: bit for bit as without")


# With enough memory all parameters stay gathered after the forward, unless an option says to gather them again; with less memory
# some do. The choice includes which values wait on the host.
def kept(limit, *options):
    out = run("fsdp-compile", "gpt.mlir", "--mesh=shard=2", "--overlap", "--activation-checkpointing=auto", "--offload=activations",
              "--offload-min-bytes=4k", f"--memory-limit={limit}", "--explain=json", *options)
    if out.returncode:
        sys.exit(f"auto, {limit} {options}: {out.stderr}")
    plan = json.loads(out.stdout)
    return sum(unit["reshard"] == "kept until the backward" for unit in plan["units"]), plan["memory"]["host"]


# A limit that is met by offloading alone is met.
away = ["--mesh=shard=2", "--offload=activations", "--offload-min-bytes=1", "--explain=json"]
alone = json.loads(run("fsdp-compile", "gpt.mlir", *away).stdout)["memory"]["peak"]
limited = run("fsdp-compile", "gpt.mlir", *away, "--activation-checkpointing=auto", f"--memory-limit={alone}")
if limited.returncode or json.loads(limited.stdout)["memory"]["peak"] > alone:
    sys.exit(f"auto: not what offload alone needs, {alone}: {limited.stderr}")
steps = [kept(limit) for limit in ("1G", memory["peak"], (low + high) // 2, low)]
told = kept("1G", "--reshard-after-forward")
all_kept, hosts = steps[0][0], [host for _, host in steps]
if told != (1, 0) or steps[0][1] != 0 or all_kept != 5 or min(count for count, _ in steps) == all_kept or hosts != sorted(hosts) or not hosts[-1]:
    sys.exit(f"auto: units kept and bytes on the host: {steps}, told to gather again: {told}")
print(f"auto: units kept and bytes on the host by limit {steps}, when told to gather again {told}")
for model, ranks, options in (CASES[1], CASES[2]):
    peak = json.loads(run("fsdp-compile", model + ".mlir", *options, "--explain=json").stdout)["memory"]["peak"]
    plain = weights(model, ranks, options)
    for limit in (peak, peak * 7 // 8):
        if weights(model, ranks, options + ["--activation-checkpointing=auto", f"--memory-limit={limit}", "--offload=activations",
                                            "--offload-min-bytes=4k"]) != plain:
            sys.exit(f"auto, {options}: other weights")
print("auto with offload: bit for bit as without")
for policy in ("some", "selective=", "selective=contract+gemm", "selective=contract/0", "selective=contract/x"):
    print(run("fsdp-compile", "gpt.mlir", "--activation-checkpointing=" + policy, "-o", "m.fsdp").stderr, end="")
