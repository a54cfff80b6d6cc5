"""The jobs of the suite, in their order. A job is a dict:

id       unique name, by which a continued run finds what it has measured
part     smoke, headline, steps, shares, timings, checks, training or sanitizer
child    which process runs the job: "kernels" (worker.py with the driver alone), "peers" (worker.py with PyTorch) or "host" (steps.py starts a program)
limit    time limit in seconds; least: the seconds that must be left for it to begin
by       fraction of all seconds after which the job is put off until the jobs behind it are done
and the members that the function for its `kind` reads.

Smoke comes first, because it says which of the others can work: tensor maps, machine code, PTX, then kernels whose order of blocks or memory only hardware
tests. The headline kernels and whole steps follow, then everything else.
"""
import models
from artifact import read_code
from bundle import BundleError, read_description

PARTS = ("smoke", "headline", "steps", "shares", "timings", "checks", "training", "sanitizer")
PREFIXES = {"forward": "fwd_", "backward": "bwd_", "product": ""}  # the name of a kernel is this prefix, followed by the name of its case
PEERS = {"product": ("cuBLASLt",), "forward": ("cuDNN", "FA3", "FA2", "efficient", "FlexAttention"), "backward": ("cuDNN", "FA3", "FA2", "efficient", "FlexAttention")}
FAST_PEERS = ("cuBLASLt", "cuDNN", "FA3")  # those of the headline, which need no compilation
BY = {"ptx": 0.15, "smoke": 0.35, "headline": 0.65, "steps": 0.9}
TINY_SECONDS, LARGE_SECONDS, COMPILED_SECONDS = 30, 90, 150
LARGE = 1 << 22  # elements of a result above which a kernel has more time
NEED_NUMPY = ("repeat", "check", "time", "copies")  # kinds of jobs
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def job(part, what, name, chip, kind, child, limit, least=3, by=None, **members):
    words = [part, kind, what, name, chip]
    return {"id": "/".join(str(word) for word in words if word), "part": part, "what": what, "name": name, "chip": chip, "kind": kind, "child": child, "limit": limit,
            "least": least, "by": BY.get(by or part, 1.0), **members}


