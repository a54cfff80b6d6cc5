"""Prints the predicted rates of contractions in TFLOP/s.

usage: gemm-rates.py CLOCKS CLUSTER.json LEAST

CLOCKS is the output of --emit=clocks for kernels of gemm-grid.py, CLUSTER.json gives the clock rate and the rate of memory. Fails if a rate is below LEAST.
"""
import re
import sys

from clock_tables import read_seconds

clocks, cluster, least = sys.argv[1:]
_, seconds = read_seconds(clocks, cluster, lambda launch: re.sub("_(sum|lhs|rhs)$", "", launch))
rates = {}
for kernel, time in seconds.items():
    batch, m, n, k = map(int, re.search(r"_(\d+)x(\d+)x(\d+)x(\d+)_", kernel).groups())
    rates[kernel] = 2 * max(batch, 1) * m * n * k / time / 1e12
    print(f"{kernel:42} {rates[kernel]:5.0f}")
sys.exit(not rates or min(rates.values()) < float(least))
