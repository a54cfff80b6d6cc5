"""Writes the results of training as JSON, and as Markdown for docs/benchmarks. A part that this run does not measure keeps the results of an earlier
run on the same GPU."""
import json

import models
import shares
import steps as step_times


def bytes_text(count):
    return "" if count is None else f"{count / 2**20:.1f} MiB"


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def table(columns, rows):
    return [row(*columns), "|" + "---|" * len(columns), *[row(*cells) for cells in rows]]


def verdict(each):
    return "; ".join(each["problems"]) or "holds"


def training_section(part):
    """Returns the lines of the section on losses and memory."""
    lines = ["## Losses and memory", "",
             f"Losses of each step beside those of the CPU's artifact of the same model, seed and tokens (computed by `build`, which says where in `models/*.cpu.json`), or beside those "
             f"of one rank: at most {part['tolerance']:g} apart, relative. bf16, masters in f32. With several ranks, which share the GPU, `bits` says whether parameters, "
             "optimizer states and losses are those of one rank without sharding beside them. The arena has to be the plan to the byte, and what is in use "
             "beside the arenas not to grow after the first step.", ""]
    cells = []
    for each in part["rows"]:
        difference, bits = each.get("difference"), each.get("equal_bits")
        cells.append([each["chip"], each["model"], each["what"], len(each.get("losses", [])), each.get("against", ""),
                      "" if difference is None else f"{difference:.2g}", "" if bits is None else "equal" if bits else "not equal",
                      each.get("planned_bytes") or "", each.get("measured_bytes") or "", bytes_text(each.get("beside_bytes")),
                      "" if each.get("grown_bytes") is None else each["grown_bytes"], verdict(each)])
    return lines + table(["code", "model", "what", "steps", "beside", "worst", "bits", "planned, bytes", "arena, bytes", "beside the arenas", "grew by, bytes", ""], cells)


def share(value):
    return "" if value is None else f"{100 * value:.1f} %"


def step_cells(row):
    ratios = [f"{row['ratios'][who]:.2f}" if who in row["ratios"] else "" for who in step_times.PEERS]
    peak = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**30:.1f}"
    head = [row["chip"], row["model"], row["who"]]
    if row["ms"] is None:
        return [*head, "", "", "", "", "", *ratios, peak, row["problem"]]
    return [*head, f"{row['ms']:.2f}", share(row["spread"]), f"{row['tokens_per_second']:,.0f}", f"{row['tflops']:.1f}", share(row["utilisation"]), *ratios, peak,
            row["problem"] or ""]


def steps_section(part):
    """Returns the lines of the section on step times and their ratios to PyTorch."""
    peak = f"{part['peak']} TFLOP/s, this chip's for dense bf16 by its data sheet" if part["peak"] else "a peak that is not known for this chip"
    return ["## Time of a step", "",
            f"bf16, masters in f32, AdamW, one rank; PyTorch: `fully_shard` with the same types, fused AdamW, its default attention, each block and the head with the loss "
            f"compiled, or nothing (eager). Each in a process of its own, {part['turns']} turns in all; medians, spread from the first to the last decile. Model FLOP utilisation (MFU) is "
            f"tokens/s times FLOPs of a token over {peak}. {models.FLOPS_RULE}. The last ratios are PyTorch's time over ours: above 1 is faster than PyTorch; "
            f"the goal is {step_times.GOAL} of what it compiles.", "",
            *table(["code", "model", "what", "ms", "spread", "tokens/s", "TFLOP/s", "MFU", *(f"of {who}" for who in step_times.PEERS), "arena or peak, GiB", ""],
                   [step_cells(each) for each in part["rows"]])]


