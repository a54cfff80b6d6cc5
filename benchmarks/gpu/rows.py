"""The results as rows of a file, one JSON object in each line. A row is on the disk before the next job begins, so that it survives the end of the process.

The first row of a run is its header, {"part": "header", "bundle", "device", ...}. All other rows have "id", "part", "what", "name", "chip", "status", "text".
"""
import json
import os
import pathlib

UNKNOWN = ("absent", "other chip", "skipped")  # nothing to measure here, or the kernel has failed before
LEFT = ("left out", "out of time")             # a continued run does them
WRONG = ("wrong", "unequal", "hang", "crash", "error", "refused", "no start", "lost")

HEADER = {"part", "bundle", "device", "date"}
MEMBERS = {"id", "part", "what", "name", "chip", "kind", "child", "status", "text"}


class Rows:
    def __init__(self, path):
        self.path = pathlib.Path(path)

    def add(self, row):
        is_new = not self.path.exists()
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def read(self):
        """Returns the rows of the file. A last line without an end, which a killed process leaves, is no row."""
        found = []
        for line in self.path.read_text().split("\n")[:-1]:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # a run was continued after such a line
        return found

    def mend(self):
        """Ends a last line without an end, so that a row can follow."""
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            with self.path.open("a") as file:
                file.write("\n")


def find_wrong(rows):
    """Returns the first row that lacks a member of its kind, as text, or "no row" if there is none. Returns None if all rows are right."""
    for row in rows:
        header = isinstance(row, dict) and row.get("part") == "header"
        if not isinstance(row, dict) or not (HEADER if header else MEMBERS) <= set(row):
            return json.dumps(row)[:80]
    return None if rows else "no row"


def latest(rows):
    """Returns the last row of each job, in the order of the first ones. A row that says that a job was left out does not replace a result."""
    found = {}
    for row in rows:
        if row["part"] != "header" and not (row["status"] in LEFT and row["id"] in found):
            found[row["id"]] = row
    return list(found.values())


def describe(row):
    """Returns a line about a row."""
    where = ", ".join(each for each in (row["name"], row["chip"]) if each)
    kind = {"repeat": "repeat ", "check": "check ", "time": "time of ", "profile": "profile "}.get(row["kind"], "")
    what = row["what"] if row["child"] != "peers" else f"{row['kind']}, {row['what']}"
    more = [row["text"]] if row["text"] else []
    if row.get("runs"):
        more.append(f"{row['runs']} runs with equal bits" if not row["differing_words"] else f"{row['runs']} runs")
    if row.get("ms") is not None:
        more.append(f"{row['ms']:.3f} ms" + (f", {row['flops'] / row['ms'] / 1e9:.0f} TFLOP/s" if row.get("flops") else ""))
    return f"{row['part']}: {kind}{what}{': ' + where if where else ''}: {', '.join([row['status'], *more])}"
