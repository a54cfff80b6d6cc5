"""Prints the predicted rates of contractions in TFLOP/s.

usage: gemm-rates.py CLOCKS CLUSTER.json LEAST

CLOCKS is the output of --emit=clocks for kernels of gemm-grid.py, CLUSTER.json gives the clock rate and the rate of memory. Fails if a rate is below LEAST.
"""
import json
import re
import sys

clocks, cluster, least = sys.argv[1], json.load(open(sys.argv[2])), float(sys.argv[3])
rate, memory = cluster["device"]["clocks_per_second"], cluster["device"]["bytes_per_second"]
seconds = {}
for line in open(clocks):
    words = line.split()
    if words[0] == "launch":
        columns = words[1:]
        continue
    row = dict(zip(columns, map(float, words[1:])))
    kernel = words[0].removesuffix("_sum")
    seconds[kernel] = seconds.get(kernel, 0) + max(row["clocks"] / rate, row["bytes"] / memory)

rates = {}
for kernel, time in seconds.items():
    batch, m, n, k = map(int, re.search(r"_(\d+)x(\d+)x(\d+)x(\d+)_", kernel).groups())
    rates[kernel] = 2 * max(batch, 1) * m * n * k / time / 1e12
    print(f"{kernel:42} {rates[kernel]:5.0f}")
sys.exit(not rates or min(rates.values()) < least)
