"""Checks numerically for silent errors known from other systems. usage: silent_wrong.py FOLDER TEXT

1. A tied table whose rows the number of shards does not divide: the last rank's rows are trained.
2. The mean over ranks is the same for full sharding, replicas and groups of shards, with accumulation or without.
3. A bf16 model takes steps smaller than the last digit of its weights, since masters are f32.
4. Accumulation without synchronisation sends a third of the gradient's bytes with three micro-batches.
"""
import json, os, struct, subprocess, sys

FOLDER, TEXT = sys.argv[1:]
os.makedirs(FOLDER, exist_ok=True)


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
    return done.stdout


def train(name, batch, ranks, *options, steps=2, run=(), dtype="f32", lr=0.01):
    model, artifact, metrics = (f"{FOLDER}/{name}.{end}" for end in ("mlir", "fsdp", "jsonl"))
    call("fsdp-modelgen", "gpt2", "--layers=2", "--hidden=48", "--heads=3", "--vocab=131", "--seq=13",
         f"--batch={batch}", f"--dtype={dtype}", "-o", model)
    call("fsdp-compile", model, *options, "-o", artifact)
    call("fsdp-run", artifact, f"--ranks={ranks}", f"--text={TEXT}", f"--steps={steps}", "--val-batches=0",
         f"--lr={lr}", f"--metrics={metrics}", *run)
    return [json.loads(line) for line in open(metrics)]


def read_tensor(path, name):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    entry = {key.split("transformer.")[-1]: value for key, value in json.loads(data[8:8 + size]).items()}[name]
    begin, end = entry["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    columns = entry["shape"][-1]
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def tied_and_uneven():
    for steps in (1, 3):
        train("tied", 2, 3, "--mesh=shard=3", "--auto-wrap-policy=none", steps=steps,
              run=(f"--export={FOLDER}/tied{steps}.safetensors",))
    before, after = (read_tensor(f"{FOLDER}/tied{steps}.safetensors", "wte.weight") for steps in (1, 3))
    still = [row for row, (a, b) in enumerate(zip(before, after)) if all(x == y for x, y in zip(a, b))]
    assert len(before) == 131 and not still, f"rows {still} of the tied table are not trained"


def one_divisor():
    ways = {
        "shards": (1, 4, "--mesh=shard=4"),
        "replicas": (1, 4, "--mesh=shard=4", "--sharding-strategy=no_shard"),
        "groups": (1, 4, "--mesh=replicate=2,shard=2"),
        "hfsdp": (1, 4, "--mesh=replicate=2,shard=2", "--sharding-strategy=hfsdp"),
        "accumulated": (1, 2, "--mesh=shard=2", "--grad-accum=2"),
        "at the end": (1, 2, "--mesh=shard=2", "--grad-accum=2", "--grad-sync=last"),
        "merged": (4, 1, "--mesh=shard=1"),
    }
    expected = None
    for name, way in ways.items():
        for step, found in enumerate(train(name.replace(" ", "-"), *way)):
            found = found["loss"], found["grad_norm"]
            if name == "shards":
                expected = (expected or []) + [found]
            for a, b in zip(found, expected[step]):
                assert abs(a - b) <= 2e-6 * abs(b), f"{name}: step {step + 1} has {found}, shards {expected[step]}"


def asked_divisor():
    """Checks for all meshes of 4 ranks that a sum is 4 times the mean, and that the divisor 8 gives half of the mean."""
    mean = train("mean", 1, 4, "--mesh=shard=4")[0]["grad_norm"]
    for mesh in ("--mesh=shard=4", "--mesh=replicate=2,shard=2"):
        for divide, factor in (("sum", 4), ("8", 0.5), ("4", 1)):
            found = train("divided", 1, 4, mesh, f"--grad-divide={divide}")[0]["grad_norm"]
            assert abs(found - factor * mean) <= 2e-6 * abs(found), (mesh, divide, found, mean)


def masters_are_wide():
    """Checks that gains of 1 change by the learning rate in every step, a hundredth of the resolution of bf16 at 1."""
    for storage in ("master", "both"):
        train("narrow", 2, 2, "--mesh=shard=2", f"--param-storage={storage}", steps=4, dtype="bf16", lr=2e-5,
              run=(f"--export={FOLDER}/narrow.safetensors",))
        gains = [gain for row in read_tensor(f"{FOLDER}/narrow.safetensors", "ln_f.weight") for gain in row]
        assert all(0 < abs(gain - 1) <= 4 * 2.1e-5 for gain in gains), (storage, gains)


def accumulation_saves():
    bytes = {}
    for sync in ("each", "last"):
        step = train(sync, 1, 2, "--mesh=shard=2", "--grad-accum=3", f"--grad-sync={sync}", steps=1)[0]
        bytes[sync] = step["reduce_scatter_bytes"]
    assert bytes["each"] == 3 * bytes["last"] > 0, bytes


tied_and_uneven()
one_divisor()
asked_divisor()
masters_are_wide()
accumulation_saves()
print("nothing silently wrong")
