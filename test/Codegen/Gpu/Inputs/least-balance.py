"""Prints the launches of --emit=clocks (standard input) whose balance is below LIMIT. Launches of less than SHORT clocks are left out.

usage: least-balance.py LIMIT SHORT < CLOCKS
"""
import sys

limit, short = float(sys.argv[1]), float(sys.argv[2])
launches = 0
for line in sys.stdin:
    words = line.split()
    if words[0] == "launch":
        columns = words[1:]
        continue
    row = dict(zip(columns, map(float, words[1:])))
    if row["clocks"] < short:
        continue
    launches += 1
    if row["balance"] < limit:
        print(words[0], row["balance"])
print(f"{launches} launches")