class Plan:
    """Makes the jobs from the description of a bundle and the options of run_all. Throws BundleError."""

    def __init__(self, description, chips, options):
        self.description, self.chips, self.options, self.bundle = description, chips, options, options.bundle
        self.best = sorted(chips, key=lambda chip: (chip.endswith("a"), int(chip.strip("sm_a"))))[-1:]
        self.cases = {each["name"]: each for group in description["groups"].values() for each in group if options.only in each["name"]}

    def jobs(self):
        found = [each for part in PARTS if part in self.options.parts for each in getattr(self, part)()]
        seen = {}
        for each in found:
            each["limit"] *= self.options.time_factor
            seen.setdefault(each["id"], each)
        return list(seen.values())

    # Kernels

    def directions(self, case, chip):
        names = {kernel["name"] for kernel in read_description(self.bundle / case["name"] / chip)["kernels"]}
        return [direction for direction, prefix in PREFIXES.items() if prefix + case["name"] in names]

    def kernel_job(self, part, kind, case, direction, chip, **members):
        size = case["m"] * case["n"] if direction == "product" else case["b"] * case["h"] * case["s"] * case["d"]
        limit = LARGE_SECONDS if size > LARGE else TINY_SECONDS
        what = members.pop("what", direction)
        return job(part, what, case["name"], chip, kind, "kernels", limit, path=str(self.bundle / case["name"] / chip), case=case, direction=direction,
                   spots=size > self.options.whole, **members)

    def time_jobs(self, part, case, direction, chip, peers):
        """Yields our time and those of other libraries. They are measured one after another, so that clocks and temperature are alike."""
        yield self.kernel_job(part, "time", case, direction, chip, rounds=self.options.rounds)
        for peer in peers:
            if peer in PEERS[direction] and peer in self.options.peers and computes(peer, case):
                limit = COMPILED_SECONDS if peer == "FlexAttention" else LARGE_SECONDS
                yield job(part, direction, case["name"], "", f"time of {peer}", "peers", limit, case=case, direction=direction, peer=peer, rounds=self.options.rounds)

    def smoke(self):
        items = [(name, chip, self.bundle / name / chip) for chip in reversed(self.chips) for name in self.cases]
        items += [(path.name, chip, path) for chip in reversed(self.chips) for path in self.artifacts(chip)]
        for name, chip, path in items:
            yield job("smoke", "tensor maps", name, chip, "maps", "kernels", TINY_SECONDS, path=str(path))
        for form in ("cubin", "ptx"):
            for name, chip, path in items:
                yield job("smoke", f"load {form}", name, chip, "load", "kernels", LARGE_SECONDS, by=form, path=str(path), form=form)
        for direction, name, streams in self.description["smoke"]:
            for chip in self.best if name in self.cases else []:
                what = f"{direction} beside itself" if streams > 1 else direction
                yield self.kernel_job("smoke", "repeat", self.cases[name], direction, chip, what=what, streams=streams, runs=self.options.repeats,
                                      seconds=TINY_SECONDS * self.options.time_factor / 2)
        yield from self.smoke_runs()

    def smoke_runs(self):
        """Yields runs of fsdp-run: recorded steps, two ranks, and a kernel with clusters."""
        for model in self.models("tiny")[:1]:
            for what, ranks, gemm, options in checks_of(model):
                if options and ranks <= 2:
                    yield self.training_job("smoke", model, self.best[0], what, ranks, gemm, options)
        clusters = [path for chip in self.best for path in self.artifacts(chip) if has_clusters(path)]
        for path in clusters[:1]:
            yield job("smoke", "clusters", path.name, self.best[0], "run", "host", LARGE_SECONDS, artifact=str(path), options=["--steps=2"])

    def headline(self):
        yield job("headline", "copies", "", "", "copies", "kernels", TINY_SECONDS, bytes=self.options.copy_bytes, rounds=12)
        for direction, name in self.description["headline"]:
            for chip in self.best if name in self.cases else []:
                yield from self.time_jobs("headline", self.cases[name], direction, chip, FAST_PEERS)

    def group(self, name):
        return [case for case in self.description["groups"].get(name, []) if self.options.only in case["name"]]

    def timings(self):
        headline = {tuple(each) for each in self.description["headline"]}
        for chip in [*self.best, *(chip for chip in self.chips if chip not in self.best)]:
            for case in self.group("timed"):
                for direction in self.directions(case, chip):
                    if chip not in self.best or (direction, case["name"]) not in headline:
                        yield from self.time_jobs("timings", case, direction, chip, FAST_PEERS if chip in self.best else ())
        for case in self.group("timed"):
            for direction in self.directions(case, self.best[0]):
                yield from list(self.time_jobs("timings", case, direction, self.best[0], [peer for peer in PEERS[direction] if peer not in FAST_PEERS]))[1:]

    def checks(self):
        for group in self.options.groups:
            for chip in reversed(self.chips):
                for case in self.group(group):
                    for direction in self.directions(case, chip):
                        yield {**self.kernel_job("checks", "check", case, direction, chip), "spots": False}

    # Models

    def models(self, *groups):
        return [model for group in groups for model in self.description["models"].get(group, []) if self.options.only in model["name"]]

    def timed_models(self):
        """Returns the models whose steps are timed, Llamas first: those of "timed", or in a bundle without them those of "tiny"."""
        return sorted(self.models("timed") or self.models("tiny"), key=lambda model: model["family"] != "llama")

    def artifact(self, chip, model, ranks, gemm):
        return self.bundle / "models" / chip / models.artifact_name(model, ranks, gemm)

    def artifacts(self, chip):
        return [self.artifact(chip, model, *variant) for model in self.models("tiny", "checked", "timed") for variant in models.variants(model)]

    def steps(self):
        """Yields the fastest variants of all models first, then those of PyTorch compiled, whose compilation takes a minute, then all others."""
        for turn in range(1, self.options.turns + 1):
            wanted = self.timed_models()
            variants = [(gemm, graph) for graph in (True, False) for gemm in models.BOTH]
            yield from (self.step_job(model, *variants[0], turn) for model in wanted if variants[0][0] in model["gemm"])
            yield from (self.torch_job(model, "compile", turn) for model in wanted if "compile" in self.options.peers)
            yield from (self.step_job(model, *each, turn) for model in wanted for each in variants[1:] if each[0] in model["gemm"])
            yield from (self.torch_job(model, "eager", turn) for model in wanted if "eager" in self.options.peers)

    def torch_job(self, model, how, turn):
        who = f"PyTorch {how}"
        return job("steps", f"{who}, turn {turn}", model["name"], "", "torch step", "host", 420, least=60 if how == "compile" else 30, needs="peers", model=model, who=who, how=how,
                   steps=self.options.steps)

    def step_job(self, model, gemm, graph, turn):
        what = f"ours, {gemm}{', CUDA graph' if graph else ''}"
        path = self.artifact(self.best[0], model, 1, gemm)
        return job("steps", f"{what}, turn {turn}", model["name"], self.best[0], "step", "host", 120, least=20, model=model, who=what, artifact=str(path), graph=graph, steps=self.options.steps)

    def shares(self):
        for model in self.timed_models():
            for gemm in model["gemm"]:
                path = self.artifact(self.best[0], model, 1, gemm)
                yield job("shares", gemm, model["name"], self.best[0], "profile", "host", 120, least=15, artifact=str(path), gemm=gemm, steps=self.options.steps)

    def training_job(self, part, model, chip, what, ranks, gemm, options):
        return job(part, what, model["name"], chip, "training", "host", 60 if part == "smoke" else 180, least=5, model=model, ranks=ranks, options=options,
                   artifact=str(self.artifact(chip, model, ranks, gemm)))

    def training(self):
        for model in self.models(*self.options.groups):
            for chip in reversed(self.chips):
                for what, ranks, gemm, options in checks_of(model):
                    yield self.training_job("training", model, chip, what, ranks, gemm, options)

    def sanitizer(self):
        for tool in TOOLS:
            if self.group("tiny"):
                yield job("sanitizer", tool, "kernels", "", "sanitizer", "host", 240, least=20, tool=tool, artifact=None)
            for model in self.models("tiny"):
                for chip in self.best:
                    for ranks, gemm in models.variants(model):
                        path = self.artifact(chip, model, ranks, gemm)
                        yield job("sanitizer", tool, path.name, chip, "sanitizer", "host", 240, least=20, tool=tool, artifact=str(path), model=model)


def computes(peer, case):
    """Returns false if it is known that a library does not compute a case: only FlexAttention has functions of scores and masks by documents."""
    return peer in ("cuBLASLt", "FlexAttention") or (case["score"] == "none" and case["mask"] != "documents")


def has_clusters(path):
    try:
        return any(launch["cluster"] > 1 for launch in read_code(path).launches)
    except BundleError:
        return False


def checks_of(model):
    """Returns a tuple (name, ranks, gemm, options) for each run of a model, in the order in which the runs are made."""
    checks = []
    for ranks, gemm in models.variants(model):
        name = f"{ranks} ranks" if ranks > 1 else gemm
        checks.append((name, ranks, gemm, ["--check-against=unsharded"] if ranks > 1 else []))
        checks.append((f"{name}, CUDA graph", ranks, gemm, ["--cuda-graph"]))
    return checks
