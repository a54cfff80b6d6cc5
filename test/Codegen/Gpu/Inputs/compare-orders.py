"""Runs the only kernel of a bundle in the emulated CUDA driver, once for each order of clusters and warps, and compares the bits of the results.

usage: compare-orders.py LIBRARY BUNDLE SEED...

0 is the fixed order. Each order runs in a process, because the driver reads the seed when it is loaded.
"""
import hashlib
import os
import subprocess
import sys

library, folder, *seeds = sys.argv[1:]
if seeds == ["run"]:
    import runpy

    sys.argv = [os.path.join(os.path.dirname(__file__), "plant-fault.py"), library, folder]
    results = runpy.run_path(sys.argv[0])["found"]
    print(hashlib.sha256(b"".join(results)).hexdigest())
    sys.exit()

digests = set()
for seed in seeds:
    environment = {k: v for k, v in os.environ.items() if k != "FSDPRT_EMULATED_CUDA_ORDER"}
    if seed != "0":
        environment["FSDPRT_EMULATED_CUDA_ORDER"] = seed
    run = subprocess.run([sys.executable, __file__, library, folder, "run"], env=environment, capture_output=True, text=True)
    if run.returncode or not run.stdout.startswith("nothing found"):
        sys.exit(run.stdout + run.stderr)
    digests.add(run.stdout.split()[-1])
print(f"{len(seeds)} orders, {len(digests)} results")
sys.exit(len(digests) != 1)
