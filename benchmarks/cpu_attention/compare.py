#!/usr/bin/env python3
"""Compares the CPU's fused attention kernels with the processor's peak rate, with the unfused pipeline and with PyTorch, in one run.

    benchmarks/cpu_attention/compare.py [--venv=build/torch-venv] [--rounds=5] [--out=FILE]

The problem has 12 heads of dimension 64 and 4096 tokens. Builds build/bin/cpu_attention, installs torch with pip in a virtual environment (--venv,
created if missing, about 6 GB with pip's default wheel), and alternates between cpu_attention and torch in each round. A reported time is the CPU
time of the busiest thread in the fastest round, because other jobs of the machine affect this time least. If torch cannot be installed or imported,
PyTorch's columns of the table are empty, and a message says so.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[2]
DTYPES, DIRECTIONS, THREADS = ("f32", "bf16"), ("forward", "backward"), (1, 2)
PEAKS = {"f32": "f32 multiply-adds", "bf16": "bf16 dot products"}


def enter_venv(folder):
    """Restarts this script in the virtual environment `folder`, where torch is installed. Returns only if this is impossible."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"creating {folder}: pip install torch numpy", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", folder])
        if made.returncode or subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"]).returncode:
            return print(f"torch cannot be installed in {folder}: columns of PyTorch are empty", file=sys.stderr)
    if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        return print(f"torch cannot be imported in {folder}: columns of PyTorch are empty", file=sys.stderr)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads of OpenMP use no CPU time
    os.execv(python, [str(python), str(HERE), *sys.argv[1:], "--inside"])


def busy_seconds():
    """Returns the CPU seconds of each thread of this process."""
    seconds = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        seconds[task.name] = int((task / "schedstat").read_text().split()[0]) * 1e-9
    return seconds


def time_busiest(body):
    """Runs `body`. Returns the CPU seconds of the busiest thread, as cpu_attention --cpu-time measures them, and the result of `body`. Sleeps before
    and after `body`, because Linux updates the times in /proc when a thread leaves its CPU."""
    time.sleep(0.002)
    before = busy_seconds()
    result = body()
    time.sleep(0.002)
    return max(seconds - before.get(task, 0) for task, seconds in busy_seconds().items()), result


class Torch:
    """Computes causal scaled_dot_product_attention and its gradients in PyTorch."""

    def __init__(self):
        import torch
        self.torch = torch
        torch.manual_seed(1)
        self.best = {}

    def measure_round(self, length, runs):
        torch = self.torch
        attend = torch.nn.functional.scaled_dot_product_attention
        for dtype in DTYPES:
            kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
            q, k, v = (torch.randn(1, 12, length, 64, dtype=kind, requires_grad=True) for _ in range(3))
            grad = torch.randn(1, 12, length, 64, dtype=kind)
            for threads in THREADS:
                torch.set_num_threads(threads)
                for run in range(-1, runs):  # the run -1 is not counted: the first run on other threads is slower
                    forward, out = time_busiest(lambda: attend(q, k, v, is_causal=True))
                    backward, _ = time_busiest(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
                    if run >= 0:
                        self.note(("forward", dtype, threads), forward)
                        self.note(("backward", dtype, threads), backward)

    def note(self, key, seconds):
        self.best.setdefault(key, []).append(seconds)


def measure_ours(rows, length, *options):
    words = [ROOT / "build/bin/cpu_attention", "--json", "--cpu-time", "--rounds=1", f"--length={length}", *options]
    for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        rows.setdefault((row["direction"], row["dtype"], row["mask"], row["threads"]), []).append(row)


def least(rows, key, field="seconds"):
    found = [row[field] for row in rows[key] if field in row]
    return min(found) if found else None


def report(rows, torch, arguments, write):
    """Writes the measured results as Markdown tables."""
    spread = lambda times: f"{sorted(times)[len(times) // 2] / min(times):.2f}"
    write("| direction | type | threads | peak, GFLOP/s | ms | of peak | median / least | PyTorch ms | median / least | PyTorch / ours |")
    write("|---|---|---|---|---|---|---|---|---|---|")
    for direction in DIRECTIONS:
        for dtype in DTYPES:
            for threads in THREADS:
                found = rows[direction, dtype, "causal", threads]
                times = [row["seconds"] for row in found]
                peak = max(row["peak"] for row in found)
                line = (f"| {direction} | {dtype} | {threads} | {peak / 1e9:.0f} | {min(times) * 1e3:.1f} | "
                        f"{100 * found[0]['flops'] / min(times) / peak:.1f} % | {spread(times)} | ")
                if torch:
                    theirs = torch.best[direction, dtype, threads]
                    line += f"{min(theirs) * 1e3:.1f} | {spread(theirs)} | {min(theirs) / min(times):.2f} |"
                else:
                    line += "| | |"
                write(line)
    write()
    write("| type | threads | forward + backward, ms | unfused, ms | unfused / fused | causal / full, forward | backward | "
          "window 256 / full, forward | backward |")
    write("|---|---|---|---|---|---|---|---|---|")
    for dtype in DTYPES:
        for threads in THREADS:
            key = lambda direction, mask: (direction, dtype, mask, threads)
            both = sum(least(rows, key(d, "causal")) for d in DIRECTIONS)
            unfused = [least(rows, key(d, "causal"), "unfused_seconds") for d in DIRECTIONS]
            line = f"| {dtype} | {threads} | {both * 1e3:.1f} | "
            line += f"{sum(unfused) * 1e3:.0f} | {sum(unfused) / both:.2f} | " if all(unfused) else "| | "
            for mask in ("causal", "window"):
                for direction in DIRECTIONS:
                    line += f"{least(rows, key(direction, mask)) / least(rows, key(direction, 'full')):.3f} | "
            write(line.rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/torch-venv", help="virtual environment with torch (default: build/torch-venv)")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--unfused-rounds", type=int, default=1, help="rounds that include the unfused pipeline, which needs seconds and gigabytes (default: %(default)s)")
    parser.add_argument("--length", type=int, default=4096, help="tokens (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="runs of PyTorch per round (default: %(default)s)")
    parser.add_argument("--out", help="output file of the tables (default: standard output)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        subprocess.run(["ninja", "-C", ROOT / "build", "cpu_attention"], check=True, stdout=subprocess.DEVNULL)
        enter_venv(arguments.venv)
    torch = Torch() if importlib.util.find_spec("torch") else None
    rows = {}
    for done in range(arguments.rounds):
        measure_ours(rows, arguments.length, *([] if done < arguments.unfused_rounds else ["--fused-only"]))
        if torch:
            torch.measure_round(arguments.length, arguments.runs)
    lines = []
    if torch:
        lines += [f"PyTorch {torch.torch.__version__}, CPU capability {torch.torch.backends.cpu.get_cpu_capability()}; "
                  f"{arguments.rounds} rounds in turns", ""]
    report(rows, torch, arguments, lambda line="": lines.append(line))
    text = "\n".join(lines) + "\n"
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    sys.exit(main())
