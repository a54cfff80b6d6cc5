"""Compares the time of each kernel with its floor. The floor is the least time in which the GPU can both move the kernel's bytes and compute its
multiply-adds.

1. Two rates of this GPU are measured: the bytes per second that a copy within GPU memory reads and writes, and the FLOP/s of a bf16 product with m = n =
   k = 8192 in cuBLASLt. Without PyTorch, the FLOP/s are those of the data sheet.
2. Steps run with --profile: each launch is timed by two events of the compute stream. The artifact states the bytes and multiply-adds of each kernel.
3. The floor is the larger of two quotients: the kernel's bytes divided by the bytes per second, and the kernel's FLOPs divided by the FLOP/s. The GPU
   computes an f32 product as three tf32 products, each at half the rate of a bf16 product.
"""
import json

F32_PART = 1 / 6  # rate of f32 products divided by the rate of bf16 products
SHOWN = 30        # number of kernels per artifact in the table
COMMAND = ("name", "kind", "first", "runs", "nanoseconds", "bytes", "multiply_adds", "bf16_multiply_adds")  # members of a command that a row keeps


def floor_of(command, bandwidth, products):
    """Returns two values: the floor in seconds, summed over all runs of the command; and "bytes" or "products", whichever determines the floor.
    `products` is the FLOP/s of bf16 products, or None if these FLOP/s are unknown."""
    moving = command["bytes"] / bandwidth
    work = 2 * (command["bf16_multiply_adds"] + command["multiply_adds"] / F32_PART)
    computing = work / products if products else 0.0
    return (computing, "products") if computing > moving else (moving, "bytes")


def row_of(command, steps, bandwidth, products):
    seconds = command["nanoseconds"] / 1e9
    floor, bound = floor_of(command, bandwidth, products)
    runs = command["runs"] or 1
    return {"name": command["name"], "kind": command["kind"], "first": command["first"], "runs": command["runs"] / steps, "ms": seconds / steps * 1e3,
            "microseconds": seconds / runs * 1e6, "bytes": command["bytes"] / steps, "flops": 2 * (command["multiply_adds"] + command["bf16_multiply_adds"]) / steps,
            "floor_ms": floor / steps * 1e3, "bound": bound, "share": floor / seconds if seconds else None}


def sum_by_kind(rows):
    """Returns a row for each kind of command, with the sums over the commands of this kind, and one more row with the sums over all commands."""
    sums = {}
    for row in rows:
        for kind in (row["kind"], "all"):
            found = sums.setdefault(kind, {"kind": kind, "ms": 0.0, "floor_ms": 0.0, "runs": 0.0})
            for member in ("ms", "floor_ms", "runs"):
                found[member] += row[member]
    for found in sums.values():
        found["share"] = found["floor_ms"] / found["ms"] if found["ms"] else None
    return sorted(sums.values(), key=lambda each: -each["ms"])


def profile(runner, job, seconds):
    """Profiles an artifact and returns the members of a row: the steps, the nanoseconds, and the commands with their nanoseconds, bytes and multiply-adds."""
    path = runner.folder / "profile.json"
    path.unlink(missing_ok=True)
    run = runner.run(job["artifact"], [f"--steps={1 + job['steps']}", "--profile", f"--profile-file={path}"], seconds)
    row = {"status": run["status"], "text": run["problem"] or "", "waited": run["waited"]}
    if run["problem"]:
        return row
    try:
        found = json.loads(path.read_text())
        commands = [{name: each[name] for name in COMMAND} for each in found["commands"]]
        if not commands:
            raise ValueError("expected times of commands, found none")
        text = f"{len(commands)} kinds of commands"
        return {**row, "text": text, "profile": {"steps": found["steps"], "nanoseconds": found["nanoseconds"], "commands": commands}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {**row, "status": "error", "text": f"{path.name}: {error}"}


def kernels_of(row, bandwidth, products):
    """Returns the rows of the kernels of a profiled artifact."""
    found = row["profile"]
    return [row_of(each, found["steps"], bandwidth, products) for each in found["commands"]]


def most_lost(artifacts):
    """Returns (excess, row of the kernel, row of the artifact) of the kernel with the largest excess, or None. The excess of a kernel is its measured
    milliseconds per step minus the milliseconds of its floor. `artifacts` is a list of (row of the artifact, rows of its kernels)."""
    found = [(each["ms"] - each["floor_ms"], each, artifact) for artifact, kernels in artifacts for each in kernels]
    return max(found, key=lambda each: each[0]) if found else None
