"""Compares what the addition of a factor takes by the model (--emit=clocks) with the machine code of ptxas, for each tile.

usage: sum-clocks.py GEMM-GRID.py TABLE LIMIT

TABLE is the output of --emit=sass-stats for the kernels of `gemm-grid.py sumtable`. The clocks to issue the main loop of such a kernel, less the 90 of a
loop without sums, are those of an addition. The model spreads the additions over all multiprocessors. Fails if a ratio is further from 1 than LIMIT,
or if the bytes of the sums and of their initial values are not counted.
"""
import contextlib
import importlib.util
import subprocess
import sys

spec = importlib.util.spec_from_file_location("grid", sys.argv[1])
grid = importlib.util.module_from_spec(spec)
spec.loader.exec_module(grid)
PLAIN, MULTIPROCESSORS, STEP = 90, 132, 64
TILES = ["wg128x256", "wg128x256c2", "wg128x192", "wg128x128", "wg128x128c2", "wg128x64"]


def clocks(summed):
    kernels = [grid.Kernel("bf16", "tn", 768, 768, 8192, "accumulate", "f32", tile=tile, summed=summed) for tile in TILES]
    with open("kernels.mlir", "w") as out, contextlib.redirect_stdout(out):
        for kernel in kernels:
            kernel.write()
    text = subprocess.run(["fsdp-kernel-test", "kernels.mlir", "--target=sm_90a", "--emit=clocks"], capture_output=True, text=True, check=True).stdout
    header, *rows = [line.split() for line in text.splitlines()]
    return [dict(zip(header, row)) for row in rows]


lines = [line.split() for line in open(sys.argv[2])]
loops = {line[0]: int(line[lines[0].index("issue")]) for line in lines[1:]}
worst = 0
for tile, with_sum, plain in zip(TILES, clocks("b"), clocks(None), strict=True):
    adders = 768 // int(tile.split("x")[1].split("c")[0])  # tiles of columns, each of which one block adds
    model = (int(with_sum["issue"]) - int(plain["issue"])) * MULTIPROCESSORS / (adders * 8192 / STEP)
    ratio = model / (loops[with_sum["launch"]] - PLAIN)
    worst = max(worst, abs(ratio - 1))
    print(f"{tile}: {model:.0f} clocks to issue an addition, {ratio:.2f} of the machine code, {int(with_sum['bytes']) - int(plain['bytes'])} bytes more")
sys.exit(worst > float(sys.argv[3]))
