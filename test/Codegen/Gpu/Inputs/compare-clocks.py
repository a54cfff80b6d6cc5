"""Compares the clocks that the model predicts with those of the machine code.

usage: compare-clocks.py TABLE CLOCKS LIMIT [--mma] [-v]

TABLE is the output of --emit=sass-stats, CLOCKS that of --emit=clocks for the same kernels. For each launch with a main loop of products
the tensor clocks for a clock of issue are compared. A main loop that holds two versions of its code, for masked blocks and for others,
does not tell how often each runs; its launches are left out. --mma: the kernels use mma.sync. Fails if a ratio is further from 1 than LIMIT.

CLOCKS counts the epilogues of contractions, and TABLE counts main loops only. The contractions in CLOCKS may therefore have a larger k than those
in TABLE, so that epilogues matter less.
"""
import re
import sys


def read(name):
    rows = {}
    for line in open(name):
        words = line.split()
        if words[0] in ("entry", "launch"):
            columns = words
        else:
            name = re.sub(r"^([nt]{2}_\w+?_\d+x\d+x\d+)x\d+", r"\1", words[0])  # a contraction, without its k
            rows[name] = dict(zip(columns[1:], map(float, words[1:])))
    return rows


def is_twofold(name):
    """Whether the main loop has code for masked blocks and for others."""
    masked = "_causal" in name or "_documents" in name
    return masked and (name.startswith("bwd") or "--mma" in sys.argv)


def rounding(name, row):
    """Clocks to issue the code that rounds dQ. The loop of a kernel that adds to dQ in order holds this code; CLOCKS adds it to the last visits."""
    if not name.startswith("bwd") or not row["fences"]:
        return 0
    dim = int(re.search(r"_(\d+)x\d+_[a-z]+_[a-z]+", name)[1])
    return (2 if dim > 128 else 1) * 2 * (32 * 2.5 + 40)  # slices, warpgroups, registers; see AttentionClocks.cpp


table, clocks, limit = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
compared, worst = 0, (0, "")
for name, row in table.items():
    if not row["mma"] or is_twofold(name) or name not in clocks:
        continue
    ratio = (clocks[name]["issue"] / clocks[name]["tensor"] + rounding(name, row) / row["tensor"]) / (row["issue"] / row["tensor"])
    if "--mma" not in sys.argv and row["tensor"] / row["mma"] <= 16:  # mma.sync on sm_90a
        ratio *= 1024 / 1288  # multiply-adds per clock: of the table, of the model
    compared += 1
    worst = max(worst, (abs(ratio - 1), f"{name} {ratio:.2f}"))
    if "-v" in sys.argv:
        print(f"{name} {ratio:.3f}")
print(f"{compared} loops, the worst: {worst[1]}")
sys.exit(worst[0] > limit or not compared)