def shares_section(part):
    """Returns the lines of the section on kernels and their floors."""
    products = f"{part['products'] / 1e12:.0f} TFLOP/s of bf16 {'as cuBLAS has them here at 8192 cubed' if part['measured'] else 'by the data sheet'}" if part["products"] else \
        "products at a rate that is not known, so by bytes alone"
    lines = ["## Kernels beside their floors", "",
             f"Each launch between two events of its stream, one by one (`fsdp-run --profile`); events around nothing are {1e3 * part['event_ms']:.1f} us apart. Floor: what a kernel reads and "
             f"writes at {part['bandwidth'] / 1e12:.2f} TB/s, of a copy within the GPU's memory here, or its products at {products}, the larger. What is in a cache may be faster than "
             "its floor.", ""]
    for artifact in part["artifacts"]:
        lines += [f"### {artifact['model']}, {artifact['gemm']}, {artifact['chip']}", ""]
        if artifact["problem"]:
            lines += [f"No times: {artifact['problem']}", ""]
            continue
        lines += [f"A step of {artifact['step_ms']:.2f} ms, with each command waited for.", "",
                  *table(["kind", "runs", "ms of a step", "floor, ms", "share of floor"],
                         [[each["kind"], f"{each['runs']:.0f}", f"{each['ms']:.3f}", f"{each['floor_ms']:.3f}", share(each["share"])] for each in artifact["kinds"]]), "",
                  *table(["kernel", "kind", "first", "runs", "us each", "ms of a step", "MB", "GFLOP", "floor by", "share of floor"],
                         [[each["name"], each["kind"], each["first"], f"{each['runs']:.0f}", f"{each['microseconds']:.1f}", f"{each['ms']:.3f}", f"{each['bytes'] / 1e6:.1f}",
                           f"{each['flops'] / 1e9:.2f}", each["bound"], share(each["share"])] for each in artifact["rows"][:shares.SHOWN]])]
        rest = artifact["rows"][shares.SHOWN:]
        if rest:
            lines += ["", f"And {len(rest)} others, {sum(each['ms'] for each in rest):.3f} ms of a step."]
        lines.append("")
    return lines[:-1]


def sanitizer_section(part):
    return ["## compute-sanitizer", "", *table(["tool", "what", ""], [[each["tool"], each["what"], each["text"]] for each in part["rows"]])]


SECTIONS = {"training": training_section, "steps": steps_section, "shares": shares_section, "sanitizer": sanitizer_section}


class Report:
    """The files gpu_step.json and gpu_step.md in a folder, which are rewritten at the end of each part of run_all."""

    def __init__(self, folder, device, date, software, command):
        self.folder, self.device = folder, device
        self.now = {"date": date, "software": software, "command": command}
        try:
            kept = json.loads((folder / "gpu_step.json").read_text())
            self.parts = kept["parts"] if kept["device"] == device else {}
        except (OSError, ValueError, KeyError, TypeError):
            self.parts = {}
        self.added = []

    def add(self, name, part):
        self.parts[name] = {**self.now, **part}
        self.added.append(name)
        (self.folder / "gpu_step.json").write_text(json.dumps({"device": self.device, "parts": self.parts}, indent=1) + "\n")
        (self.folder / "gpu_step.md").write_text(self.markdown())

    def markdown(self):
        lines = [f"# The step on {self.device}", "", "By `benchmarks/gpu/build OUT` and `OUT/run_all`.", ""]
        for name, section in SECTIONS.items():
            part = self.parts.get(name)
            if part:
                lines += [*section(part), "", f"{part['date']}, {part['software']}: `{part['command']}`", ""]
        return "\n".join(lines)

    def summary(self):
        """Returns one line of text for each part that has run."""
        lines = []
        if "training" in self.added:
            part = self.parts["training"]
            lines.append(f"{len(part['rows'])} runs of training, {part['wrong']} failed")
        if "steps" in self.added:
            worst = step_times.worst_ratio(self.parts["steps"]["rows"])
            lines.append("worst ratio: none, since no other library was timed" if not worst else
                         f"worst ratio: {worst[0]:.2f} of {worst[2]}, by {worst[1]['model']} at its fastest ({worst[1]['who']})")
        if "shares" in self.added and shares.most_lost(self.parts["shares"]):
            lost, worst, artifact = shares.most_lost(self.parts["shares"])
            lines.append(f"largest excess: {worst['name']} ({worst['kind']}, first: {worst['first']}) of {artifact['model']}, {artifact['gemm']}: {lost:.3f} ms of a step "
                         f"above its floor; share of floor {share(worst['share'])}")
        return lines
