"""Compares products whose plan is chosen with the same products with every tile and k in equal parts.

usage: compare-parts.py CHOSEN EQUAL

Both are the output of --emit=clocks. A product takes the clocks of its launches, and 4000 clocks between them (GpuGemmPlan.cpp). Prints for each
product the clocks, the balance of its first launch, the fewest clocks with equal parts, and the quotient of both. Fails if it exceeds 1.
"""
import re
import sys

BETWEEN = 4000


def read(name):
    """Returns (clocks, balance) by product and by its tile and parts."""
    products = {}
    for line in open(name):
        words = line.split()
        if words[0] == "launch":
            columns = words[1:]
            continue
        row = dict(zip(columns, map(float, words[1:])))
        product, tile = re.fullmatch(r"(.*?_(?:bf16|f16|f32))(_wg\w+?)?(?:_sum)?", words[0]).groups()
        plans = products.setdefault(product, {})
        clocks, balance = plans.get(tile, (-BETWEEN, row["balance"]))
        plans[tile] = clocks + BETWEEN + row["clocks"], balance
    return products


chosen, equal = read(sys.argv[1]), read(sys.argv[2])
print(f"{'product':<36}    clocks balance  equal parts  quotient")
worst = 0
for product, plans in chosen.items():
    (clocks, balance), best = plans[None], min(clocks for clocks, _ in equal[product].values())
    worst = max(worst, clocks / best)
    print(f"{product:<36} {clocks:9.0f}   {balance:.3f} {best:12.0f} {clocks / best:9.3f}")
sys.exit(worst > 1)
