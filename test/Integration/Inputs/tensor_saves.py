#!/usr/bin/env python3
"""Saves runs on meshes with an axis tensor, and resumes them on other meshes.

For two meshes A and B of one model: (1) A saves after steps 3 and 6. A run of A that resumes after step 3 writes the
files of step 6 again, bit for bit, and has the same losses. (2) A run of B without further steps writes the save of step
3 again in its own layout. Each element of all parameters and optimizer states is equal, by the definition of slices in
docs/how-to/save-and-resume.md. From there, A writes every byte of its files again. (3) B resumes after step 3. Its
losses are those of a run of B that is not interrupted, within 2e-6. Saves that are written while training continues
have the same files. Then a run loses one of four ranks, and goes on with two ranks of the axis and another artifact.

usage: tensor_saves.py FOLDER [--random=COUNT [--seed=N]]
"""
import itertools, json, math, os, random, shutil, struct, sys

from save_files import WIDTH, call, states

SAMPLES = 8  # of a step, over all ranks
GPT2 = ["gpt2", "--layers=2", "--hidden=32", "--heads=4", "--vocab=256", "--seq=13"]
LLAMA = ["llama", "--layers=2", "--hidden=32", "--heads=4", "--kv-heads=2", "--intermediate=56", "--vocab=256",
         "--seq=11"]
SGD = ["--optimizer=sgd", "--momentum=0.9"]
F16 = ["--param-dtype=f16", "--loss-scale-init=1048576", "--loss-scale-growth-interval=2"]
BOTH = ["--param-dtype=bf16", "--param-storage=both"]
# Model, options of both artifacts, mesh of the save, options of A, other meshes, and options of B.
CELLS = {
    "gpt2": (GPT2, [], "replicate=2,shard=2,tensor=2", [], ["shard=4", "tensor=4", "shard=1", "shard=2,tensor=4"], []),
    "gpt2, back": (GPT2, [], "shard=4", [], ["replicate=2,shard=2,tensor=2", "tensor=2"], ["--async-save"]),
    "llama": (LLAMA, SGD, "shard=2,tensor=2", [], ["tensor=2", "shard=2", "replicate=2,tensor=2"],
              ["--sharding-strategy=zero1"]),
    "dropout": ([*GPT2, "--dropout=0.1"], [], "shard=2,tensor=2", [], ["replicate=2,shard=2", "tensor=4"], []),
    # Each rank has as many samples on all these meshes, so that the same gradients overflow.
    "f16, scaled": (LLAMA, F16, "shard=2,tensor=2", [], ["replicate=2,tensor=2", "shard=2"], []),
    "bf16, both": (GPT2, BOTH, "shard=2,tensor=2", ["--async-save"], ["tensor=4", "shard=1"], []),
}


def write_text(folder):
    """Writes a text for training, which does not depend on the version of the tree."""
    open(f"{folder}/text", "w").write(" ".join(str(i * i % 997) for i in range(4000)))
    return f"{folder}/text"


def losses(path):
    return [json.loads(line)["loss"] for line in open(path)]


def scales(path):
    return [[json.loads(line).get(key) for key in ("loss_scale", "skipped_steps")] for line in open(path)]


def content(path):
    """Returns the bytes of a file. Numbers of the step block that are not finite are equal, as null in index.json."""
    data = bytearray(open(path, "rb").read())
    begin = 8 + struct.unpack_from("<Q", data)[0]
    first, last = json.loads(data[8:begin])["step_block"]["data_offsets"]
    for at in range(begin + first, begin + last, 4):
        if not math.isfinite(struct.unpack_from("<f", data, at)[0]):
            data[at:at + 4] = b"null"
    return data


def expect_same_files(first, other):
    names = sorted(os.listdir(first))
    assert names == sorted(os.listdir(other)) and len(names) > 1
    for name in names:
        if name != "index.json":  # it has the hash of the artifact and the options of the run
            assert content(f"{first}/{name}") == content(f"{other}/{name}"), (first, other, name)


