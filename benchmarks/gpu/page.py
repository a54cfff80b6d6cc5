"""Writes the page of results, gpu.md, and the same results as gpu.json, from rows. A row of a later command replaces that of an earlier one."""
import json
import sys

import kernel_tables
import rows as row_kinds
import step_tables
from markdown import count, table

ROWS = "gpu_rows.jsonl"
WRITTEN = ("gpu.md", "gpu.json")


class Results:
    """The rows of all commands: their headers and the last row of each job."""

    def __init__(self, rows):
        self.headers, self.rows = [row for row in rows if row["part"] == "header"], row_kinds.latest(rows)
        self.device = self.headers[-1]["device"] if self.headers else "an unknown device"
        self.remark = self.headers[-1]["remark"] if self.headers else ""

    def of(self, *kinds, **members):
        return [row for row in self.rows if row["kind"] in kinds and all(row.get(name) == value for name, value in members.items())]

    def wrong(self):
        return [row for row in self.rows if row["status"] in row_kinds.WRONG]

    def left(self):
        return [row for row in self.rows if row["status"] in row_kinds.LEFT]


def head(results):
    lines = [f"# Kernels and steps on {results.device}", ""]
    for header in results.headers:
        lines.append(f"- {header['date']}, CUDA {header['cuda']}, bundle of {header['bundle']}: `{header['command']}`")
    software = sorted({row["software"] for row in results.rows if row.get("software")})
    lines += [f"- {', '.join(software)}"] if software else []
    return lines + [f"- predictions: {results.remark}", ""]


def wrong_section(results):
    wrong = results.wrong()
    if not wrong:
        return []
    return ["## What failed", "", *table(["part", "what", "name", "code", "status", ""],
                                         [[row["part"], f"{row['kind']}, {row['what']}", row["name"], row["chip"], f"**{row['status']}**", row["text"][:400]] for row in wrong]), ""]


def left_section(results):
    left = {}
    for row in results.left():
        left.setdefault((row["part"], row["text"]), []).append(row)
    if not left:
        return []
    return ["## What was left out", "", *table(["part", "jobs", "why"], [[part, len(rows), why] for (part, why), rows in left.items()]), ""]


def counts(results):
    """Returns the numbers of rows by status, in words."""
    found = {}
    for row in results.rows:
        found[row["status"]] = found.get(row["status"], 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(found.items(), key=lambda each: (each[0] != "ok", each[0])))


def markdown_of(results):
    sections = [head(results), [f"{count(len(results.rows), 'job')}: {counts(results)}.", ""], wrong_section(results), kernel_tables.smoke_section(results),
                kernel_tables.times_section(results, "headline", "Headline kernels"), step_tables.steps_section(results), step_tables.shares_section(results),
                kernel_tables.times_section(results, "timings", "Other kernels"), kernel_tables.checks_section(results), step_tables.training_section(results),
                step_tables.sanitizer_section(results), left_section(results)]
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def save(rows, folder):
    """Writes both files and returns the results."""
    results = Results(rows)
    (folder / "gpu.md").write_text(markdown_of(results))
    (folder / "gpu.json").write_text(json.dumps({"headers": results.headers, "rows": results.rows}, indent=1) + "\n")
    return results


def write(rows, folder):
    """Writes both files and prints a summary. Returns the exit code of run_all: 1 if a result is wrong or missing because something failed."""
    results = save(rows, folder)
    for row in results.wrong():
        print(f"FAILED {row_kinds.describe(row)}")
    left = {}
    for row in results.left():
        left[row["part"]] = left.get(row["part"], 0) + 1
    if left:
        print(f"left out: {', '.join(f'{count} of {part}' for part, count in left.items())}; run the rest with --continue")
    for line in kernel_tables.goals(results) + step_tables.summary(results):
        print(line)
    print(f"{count(len(results.rows), 'job')}: {counts(results)}; {folder / 'gpu.md'}")
    sys.stdout.flush()
    return 1 if results.wrong() else 0
