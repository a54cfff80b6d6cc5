"""Checks that exponentials of attention kernels with wgmma are issued beside products in flight.

usage: check-overlap.py TABLE...

TABLE is the output of --emit=sass-stats for attention on sm_90a. Kernels with mma.sync are left out, and gradients with a score function, which
compute P after both products. Fails if fewer exponentials of a loop overlap with products than the loop has, and names the loop.
"""
import re
import sys

loops = wrong = 0
for name in sys.argv[1:]:
    for line in open(name):
        words = line.split()
        if words[0] == "entry":
            columns = words[1:]
            continue
        row = dict(zip(columns, map(int, words[1:])))
        # DTYPE_HEADS_LENGTHS_DIMS_SCORE_MASK, and the number of the launch
        way, *_, score, mask = re.match(r"(fwd|bwd)_\w+?_[x\d]+_[x\d]+_[x\d]+_([a-z]+)_([a-z]+)", words[0]).groups()
        usesGroups = row["mma"] and row["tensor"] // row["mma"] > 16
        if not usesGroups or (way == "bwd" and score != "none"):
            continue
        loops += 1
        if row["overlap"] < row["exp2"]:
            wrong += 1
            print(f"{words[0]}: {row['overlap']} of {row['exp2']} exponentials are issued beside products")
print(f"{loops} loops with wgmma, {loops - wrong} with all exponentials beside products")
sys.exit(bool(wrong) or not loops)
