"""Results of training as JSON, and as Markdown ready for docs/benchmarks. Parts that were run by other commands on the same GPU are kept."""
import json


def bytes_text(count):
    return "" if count is None else f"{count / 2**20:.1f} MiB"


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def table(columns, rows):
    return [row(*columns), "|" + "---|" * len(columns), *[row(*cells) for cells in rows]]


def verdict(each):
    return "; ".join(each["problems"]) or "holds"


def training_section(part):
    """Losses and memory."""
    lines = ["## Losses and memory", "",
             f"Losses of each step beside those of the CPU's artifact of the same model, seed and tokens (computed by `build`, which says where in `models/*.cpu.json`), or beside those "
             f"of one rank: at most {part['tolerance']:g} apart, relative. bf16, masters in f32. With several ranks, which share the GPU, `bits` says whether parameters, "
             "optimizer states and losses are those of one rank without sharding beside them. The arena has to be the plan to the byte, and what is in use "
             "beside the arenas not to grow behind the first step.", ""]
    cells = []
    for each in part["rows"]:
        difference, bits = each.get("difference"), each.get("equal_bits")
        cells.append([each["chip"], each["model"], each["what"], len(each.get("losses", [])), each.get("against", ""),
                      "" if difference is None else f"{difference:.2g}", "" if bits is None else "equal" if bits else "not equal",
                      each.get("planned_bytes") or "", each.get("measured_bytes") or "", bytes_text(each.get("beside_bytes")),
                      "" if each.get("grown_bytes") is None else each["grown_bytes"], verdict(each)])
    return lines + table(["code", "model", "what", "steps", "beside", "worst", "bits", "planned, bytes", "arena, bytes", "beside the arenas", "grew by, bytes", ""], cells)


def sanitizer_section(part):
    return ["## compute-sanitizer", "", *table(["tool", "what", ""], [[each["tool"], each["what"], each["text"]] for each in part["rows"]])]


SECTIONS = {"training": training_section, "sanitizer": sanitizer_section}


class Report:
    """gpu_step.json and gpu_step.md in a folder, written anew whenever a part has ended."""

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
        """A line for each part of this command."""
        lines = []
        if "training" in self.added:
            part = self.parts["training"]
            lines.append(f"{len(part['rows'])} runs of training, {part['wrong']} of which do not hold")
        return lines
