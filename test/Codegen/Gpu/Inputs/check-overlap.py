"""Checks that exponentials of attention kernels with wgmma are issued beside products in flight.

usage: check-overlap.py TABLE...

TABLE is the output of --emit=sass-stats for attention on sm_90a. Kernels with mma.sync are left out, and gradients with a score function, which
compute P after both products. Prints the loops in which fewer exponentials overlap with products than the loop has.
"""
import sys

loops = 0
for name in sys.argv[1:]:
    for line in open(name):
        words = line.split()
        if words[0] == "entry":
            columns = words[1:]
            continue
        row = dict(zip(columns, map(int, words[1:])))
        usesGroups = row["mma"] and row["tensor"] // row["mma"] > 16
        if not usesGroups or (words[0].startswith("bwd") and "_none_" not in words[0]):
            continue
        loops += 1
        if row["overlap"] < row["exp2"]:
            print(f"{words[0]}: {row['overlap']} of {row['exp2']} exponentials are issued beside products")
print(f"{loops} loops with wgmma, all exponentials beside products")