class Runs:
    """The artifact of a model for a mesh, and its runs in a folder."""

    def __init__(self, folder, model, mesh, options, run=()):
        ranks = math.prod(int(axis.split("=")[1]) for axis in mesh.split(",") if not axis.startswith("tensor"))
        accumulation = [int(option.split("=")[1]) for option in options if option.startswith("--grad-accum=")]
        batch, rest = divmod(SAMPLES, ranks * math.prod(accumulation))
        assert rest == 0, (mesh, options)
        self.folder, self.artifact, self.copies = folder, f"{folder}/m.fsdp", "--async-save" in options
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.command = ["fsdp-run", self.artifact, "--text=" + write_text(folder), "--lr=0.003", *run]
        call("fsdp-modelgen", *model, f"--batch={batch}", "-o", f"{folder}/m.mlir")
        call("fsdp-compile", f"{folder}/m.mlir", "--mesh=" + mesh, *options, "-o", self.artifact)

    def run(self, name, steps, *options):
        """Returns the last save and the losses of a run."""
        save, metrics = f"{self.folder}/{name}", f"{self.folder}/{name}.jsonl"
        call(*self.command, f"--steps={steps}", "--save=" + save, "--metrics=" + metrics, *options)
        return f"{save}/step-{steps:08}", losses(metrics) if os.path.exists(metrics) else []


def check_mesh(runs):
    """Step (1) of the list above. Returns the save of step 3."""
    last, whole = runs.run("whole", 6, "--save-every=3")
    saved = f"{runs.folder}/whole/step-00000003"
    again, resumed = runs.run("resumed", 6, "--resume=" + saved)
    assert resumed == whole[-len(resumed):] and len(resumed) == 3, (runs.folder, whole, resumed)
    expect_same_files(last, again)
    if runs.copies:
        waited, _ = runs.run("waited", 6, "--save-every=3", "--wait-for-saves")
        expect_same_files(last, waited)
        expect_same_files(saved, f"{runs.folder}/waited/step-00000003")
    return saved, whole


