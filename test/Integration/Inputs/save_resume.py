"""Compares a run of ten steps with a run of five steps, a save, and five more: all bits must be equal.

Compares losses, norms, rates and scales of every step, the exported weights, and the saves after step ten. The index of
a save has the hash of each rank's file: parameters, masters, moments and step blocks. The second half takes its seed,
rates and validation part from the save.

usage: save_resume.py FOLDER [--pairs]     (--pairs: covers every pair of choices; default: six runs)
"""
import hashlib, itertools, json, os, re, shutil, subprocess, sys

FACTORS = {
    "mesh": ["shard=1", "shard=2", "shard=3", "shard=4", "replicate=2,shard=2"],
    "strategy": ["full_shard", "no_shard", "zero1", "zero2", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "hfsdp"],
    "precision": ["f32", "bf16", "bf16 both", "f16"],
    "accumulate": ["1", "3 each", "3 last"],
    "optimizer": ["adamw", "momentum"],
    "data": ["random", "text", "overfit"],
}
OPTIONS = {
    "f32": [], "bf16": ["--param-dtype=bf16"], "bf16 both": ["--param-dtype=bf16", "--param-storage=both"],
    # The first steps overflow: the save lies between skipped steps and growth of the scale.
    "f16": ["--param-dtype=f16", "--loss-scale-init=1099511627776", "--loss-scale-growth-interval=3"],
    "1": [], "3 each": ["--grad-accum=3", "--grad-sync=each"], "3 last": ["--grad-accum=3", "--grad-sync=last"],
    "adamw": ["--clip-grad-norm=0.7"], "momentum": ["--optimizer=sgd", "--momentum=0.9"],
}
SOME = [
    ("shard=1", "full_shard", "f32", "1", "adamw", "text"),
    ("shard=2", "full_shard", "f16", "3 last", "adamw", "text"),
    ("shard=3", "zero1", "bf16 both", "1", "momentum", "random"),
    ("shard=4", "full_shard", "bf16", "3 each", "adamw", "random"),
    ("replicate=2,shard=2", "hybrid_shard_zero2", "bf16", "1", "adamw", "text"),
    ("replicate=2,shard=2", "no_shard", "f16", "1", "momentum", "overfit"),
]
SCHEDULE = ["--lr=0.01", "--warmup=3", "--lr-decay-steps=9", "--min-lr=0.001", "--seed=11"]


def all_pairs():
    cells = [c for c in itertools.product(*FACTORS.values()) if not c[1].startswith("h") or c[0].startswith("r")]
    pairs_of = [frozenset(itertools.combinations(enumerate(c), 2)) for c in cells]
    missing, chosen = frozenset().union(*pairs_of), []
    while missing:
        best = max(range(len(cells)), key=lambda i: len(pairs_of[i] & missing))
        chosen.append(cells[best])
        missing -= pairs_of[best]
    return chosen


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def numbers(path):
    keys = ("step", "loss", "grad_norm", "lr", "loss_scale", "skipped_steps", "validation_loss")
    return [{k: m.get(k) for k in keys} for m in map(json.loads, open(path))]


def check(cell, folder):
    mesh, strategy, precision, accumulate, optimizer, data = cell
    options = OPTIONS[precision] + OPTIONS[accumulate] + OPTIONS[optimizer]
    artifact = f"{folder}/m.fsdp"
    call("fsdp-compile", f"{folder}/m.mlir", f"--mesh={mesh}", f"--sharding-strategy={strategy}", *options, "-o", artifact)
    inputs = {"text": [f"--text={__file__}", "--val-every=5", "--val-batches=2"], "random": [], "overfit": ["--overfit"]}[data]
    for name in ("whole", "halves"):
        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
    run = ["fsdp-run", artifact, *inputs, "--assert-no-allocations"]
    call(*run, *SCHEDULE, "--steps=10", f"--save={folder}/whole", f"--metrics={folder}/whole.jsonl", f"--export={folder}/whole.st")
    call(*run, *SCHEDULE, "--steps=5", f"--save={folder}/halves", f"--metrics={folder}/halves.jsonl")
    inputs = [i for i in inputs if i != "--overfit"]
    check = ["--check-against=unsharded"] if cell in SOME and mesh != "shard=4" else []
    call("fsdp-run", artifact, *inputs, *check, "--steps=10", f"--resume={folder}/halves", f"--save={folder}/halves",
         f"--metrics={folder}/halves.jsonl", f"--export={folder}/halves.st")
    assert numbers(f"{folder}/whole.jsonl") == numbers(f"{folder}/halves.jsonl"), cell
    for file in (".st", "/latest", "/step-00000010/index.json"):
        assert open(f"{folder}/whole{file}", "rb").read() == open(f"{folder}/halves{file}", "rb").read(), (cell, file)
    index = json.load(open(f"{folder}/whole/step-00000010/index.json"))
    assert all(len(set(s["files"])) == len(s["files"]) for s in index["states"]), cell
    for file in index["files"]:
        assert file["sha256"] == hashlib.sha256(open(f"{folder}/whole/step-00000010/{file['name']}", "rb").read()).hexdigest()
    text = open(f"{folder}/whole/step-00000010/index.json").read()
    zeroed = re.sub(r'("sha256": ")[0-9a-f]{64}("\n}\n)$', rf"\g<1>{'0' * 64}\g<2>", text)
    assert index["sha256"] == hashlib.sha256(zeroed.encode()).hexdigest(), cell
    stored = sum(f["bytes"] for f in index["files"])
    width = {"F32": 4, "BF16": 2, "F16": 2}
    once = sum(s["elements"] * len(s["files"]) * width[s["dtype"]] for s in index["states"])
    assert once <= stored < once + len(index["files"]) * 16384, (cell, stored, once)  # no piece twice
    return numbers(f"{folder}/whole.jsonl")[-1]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    call("fsdp-modelgen", "gpt2", "--layers=2", "--hidden=24", "--heads=3", "--vocab=256", "--seq=13", "--batch=2",
         "-o", f"{folder}/m.mlir")
    cells = all_pairs() if "--pairs" in sys.argv else SOME
    skipped = 0
    for cell in cells:
        skipped += check(cell, folder)["skipped_steps"]
    print(f"{len(cells)} runs: the same bits; {'some' if skipped else 'no'} steps were skipped on the way")


if __name__ == "__main__":
    main()
