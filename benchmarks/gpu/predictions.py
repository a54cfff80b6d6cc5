"""Predicted times of kernels and of steps, which benchmarks/gpu/build computes with the compiler's model (predict.py) and writes to predictions.json."""
import pathlib

from bundle import read_json

PREFIXES = {"forward": "fwd_", "backward": "bwd_", "product": ""}


class Predictions:
    """Without the file, or without a prediction for a kernel, `of` returns None; `remark` says why."""

    def __init__(self, folder):
        path = pathlib.Path(folder) / "predictions.json"
        found = read_json(path, {"kernels": dict, "steps": dict, "remark": str}) if path.exists() else {"kernels": {}, "steps": {}, "remark": "the bundle has no predictions"}
        self.kernels, self.steps, self.remark = found["kernels"], found["steps"], found["remark"]

    def of(self, job):
        """Returns {"ms", ...} for a job that times a kernel or a step, else None."""
        if job["kind"] == "time":
            return self.kernels.get(job["chip"], {}).get(PREFIXES[job["direction"]] + job["name"])
        if job["kind"] in ("step", "profile"):
            return self.steps.get(job["chip"], {}).get(pathlib.Path(job["artifact"]).name)
        return None
