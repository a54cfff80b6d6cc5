"""Compares the predicted rates of attention kernels with published rates of other kernels on the same chip.

usage: published-attention.py CLOCKS CLUSTER.json LEAST

CLOCKS is the output of --emit=clocks for the kernels of attention-grid.py balance, forward and backward; CLUSTER.json gives the clock rate.
Prints a table in TFLOP/s. A pass has 4 (forward) or 10 (backward) floating-point operations for each dimension, query and key, and half as many
under a causal mask; its launches run one after the other. No constant of the model is fitted to the published rates. The model lets units overlap
perfectly, so it gives a bound of the rate: fails if a prediction is below LEAST times a published rate, or above the peak at this clock.
"""
import re
import sys

from clock_tables import read_seconds

MULTIPROCESSORS, MACS = 132, 2048
# cuDNN 9.19.1 on H200, bf16, one sequence, 64 query heads on 8 kv heads of 128 dimensions: NVIDIA/cudnn-frontend 3929da2e,
# benchmark/sdpa_benchmark_training/results/h200_919_only_cudnn. By length: forward full, forward causal, backward full, backward causal.
CUDNN = {2048: (633, 484, 504, 370), 4096: (671, 591, 560, 474), 8192: (691, 644, 594, 541), 16384: (702, 673, 612, 579)}
# FlashAttention-3 on H100 SXM5, fp16, 16,384 tokens, heads of 2,048 columns together, forward: its paper (arXiv 2407.08608, figure 5).
# By head dimension, then by length: full, causal where the figure has been read.
FLASH3 = {64: {2048: 460, 4096: 476, 8192: 496, 16384: 497}, 128: {2048: 625, 4096: 638, 8192: 646, 16384: 648}}
FLASH3_CAUSAL = {128: {2048: 521, 4096: 579, 8192: 602, 16384: 616}}

clocks, cluster, least = sys.argv[1:]
name = re.compile(r"(?:fwd|bwd)_\w+?_\d+x\d+x\d+_\d+x\d+_\d+x\d+_none_(?:none|causal)")
rate, seconds = read_seconds(clocks, cluster, lambda launch: name.match(launch)[0])

failed = compared = 0
print(f"{'':42}   predicted   published    ratio")
for kernel, time in seconds.items():
    way, _, heads, lengths, dims, _, mask = kernel.split("_")
    batch, queries, kv = map(int, heads.split("x"))
    length, dim = int(lengths.split("x")[0]), int(dims.split("x")[0])
    work = (4 if way == "fwd" else 10) * batch * queries * length * length * dim / (2 if mask == "causal" else 1)
    predicted = work / time / 1e12
    failed |= predicted > 2 * MACS * MULTIPROCESSORS * rate / 1e12
    published = []
    if (batch, queries, kv, dim) == (1, 64, 8, 128):
        published.append(("cuDNN", CUDNN[length][2 * (way == "bwd") + (mask == "causal")]))
    if queries == kv == 2048 // dim and batch * length == 16384 and way == "fwd":
        table = FLASH3_CAUSAL if mask == "causal" else FLASH3
        if length in table.get(dim, ()):
            published.append(("FlashAttention-3", table[dim][length]))
    for name, value in published or [("", 0)]:
        ratio = predicted / value if value else 0
        failed |= bool(value) and ratio < float(least)
        compared += bool(value)
        print(f"{kernel:42} {predicted:11.0f} {value or '':>11} {f'{ratio:.2f}' if value else '':>8}  {name}")
sys.exit(bool(failed) or not compared)
