"""Runs jobs that are programs of their own: fsdp-run, PyTorch's steps and compute-sanitizer. Each is killed with its children at its time limit."""
import json

import sanitizer
import shares
import steps
import training
from bundle import BundleError
from runs import Runner


class Programs:
    def __init__(self, options, device):
        self.options, self.runner, self.peak, self.alone = options, Runner(options.bundle, options.driver), steps.peak_of(device), {}

    def run(self, job, seconds):
        """Returns {"status", "text", ...}; with the status "hang", "waited" are the seconds after which the program was killed."""
        runner, bundle = self.runner, self.options.bundle
        functions = {"training": lambda: training.check_training(runner, bundle / "models", job, seconds, self.alone),
                     "run": lambda: self.run_artifact(job, seconds),
                     "step": lambda: steps.time_artifact(runner, job, seconds, self.peak),
                     "torch step": lambda: steps.time_torch(runner, bundle, job, seconds, self.peak),
                     "profile": lambda: shares.profile(runner, job, seconds),
                     "sanitizer": lambda: sanitizer.sanitize(runner, self.options, job, seconds)}
        try:
            found = functions[job["kind"]]()
        except BundleError as error:
            found = {"status": "error", "text": str(error)}
        if found["status"] != "hang":
            found.pop("waited", None)
        return found

    def run_artifact(self, job, seconds):
        """Runs some steps of an artifact, whose losses are only expected to be finite."""
        run = self.runner.run(job["artifact"], job["options"], seconds)
        losses = [step["loss"] for step in run["steps"]]
        row = {"status": run["status"], "text": run["problem"] or json.dumps(losses), "waited": run["waited"], "losses": losses}
        if not run["problem"] and (not losses or None in losses):
            row.update(status="wrong", text=f"expected finite losses, found {json.dumps(losses)}")
        return row
