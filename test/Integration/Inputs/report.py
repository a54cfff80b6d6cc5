"""Checks NAME.html against NAME.json, and in a browser if one is installed. With --host: for a plan with buffers on the
host."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

name, host = sys.argv[1], "--host" in sys.argv
page = open(f"{name}.html").read()
if re.search(r'(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest', page) or page.count("</script>") != 1:
    sys.exit("the page reads something else, or its data ends its script")
print("one page, nothing from elsewhere")
plan = json.loads(re.search(r"const plan = (.*);\n", page)[1])
explained = json.load(open(f"{name}.json"))
for part in ("memory", "unsharded", "units", "communication", "schedule", "dtypes"):
    if plan[part] != explained[part]:
        sys.exit(f"{part} is not as --explain=json has it")
if plan["title"] != "Training step of model<script>.mlir":
    sys.exit(plan["title"])

last = len(plan["moments"]) - 1


def place(buffers, arena):
    """Returns the number of buffers. Fails if two live buffers overlap, or if one leaves the arena."""
    placed = []
    for name, category, size, offset, first, end in buffers:
        first, end = (0, last) if first < 0 else (first, end)
        for other, begin, reach, low, high in placed:
            if size and begin < offset + size and offset < reach and low <= end and first <= high:
                sys.exit(f"{name} lies on {other}")
        if size:
            placed.append((name, offset, offset + size, first, end))
    if max((reach for _, _, reach, _, _ in placed), default=0) > arena:
        sys.exit("a buffer leaves the arena")
    return len(placed)


print(f"{place(plan['buffers'], plan['memory']['peak'])} buffers, none on top of another, up to the arena's end")
print(f"{place(plan['host_buffers'], plan['memory']['host'])} on the host")
if host != bool(plan["host_buffers"]) or sum(plan["memory"].get("on_host", {}).values()) < plan["memory"]["host"]:
    sys.exit("what is on the host is not all there")

if plan["moments"] != sorted(plan["moments"]) or any(begin > end for _, _, _, begin, end, _ in plan["commands"]):
    sys.exit("time runs backwards")
if not {0, 1, 2} <= {lane for _, lane, *_ in plan["commands"]} or max(turns for *_, turns in plan["commands"]) != 2 or \
        ({3, 4} <= {lane for _, lane, *_ in plan["commands"]}) != host:
    sys.exit("a lane or the loop is missing")
print(f"{len(plan['commands'])} commands in order of time")

browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if not browser:
    print("browser: none here: skipped")
else:
    with tempfile.TemporaryDirectory() as profile:
        out = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom",
                              "file://" + os.path.abspath(f"{name}.html")], capture_output=True, text=True, timeout=240).stdout
    rows = out.count("<tr>")
    if 'data-ready="yes"' not in out or rows < 9 + len(plan["units"]) + len(plan["dtypes"]):
        sys.exit(f"the browser did not fill the page: {rows} rows")
    if ('<div id="beside" hidden' in out) == host:
        sys.exit("the host's arena is not shown where there is one, or shown where there is none")
    print("browser: ready")
