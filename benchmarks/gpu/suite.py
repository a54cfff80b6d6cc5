"""Runs the parts of run_all. Each part is a method. A part that cannot run prints the reason, and the other parts still run."""
import datetime

import kernels
import models
import sanitizer
import shares
import step_tables
import steps
import tables
import training
from bundle import check_program, read_losses
from driver import Driver
from runs import Clock, Runner


def say(text):
    print(text, flush=True)


def find_torch():
    """Returns a text that describes PyTorch and says whether PyTorch can use a GPU."""
    try:
        import torch
    except ImportError:
        return "no PyTorch", False
    has_gpu = torch.cuda.is_available()
    return f"PyTorch {torch.__version__}, {f'CUDA {torch.version.cuda}' if has_gpu else 'which finds no GPU'}", has_gpu


def find_numpy():
    """Returns None if numpy can be imported, and otherwise a description of the problem."""
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        return f"expected Python with numpy, found none: {error}"
    return None


class Suite:
    """The state that all parts share. `right` is true if all checks so far passed. `done` is the number of checks and measurements so far."""

    def __init__(self, arguments, description, chips, device, command):
        self.arguments, self.description, self.chips = arguments, description, chips
        self.done, self.right = 0, True
        self.no_numpy = find_numpy() if {"kernels", "sanitizer", "kernel-times"} & set(arguments.parts) else None
        is_used = {"steps", "shares", "kernel-times"} & set(arguments.parts)
        software, self.has_torch = find_torch() if is_used else ("PyTorch not looked for", False)
        self.report = {"device": device, "date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "rows": [], "peak": None,
                       "sources": {}, "software": software, "checks": []}
        self.steps = step_tables.Report(arguments.out, device, self.report["date"], self.report["software"], command)
        self.runner = Runner(arguments.bundle, arguments.driver, arguments.out)

    def clock(self):
        return Clock(self.arguments.seconds)

    def models(self, *groups):
        """Returns the models of the given groups that the options --groups and --only select."""
        asked = [group for group in groups if group in self.arguments.groups.split(",")]
        return [model for group in asked for model in self.description["models"].get(group, []) if self.arguments.only in model["name"]]

    def check_bundle(self):
        """Checks the files of the bundle that the selected parts need. Throws BundleError."""
        parts = set(self.arguments.parts)
        if "kernels" in parts:
            kernels.jobs_of(self.description, self.chips, self.arguments)
        if {"training", "steps", "shares", "sanitizer"} & parts and self.models("tiny", "checked", "timed"):
            check_program(self.runner.program)
        for model in self.models("tiny", "checked") if "training" in parts else []:
            read_losses(self.arguments.bundle / "models" / f"{model['name']}.cpu.json", model["steps"])

    def run_kernels(self):
        """Checks the kernels. Throws BundleError."""
        if self.no_numpy:
            if kernels.jobs_of(self.description, self.chips, self.arguments):
                say(f"kernels: not checked: {self.no_numpy}")
                self.right = False
            return
        checks = self.report["checks"] = kernels.check_all(self.description, self.chips, self.arguments, self.report["sources"])
        if not checks:
            return
        compared = [each for each in checks if each["worst"]]
        wrong, failed = sum(not each["ok"] for each in compared), len(checks) - len(compared)
        say(f"{len(compared)} kernels compared with float64, {wrong} wrong{f', {failed} without a result' if failed else ''}")
        self.count(len(checks), not wrong and not failed)

    def run_training(self):
        part = training.check_training(self.runner, self.arguments.bundle, self.models("tiny", "checked"), self.chips, self.clock(), say)
        if part["rows"]:
            self.steps.add("training", part)
            self.count(len(part["rows"]), not part["wrong"])

    def run_steps(self):
        """Times the steps of the group "timed", or of the group "tiny" if the options select no model of "timed"."""
        wanted = self.models("timed") or self.models("tiny")
        part = steps.time_steps(self.runner, self.arguments, wanted, self.chips, self.report["device"], self.clock(), say)
        if part["rows"]:
            self.steps.add("steps", part)
            self.count(len(part["rows"]), not part["wrong"])

    def run_shares(self):
        wanted = self.models("timed") or self.models("tiny")
        if wanted:
            part = shares.share_artifacts(self.runner, self.arguments, wanted, self.chips, Driver(self.arguments.driver), steps.peak_of(self.report["device"]),
                                          self.clock(), say)
            self.steps.add("shares", part)
            self.count(len(part["artifacts"]), not part["wrong"])

    def run_sanitizer(self):
        has_kernels = any(self.description["groups"].values()) and not self.no_numpy
        rows = sanitizer.sanitize(self.arguments, self.runner, has_kernels, self.models("tiny"), self.chips, self.clock(), say)
        self.steps.add("sanitizer", {"rows": rows})
        self.report["sanitizer"] = {each["tool"]: each["text"] for each in rows if each["what"] in ("kernels", "all")}
        self.count(len(rows), not any(each["clean"] is False for each in rows))

    def run_kernel_times(self):
        """Times kernels beside other libraries. Runs after all other parts, because it uses PyTorch in this process."""
        if self.has_torch and self.no_numpy:
            say(f"kernel-times: not run: {self.no_numpy}")
        elif self.has_torch:
            before = kernels.clocks()
            failed = {(each["chip"], each["direction"], each["name"]) for each in self.report["checks"] if not each["worst"]}
            self.report["rows"], self.report["peak"], left = kernels.time_all(Driver(self.arguments.driver), self.description, self.chips, self.arguments,
                                                                              failed, self.clock())
            self.report["clocks"] = [before, kernels.clocks()]
            if left:
                say(f"{left} kernels not timed: the time limit of this part is reached")
        if self.report["checks"] or self.report["rows"]:
            tables.write(self.report, self.arguments.out)
            say("\n".join(tables.goals(self.report["rows"])))
        self.count(len(self.report["rows"]), True)

    def count(self, number, right):
        self.done += number
        self.right = self.right and right


PARTS = {"kernels": Suite.run_kernels, "training": Suite.run_training, "steps": Suite.run_steps, "shares": Suite.run_shares, "sanitizer": Suite.run_sanitizer, "kernel-times": Suite.run_kernel_times}
CHECKS = ("kernels", "training")
