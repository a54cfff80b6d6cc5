"""Predicts times of kernels and of steps with the compiler's model, on the machine that builds a bundle.

1. `fsdp-kernel-test --emit=clocks` prints the clocks and the bytes of each launch of a kernel. A launch takes launch_seconds + max(clocks /
   clocks_per_second, bytes / bytes_per_second) of the cluster file (docs/explanation/simulator.md); a kernel takes the sum over its launches.
2. `fsdp-run --simulate` prints the time of a step and of each of its kernels, if the artifact states clocks.

What the tools do not print is left out, and `remark` says so.
"""
import json
import pathlib
import re
import subprocess

STEP = re.compile(r"^simulated: a step of ([0-9.]+) ms", re.MULTILINE)
BY_CLOCKS = re.compile(r"^kernels: .*by their clocks", re.MULTILINE)
KERNEL = re.compile(r"^ *[0-9.]+ +\d+ +\d+ +([0-9.]+) +([a-z]+) +[0-9.]+ % +[0-9.]+ % +[a-z]+ (\S+)", re.MULTILINE)  # us each, bound, name
UNITS = ("tensor", "issue", "special", "shared", "cache")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def read_clocks(text):
    """Returns {launch: {column: number}} of the output of --emit=clocks."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return {words[0]: dict(zip(lines[0][1:], map(float, words[1:]))) for words in lines[1:]}


class Predictor:
    """Collects predictions for a chip's kernels and steps from the tools, by the rates of a cluster file."""

    def __init__(self, cluster):
        self.cluster = pathlib.Path(cluster)
        self.device = dict(json.loads(self.cluster.read_text())["device"])
        self.kernels, self.steps, self.missing = {}, {}, set()

    def time_of(self, row):
        """Returns the seconds of a launch, and what bounds them."""
        clocks, moving = row["clocks"] / self.device["clocks_per_second"], row["bytes"] / self.device["bytes_per_second"]
        unit = max((unit for unit in UNITS if unit in row), key=lambda unit: row[unit], default="clocks")
        return self.device["launch_seconds"] + max(clocks, moving), unit if clocks >= moving else "memory"

    def predict_kernels(self, source, folder, chip):
        """Adds the kernels of a file, whose launches are in kernels.json of `folder`. The clock rate of the cluster file holds for its chip alone."""
        if self.device.get("chip") != chip or "clocks_per_second" not in self.device:
            return self.missing.add(f"{self.cluster.stem} has no clock rate for {chip}")
        done = run("fsdp-kernel-test", source, f"--target={chip}", "--emit=clocks")
        if done.returncode:
            return self.missing.add("fsdp-kernel-test does not print clocks")
        rows = read_clocks(done.stdout)
        for kernel in json.loads((folder / "kernels.json").read_text())["kernels"]:
            launches = [rows[launch["entry"]] for launch in kernel["launches"]]
            times = [self.time_of(row) for row in launches]
            self.kernels.setdefault(chip, {})[kernel["name"]] = {"ms": 1e3 * sum(seconds for seconds, _ in times), "clocks": sum(row["clocks"] for row in launches),
                                                                 "bound": max(times)[1]}

    def predict_step(self, artifact, chip):
        """Adds the step of an artifact of one rank."""
        done = run("fsdp-run", artifact, f"--simulate={self.cluster}")
        step = STEP.search(done.stdout)
        if done.returncode or not step or not BY_CLOCKS.search(done.stdout):
            return self.missing.add(f"fsdp-run --simulate does not time {chip}'s kernels by their clocks")
        kernels = {name: {"us": float(us), "bound": bound} for us, bound, name in KERNEL.findall(done.stdout)}
        self.steps.setdefault(chip, {})[artifact.name] = {"ms": float(step[1]), "kernels": kernels}

    def write(self, out):
        remark = f"by the clocks of the plan and the rates of {self.cluster.name}" if self.kernels or self.steps else "none"
        remark = "; ".join([remark, *sorted(self.missing)])
        (out / "predictions.json").write_text(json.dumps({"remark": remark, "kernels": self.kernels, "steps": self.steps}, indent=1) + "\n")
