"""Walks artifacts of fsdp-compile on the null device, which must find nothing.

usage: null_device.py FOLDER [--all [TARGET]]

Covers every pair of choices. With --all: one artifact for every two choices that differ from the default; with TARGET all
are compiled for it, without choices of another target. Most artifacts have no code. A few CPU artifacts have code, because
only then they contain the workspaces of kernels; GPU artifacts contain workspaces and launches without code.
"""
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys

FACTORS = {
    "mesh": ["shard=1", "shard=2", "shard=3", "shard=4", "replicate=2,shard=2", "shard=2,context=2,tensor=2"],
    "strategy": ["full_shard", "no_shard", "zero1", "zero2", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "hfsdp"],
    "precision": ["", "--param-dtype=bf16", "--param-dtype=bf16 --param-storage=both", "--param-dtype=f16 --reduce-dtype=f16"],
    "recompute": ["", "--activation-checkpointing=full", "--activation-checkpointing=selective=contract/2+attention"],
    "overlap": ["", "--overlap", "--overlap --bucket-bytes=100k", "--overlap --prefetch=forward=2,backward=1,copy=1"],
    "offload": ["", "--offload=optimizer", "--offload=parameters+gradients+optimizer+activations --offload-min-bytes=4k",
                "--offload=optimizer:file"],
    "accumulate": ["", "--grad-accum=3 --grad-sync=each", "--grad-accum=3 --grad-sync=last"],
    "rows": ["never", "always"],
    "reshard": ["", "--reshard-after-forward=2", "--reshard-after-forward=false"],
    "root": ["backward", "forward", "step"],
    "model": ["gpt2", "llama"],
    "target": ["cpu", "sm_80", "sm_90a", "sm_100a"],
    "other": ["", "--optimizer=sgd --momentum=0.9 --max-chunk-bytes=2048", "--optimizer-state-dtype=bf16 --freeze=*.0.*",
              "--auto-wrap-policy=none --threads-per-rank=3", "--auto-wrap-policy=size --min-num-params=8000 --fuse-attention=false",
              "--grad-divide=sum --grad-predivide=4 --ignore-params=*.1.*"],
}
NAMES = list(FACTORS)
MODELS = {
    "gpt2": ["gpt2", "--layers=2", "--hidden=48", "--heads=3", "--vocab=131", "--seq=13", "--batch=2", "--dropout=0.1"],
    "llama": ["llama", "--layers=3", "--hidden=48", "--heads=4", "--kv-heads=2", "--intermediate=80", "--vocab=97", "--seq=11", "--batch=2"],
}


def is_possible(cell):
    if cell["reshard"].endswith("2") and (cell["mesh"], cell["strategy"]) != ("shard=4", "full_shard"):
        return False
    if cell["rows"] == "always" and (cell["strategy"] != "full_shard" or cell["mesh"] == "shard=1"
                                     or cell["accumulate"].endswith("last") or cell["reshard"]):
        return False
    if "--threads-per-rank" in cell["other"] and cell["target"] != "cpu":
        return False
    return not cell["strategy"].startswith("h") or cell["mesh"].startswith("replicate")


def pairs_of(cell):
    return set(itertools.combinations(cell.items(), 2))


def all_pairs():
    """Returns cells that cover all pairs. Greedy: takes a missing pair, and adds the choices that cover most other missing pairs."""
    default = {name: choices[0] for name, choices in FACTORS.items()}
    every = [dict([a, b]) for x, y in itertools.combinations(NAMES, 2)
             for a in itertools.product([x], FACTORS[x]) for b in itertools.product([y], FACTORS[y])]
    missing, cells = {tuple(pair.items()) for pair in every}, []
    while missing:
        seed = dict(min(missing))
        candidates = []
        for mesh, strategy in itertools.product(FACTORS["mesh"], FACTORS["strategy"]):
            cell = default | {"mesh": mesh, "strategy": strategy} | seed
            if not is_possible(cell):
                continue
            for name in NAMES:
                if name not in seed and name not in ("mesh", "strategy"):
                    options = [cell | {name: choice} for choice in FACTORS[name]]
                    cell = max((o for o in options if is_possible(o)), key=lambda o: len(pairs_of(o) & missing))
            candidates.append(cell)
        if not candidates:  # an impossible pair
            missing.discard(tuple(seed.items()))
            continue
        best = max(candidates, key=lambda c: len(pairs_of(c) & missing))
        cells.append(best)
        missing -= pairs_of(best)
    return cells


def two_off(target):
    default = {name: choices[0] for name, choices in FACTORS.items()} | {"mesh": "replicate=2,shard=2", "target": target or "cpu"}
    for names in itertools.combinations([name for name in NAMES if not target or name != "target"], 2):
        for choices in itertools.product(*(FACTORS[name][1:] for name in names)):
            cell = default | dict(zip(names, choices))
            if cell["reshard"].endswith("2") and "mesh" not in names:
                cell["mesh"] = "shard=4"
            if is_possible(cell):
                yield cell


def options_of(cell):
    text = [f"--mesh={cell['mesh']}", f"--sharding-strategy={cell['strategy']}", f"--gather-rows={cell['rows']}",
            f"--reshard-root={cell['root']}", "--clip-grad-norm=0.7", f"--target={cell['target']}"]
    for name in ("precision", "recompute", "overlap", "offload", "accumulate", "reshard", "other"):
        text += cell[name].split()
    return [option if cell["offload"] else option.replace(",copy=1", "") for option in text]  # only valid for copies to the host


def walk(cell, folder, number):
    artifact = f"{folder}/{number}.fsdp"
    model = cell["model"] + ("-even" if "tensor" in cell["mesh"] else "")
    command = ["fsdp-compile", f"{folder}/{model}.mlir", *options_of(cell), "-o", artifact]
    command += [] if cell["target"] == "cpu" and number % 8 == 0 else ["--no-code"]
    for step in (command, ["fsdp-run", artifact, "--device=null"]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=300)
        if done.returncode:
            print(f"{' '.join(command)}\n{' '.join(step)}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-2000:]}", flush=True)
            return None
    os.remove(artifact)
    return int(re.search(r"walked ([0-9,]+) commands", done.stdout)[1].replace(",", ""))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    even = {f"{name}-even": [re.sub("--seq=.*", "--seq=14", re.sub("--heads=.*", "--heads=4", option)) for option in options]
            for name, options in MODELS.items()}
    for name, options in (MODELS | even).items():
        subprocess.run(["fsdp-modelgen", *options, "-o", f"{folder}/{name}.mlir"], check=True, capture_output=True)
    cells = list(two_off("".join(sys.argv[3:]))) if "--all" in sys.argv else all_pairs()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        walked = list(pool.map(lambda job: walk(job[1], folder, job[0]), enumerate(cells)))
    good = [commands for commands in walked if commands]
    print(f"{len(good)} of {len(cells)} artifacts, {sum(good):,} commands: nothing found")
    sys.exit(len(good) != len(cells))


if __name__ == "__main__":
    main()
