"""Compares the time of each kernel with its floor. The floor is the least time in which the GPU can both move the kernel's bytes and compute its
multiply-adds.

1. Measure two rates of this GPU: the bytes per second that a copy within GPU memory reads and writes, and the FLOP/s of bf16 products in cuBLAS.
   Without PyTorch, the FLOP/s are those of the data sheet.
2. Run steps with --profile: each launch is timed by two events of the compute stream. The artifact states the bytes and multiply-adds of each kernel.
3. The floor is the larger of two quotients: the kernel's bytes divided by the bytes per second, and the kernel's FLOPs divided by the FLOP/s. The GPU
   computes an f32 product as three tf32 products, each at half the rate of a bf16 product.
"""
import ctypes
import json
import statistics
import sys

import models
from runs import run_process

COPIES = 12
F32_PART = 1 / 6  # rate of f32 products divided by the rate of bf16 products
SHOWN = 30        # number of kernels per artifact in the table


CUBLAS = "import peers; body, flops = peers.product(8192); print(flops / min(peers.compare_times({'': body}, 9)['']) * 1e3)"


def measure_products(bundle, seconds):
    """Measures the FLOP/s of cuBLAS for a bf16 product with m = n = k = 8192, in a separate process. Returns None if PyTorch is not installed."""
    code, text, _ = run_process([sys.executable, "-c", CUBLAS], max(1, min(120, seconds)), {"PYTHONPATH": str(bundle)})
    try:
        return float(text.strip().splitlines()[-1]) if code == 0 else None
    except (ValueError, IndexError):
        return None


class Stopwatch:
    """Measures the time of work on the context's default stream by two CUDA events."""

    def __init__(self, driver):
        self.driver, self.events = driver, [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            driver.call("cuEventCreate", ctypes.byref(event), 0)

    def milliseconds(self, body):
        self.driver.call("cuEventRecord", self.events[0], None)
        body()
        self.driver.call("cuEventRecord", self.events[1], None)
        self.driver.synchronise()
        found = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(found), *self.events)
        return found.value


def measure_device(driver, copy_bytes):
    """Returns two medians: the bytes per second of a copy, and the milliseconds between two events that have no work between them."""
    watch = Stopwatch(driver)
    source, target = driver.allocate(copy_bytes), driver.allocate(copy_bytes)
    driver.fill(source, 0x5a, copy_bytes)
    copy = lambda: driver.call("cuMemcpyDtoDAsync_v2", ctypes.c_ulonglong(target), ctypes.c_ulonglong(source), ctypes.c_size_t(copy_bytes), None)
    watch.milliseconds(copy)
    taken = statistics.median(watch.milliseconds(copy) for _ in range(COPIES))
    nothing = statistics.median(watch.milliseconds(lambda: None) for _ in range(COPIES))
    driver.free(source)
    driver.free(target)
    return 2 * copy_bytes / max(taken, 1e-6) * 1e3, nothing


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


def profile(runner, artifact, steps, seconds):
    """Profiles an artifact. Returns (the JSON object of the profile, None), or (None, a description of the failure)."""
    path = runner.folder / "profile.json"
    path.unlink(missing_ok=True)
    run = runner.run(artifact, [f"--steps={1 + steps}", "--profile", f"--profile-file={path}"], seconds)
    if run["problem"]:
        return None, run["problem"]
    try:
        found = json.loads(path.read_text())
        return (found, None) if found["commands"] else (None, "expected times of commands, found none")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, f"{path.name}: {error}"


def share_artifacts(runner, arguments, wanted, chips, driver, peak, clock, say):
    """Profiles each artifact and returns the report. `peak` is the TFLOP/s of bf16 products according to the GPU's data sheet, or None if the GPU is
    unknown."""
    bandwidth, nothing = measure_device(driver, arguments.copy_bytes)
    driver.close()
    measured = measure_products(arguments.bundle, clock.left())
    products = measured or (peak * 1e12 if peak else None)
    report = {"bandwidth": bandwidth, "event_ms": nothing, "products": products, "measured": measured is not None, "artifacts": [], "wrong": 0}
    for model in wanted:
        for chip in chips:
            for gemm in model["gemm"]:
                artifact = arguments.bundle / "models" / chip / models.artifact_name(model, 1, gemm)
                spent = clock.left() < 1
                found, problem = (None, "not run: the time limit of this part is reached") if spent else profile(runner, artifact, arguments.steps, clock.left())
                report["wrong"] += problem is not None and not spent
                rows = [row_of(each, found["steps"], bandwidth, products) for each in found["commands"]] if found else []
                step = found["nanoseconds"] / found["steps"] / 1e6 if found else None
                report["artifacts"].append({"model": model["name"], "chip": chip, "gemm": gemm, "problem": problem, "step_ms": step, "rows": rows, "kinds": sum_by_kind(rows)})
                say(f"{chip} {model['name']}, {gemm}: {problem or describe(report['artifacts'][-1])}")
    return report


def most_lost(report):
    """Returns (excess, row, artifact) of the kernel with the largest excess, or None if nothing was timed. The excess of a kernel is its measured
    milliseconds per step minus the milliseconds of its floor."""
    found = [(row["ms"] - row["floor_ms"], row, artifact) for artifact in report["artifacts"] for row in artifact["rows"]]
    return max(found, key=lambda each: each[0]) if found else None


def describe(artifact):
    whole = next(kind for kind in artifact["kinds"] if kind["kind"] == "all")
    return f"{len(artifact['rows'])} kinds of commands, {whole['ms']:.2f} ms of a step, floors {whole['floor_ms']:.2f} ms"
