"""Compares the predicted clocks of kernels with those of other kernels for the same problems.

usage: fewer-clocks.py TABLE CLOCKS LIMIT

A line of TABLE is a kernel and the clocks of all its launches; CLOCKS is the output of --emit=clocks. Prints the smallest and the largest ratio.
Fails if a ratio exceeds LIMIT, or if CLOCKS lacks a kernel of TABLE.
"""
import re
import sys

table = {name: float(clocks) for name, clocks in (line.split() for line in open(sys.argv[1]))}
sums = dict.fromkeys(table, 0.0)
for line in open(sys.argv[2]):
    words = line.split()
    name = words[0] if words[0] in sums else re.sub(r"_\d+$", "", words[0])
    if name in sums:
        sums[name] += float(words[3])
ratios = {name: sums[name] / table[name] for name in table}
print(f"{len(ratios)} kernels, ratios of clocks from {min(ratios.values()):.2f} to {max(ratios.values()):.2f}")
sys.exit(max(ratios.values()) > float(sys.argv[3]) or not min(ratios.values()))