def check_pair(a, saved, b, limit):
    """Steps (2) and (3). Returns the number of elements that are equal."""
    found = states(saved)
    moved, _ = b.run("moved", 3, "--resume=" + saved)
    assert states(moved) == found, (a.folder, b.folder)
    back, _ = a.run("back", 3, "--resume=" + moved)
    expect_same_files(saved, back)
    shutil.rmtree(f"{a.folder}/back")
    _, whole = b.run("whole", 6)
    _, resumed = b.run("resumed", 6, "--resume=" + saved)
    assert len(resumed) == 3
    for loss, wanted in zip(resumed, whole[3:]):
        assert abs(loss - wanted) <= limit * abs(wanted), (a.folder, b.folder, resumed, whole)
    # In random cases of 16 bits, the number of samples of a rank may decide whether a gradient overflows.
    assert limit == 1 or scales(f"{b.folder}/resumed.jsonl") == scales(f"{b.folder}/whole.jsonl")[3:], b.folder
    return sum(len(data) // WIDTH[dtype] for dtype, data in found.values())


def check_random(folder, chance):
    heads = chance.choice([2, 4, 8])
    kv = chance.choice([size for size in (2, 4, 8) if heads % size == 0])
    layers = ["--layers=" + str(chance.choice([1, 2])), f"--hidden={heads * chance.choice([4, 8])}", "--vocab=256",
              f"--heads={heads}", f"--seq={chance.choice([5, 9])}"]
    llama = ["llama", f"--kv-heads={kv}", "--intermediate=" + str(chance.choice([24, 40])), *layers]
    model, kv = chance.choice([(["gpt2", *layers], heads), (llama, kv)])
    meshes = [(r, s, t) for r, s, t in itertools.product((1, 2, 4), (1, 2, 4, 8), (1, 2, 4, 8))
              if r * s * t <= 8 and kv % t == 0]
    shared = chance.choice([[], [], SGD, F16, BOTH])

    def make(mesh, number):
        r, s, t = mesh
        ranks, strategies = r * s, ["full_shard", "zero1", "zero2", "no_shard", *["hybrid_shard", "hfsdp"] * (r > 1)]
        options = ["--sharding-strategy=" + chance.choice(strategies), "--auto-wrap-policy=" +
                   chance.choice(["transformer", "none"]), *chance.choice([[], ["--overlap"], ["--async-save"],
                                                                           ["--offload=optimizer"]])]
        if ranks <= SAMPLES // 2 and chance.random() < 0.3:
            options.append("--grad-accum=2")
        run = chance.choice([[], [], ["--processes"]])
        text = f"replicate={r},shard={s}" + (f",tensor={t}" if t > 1 else "")
        print(f"  {text} {' '.join(options + run)}", flush=True)
        return Runs(f"{folder}/{number}", model, text, [*shared, *options], run)

    print(" ".join(model + shared))
    a = make(chance.choice([mesh for mesh in meshes if mesh[2] > 1]), 0)
    saved, _ = check_mesh(a)
    b = make(chance.choice(meshes), 1)
    return check_pair(a, saved, b, 1 if shared in (F16, BOTH) else 2e-6)


def shrink(folder):
    """A rank is lost in step 5: the run goes on from step 4 on tensor=2, with as many samples in each step."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    call("fsdp-modelgen", *LLAMA, "--batch=1", "-o", f"{folder}/m.mlir")
    call("fsdp-compile", f"{folder}/m.mlir", "--mesh=shard=2,tensor=2", "--grad-accum=2",
         "--also-mesh=tensor=2,shard=3,tensor=2,shard=4", "-o", f"{folder}/m.fsdp")
    run = ["fsdp-run", f"{folder}/m.fsdp", "--text=" + write_text(folder), "--lr=0.003", "--steps=8"]
    call(*run, f"--metrics={folder}/whole.jsonl")
    said = call(*run, f"--metrics={folder}/shrunk.jsonl", "--processes", f"--save={folder}/s", "--save-every=2",
                "--on-failure=restart", "--elastic=2:4", "--inject-rank-fault=kill:3:reduce:5",
                f"--flight-record={folder}/flight.json")
    # m.shard3-tensor2.fsdp is for 6 ranks, and shard=4 for as many ranks as the given artifact.
    for words in [f"elastic: 4 ranks: {folder}/m.fsdp, 2 ranks: {folder}/m.tensor2.fsdp", "resumed after step 4",
                  "compiled with --mesh=shard=2,tensor=2 --grad-accum=2 instead of --mesh=tensor=2 --grad-accum=4"]:
        assert words in said, (words, said)
    whole, shrunk = losses(f"{folder}/whole.jsonl"), losses(f"{folder}/shrunk.jsonl")
    assert len(whole) == len(shrunk) == 8, (whole, shrunk)
    assert all(abs(a - b) <= 2e-6 * abs(a) for a, b in zip(whole, shrunk)), (whole, shrunk)


def main():
    folder, values = os.path.abspath(sys.argv[1]), dict(option[2:].split("=") for option in sys.argv[2:])
    for number in range(int(values.get("random", 0))):
        seed = int(values.get("seed", 1)) + number
        print(f"seed {seed}: {check_random(folder, random.Random(seed))} elements are equal", flush=True)
    if "random" in values:
        return
    for name, (model, shared, mesh, own, meshes, others) in CELLS.items():
        a = Runs(f"{folder}/a", model, mesh, shared + own)
        saved, _ = check_mesh(a)
        for other in meshes:
            b = Runs(f"{folder}/b", model, other, shared + others)
            count = check_pair(a, saved, b, 2e-4 if "16" in name else 2e-6)
            print(f"{name}: {mesh} to {other}: {count} elements are equal", flush=True)
    shrink(f"{folder}/elastic")
    print("two of four ranks go on")


if __name__ == "__main__":
    main()
