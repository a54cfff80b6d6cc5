"""Checks the table of kernels of fsdp-run --simulate.

usage: kernel_sums.py SIMULATED [PLAN.json PAGE.html]

SIMULATED is its output. The rows must add up to the launches, and to the seconds by bounds. PLAN.json (--explain=json) and PAGE.html (--report) of
the same step must have the same launches and seconds.
"""
import json
import re
import sys

text = open(sys.argv[1]).read()
compute = float(re.search(r"^compute ([0-9.]+) ms", text, re.M)[1])
head = re.search(r"^kernels: ([0-9,]+) launches, timed [^:]*: (.*)$", text, re.M)
bounds = sum(map(float, re.findall(r"([0-9.]+) ms", head[2])))
rows = [line.split() for line in text.split("  kernel\n")[1].splitlines() if re.match(r" +[0-9.]+ +[0-9]+ +[0-9]+ ", line)]
milliseconds, launches = sum(float(row[0]) for row in rows), sum(int(row[2]) for row in rows)
slack = 0.001 * (len(rows) + 9)
assert rows and launches == int(head[1].replace(",", "")), (launches, head[1])
assert abs(milliseconds - bounds) < slack and milliseconds < compute + slack, (milliseconds, bounds, compute)
for row in rows:
    tensor, memory = float(row[5]), float(row[7])
    assert 0 <= tensor <= 100 and 0 <= memory <= 100, row
print(f"{len(rows)} kernels add up to all launches and to all bounds")
if len(sys.argv) > 2:
    page = re.search(r"const plan = (\{.*?\});\n", open(sys.argv[3]).read(), re.S)[1]
    for plan in json.load(open(sys.argv[2])), json.loads(page):
        kernels = plan["kernels"]
        for part in "kinds", "kernels":
            assert sum(row["launches"] for row in kernels[part]) == launches, part
            assert abs(1e3 * sum(row["seconds"] for row in kernels[part]) - milliseconds) < slack, part
        assert len(kernels["kernels"]) == len(rows)
    print("the plan and the page have the same launches and seconds")
