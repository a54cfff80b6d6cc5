"""Resumes a save of four ranks on other meshes, strategies, storages and units.

For each cell: (1) a run without further steps writes the save again in its own layout; every parameter and optimizer
state equals the first save element for element. (2) From there, four ranks write the first layout again: every byte of
every file is the same, with step blocks and padding. (3) The cell resumes the first save and trains on: its losses are
those of the run that went on, within 2e-6 or bit for bit. (4) One line says how the artifact differs.
Then runs lose one of their four ranks, and go on with three ranks and an artifact of --also-mesh.

usage: elastic.py FOLDER [--all]
"""
import json, os, shutil, sys
from array import array

from save_files import WIDTH, call, states

ORDER, HEDGE = "sums over ranks are in another order", "losses have equal bits if both artifacts compute in equal types"
ROUNDED = "first_moment, second_moment rounded from F32 to BF16; losses differ by this rounding"
FULL = "--mesh=shard=4"
SGD = ["--optimizer=sgd", "--momentum=0.9"]
MASTER, BOTH = ["--param-dtype=bf16"], ["--param-dtype=bf16", "--param-storage=both"]
F16 = ["--param-dtype=f16", "--loss-scale-init=4194304", "--loss-scale-growth-interval=3"]
# Options of the first artifact; samples per rank and options of the other; largest difference of losses; the line.
SOME = {
    "1 rank": ([], 12, ["--mesh=shard=1"], 2e-6, ORDER),
    "3 ranks": ([], 4, ["--mesh=shard=3"], 2e-6, ORDER),
    "2x2 hybrid": ([], 3, ["--mesh=replicate=2,shard=2", "--sharding-strategy=hybrid_shard"], 2e-6, ORDER),
    "zero1": ([], 3, [FULL, "--sharding-strategy=zero1"], 0, HEDGE),
}
MORE = {
    "zero2": ([], 3, [FULL, "--sharding-strategy=zero2"], 0, HEDGE),
    "no_shard": ([], 3, [FULL, "--sharding-strategy=no_shard"], 2e-6, HEDGE),
    "2x2 hfsdp": ([], 3, ["--mesh=replicate=2,shard=2", "--sharding-strategy=hfsdp"], 2e-6, ORDER),
    "2 ranks, accumulated": ([], 3, ["--mesh=shard=2", "--grad-accum=2"], 2e-6, ORDER),
    "one unit": ([], 3, [FULL, "--auto-wrap-policy=none"], 0, HEDGE),
    "six ranks": ([], 2, ["--mesh=shard=6"], 2e-6, ORDER),
    "offload to a file": ([], 6, ["--mesh=shard=2", "--offload=optimizer:file"], 2e-6, ORDER),
    "momentum": (SGD, 4, [*SGD, "--mesh=shard=3"], 2e-6, ORDER),
    "bf16 moments": ([], 3, [FULL, "--optimizer-state-dtype=bf16"], 2e-4, ROUNDED),
    "masters to both": (MASTER, 3, [*BOTH, FULL], 0, HEDGE),
    "both to masters": (BOTH, 3, [*MASTER, FULL], 0, HEDGE),
    "both to zero1": (BOTH, 3, [*MASTER, FULL, "--sharding-strategy=zero1"], 0, HEDGE),
    "f16, scaled": (F16, 4, [*F16, "--mesh=shard=3"], 2e-3, ORDER),
}


def rounded(values):
    """Returns f32 as bf16, to nearest, ties to even."""
    words = array("I", values)
    return array("H", [(word + 0x7fff + (word >> 16 & 1)) >> 16 & 0xffff for word in words]).tobytes()


def values_of(found, name):
    """Returns the values of a parameter: those of its master, if it has one."""
    return found.get((name, "master")) or found[name, "parameter"]


def expect_equal(first, other):
    assert {name for name, _ in first} == {name for name, _ in other}
    roles = {role for _, role in first} - {"parameter", "master"}
    assert roles and roles == {role for _, role in other} - {"parameter", "master"}
    count = 0
    for (name, role), (dtype, data) in other.items():
        kind, wanted = values_of(first, name) if role in ("parameter", "master") else first[name, role]
        if dtype != kind:
            assert (kind, dtype) == ("F32", "BF16"), (name, role, kind, dtype)
            wanted = rounded(wanted)
        assert data == wanted, (name, role)
        count += len(data) // WIDTH[dtype]
    return count


def metrics(path):
    return [json.loads(line) for line in open(path)]


def check(folder, name, cell):
    first, samples, options, most, line = cell
    four, artifact, resumed = f"{folder}/four.fsdp", f"{folder}/m.fsdp", f"{folder}/first/step-00000005"
    run = ["--text=" + __file__, "--lr=0.003", "--val-batches=1"]
    call("fsdp-compile", f"{folder}/3.mlir", FULL, *first, "-o", four)
    call("fsdp-compile", f"{folder}/{samples}.mlir", *options, "-o", artifact)
    for save in ("first", "other", "back"):
        shutil.rmtree(f"{folder}/{save}", ignore_errors=True)
    call("fsdp-run", four, *run, "--steps=10", "--save=" + f"{folder}/first", "--save-every=5",
         f"--metrics={folder}/first.jsonl")
    said = call("fsdp-run", artifact, *run, "--steps=5", "--resume=" + resumed, f"--save={folder}/other")
    notes = [text for text in said.splitlines() if "the save is of another artifact" in text]
    assert len(notes) == 1 and line in notes[0], (name, said)
    count = expect_equal(states(resumed), states(f"{folder}/other/step-00000005"))
    call("fsdp-run", four, *run, "--steps=5", f"--resume={folder}/other", f"--save={folder}/back")
    if ROUNDED not in line:
        for rank in range(4):
            files = [open(f"{save}/rank-0000{rank}.safetensors", "rb").read()
                     for save in (resumed, f"{folder}/back/step-00000005")]
            assert files[0] == files[1], (name, rank)
    call("fsdp-run", artifact, *run, "--steps=10", "--resume=" + resumed, "--check-against=unsharded",
         f"--metrics={folder}/other.jsonl")
    wanted = {one["step"]: one for one in metrics(f"{folder}/first.jsonl")}
    lines = metrics(f"{folder}/other.jsonl")
    assert [one["step"] for one in lines] == [6, 7, 8, 9, 10], name
    for one in lines:
        for key in ("loss", "validation_loss"):
            if key in one:
                assert abs(one[key] - wanted[one["step"]][key]) <= most, (name, one[key], wanted[one["step"]][key])
        for key in ("loss_scale", "skipped_steps", "lr"):
            assert one.get(key) == wanted[one["step"]].get(key), (name, key)
    return count


def convert_large(folder):
    """A parameter of more than a chunk of 1 MiB, from one rank to two with bf16 moments."""
    call("fsdp-modelgen", "gpt2", "--layers=1", "--hidden=64", "--heads=2", "--vocab=9001", "--seq=4", "--batch=2",
         "-o", f"{folder}/large.mlir")
    for name, options in {"one": [], "two": ["--mesh=shard=2", "--optimizer-state-dtype=bf16"]}.items():
        call("fsdp-compile", f"{folder}/large.mlir", *options, "-o", f"{folder}/{name}.fsdp")
    call("fsdp-run", f"{folder}/one.fsdp", "--steps=2", f"--save={folder}/large")
    call("fsdp-run", f"{folder}/two.fsdp", "--steps=2", f"--resume={folder}/large", f"--save={folder}/converted")
    return expect_equal(states(f"{folder}/large/step-00000002"), states(f"{folder}/converted/step-00000002"))


def refuse(folder):
    """A model that is not the same is refused with names and a note."""
    text = open(f"{folder}/3.mlir").read()
    for name, model in {"renamed": text.replace("h.1.mlp.c_fc.bias", "h.1.mlp.c_fc.other"), "wide": None, "deep": None}.items():
        if model is not None:
            open(f"{folder}/{name}.mlir", "w").write(model)
    call("fsdp-modelgen", "gpt2", "--layers=2", "--hidden=36", "--heads=3", "--vocab=256", "--seq=13", "--batch=3", "-o", f"{folder}/wide.mlir")
    call("fsdp-modelgen", "gpt2", "--layers=3", "--hidden=24", "--heads=3", "--vocab=256", "--seq=13", "--batch=3", "-o", f"{folder}/deep.mlir")
    note = "note: resume with an artifact of the model that was saved, from"
    for model, options, words in [
            ("wide", [], ["'h.0.attn.c_attn.weight': expected shape 36x108, found 24x72", "and 18 more"]),
            ("deep", [], ["missing from the save: 'h.2.attn.c_attn.bias' (72)", "and 2 more"]),
            ("renamed", [], ["missing from the save: 'h.1.mlp.c_fc.other' (96)",
                             "not a parameter of", "'h.1.mlp.c_fc.bias' (96)"]),
            ("3", SGD, ["the save has no momentum: 'h.0.attn.c_attn.bias' and 27 more", "keeps no first_moment"]),
            ("3", ["--freeze=h.0"], ["keeps no second_moment: 'h.0.attn.c_attn.bias' and 11 more"])]:
        call("fsdp-compile", f"{folder}/{model}.mlir", "--mesh=shard=2", *options, "-o", f"{folder}/m.fsdp")
        said = call("fsdp-run", f"{folder}/m.fsdp", f"--resume={folder}/first/step-00000005", code=2)
        for word in ["not a save of the model and optimizer in", *words, note]:
            assert word in said, (model, word, said)
    # A model with fewer layers: the save has more.
    call("fsdp-compile", f"{folder}/deep.mlir", "-o", f"{folder}/m.fsdp")
    call("fsdp-run", f"{folder}/m.fsdp", "--steps=1", f"--save={folder}/deep")
    said = call("fsdp-run", f"{folder}/four.fsdp", f"--resume={folder}/deep", code=2)
    assert "not a parameter of" in said and "'h.2.ln_1.bias' (24)" in said, said


def shrink(folder, options, others, expected, seen):
    """A rank is lost in step 7: three ranks go on from step 6, with as many samples in each step."""
    call("fsdp-modelgen", "gpt2", "--layers=2", "--hidden=24", "--heads=3", "--vocab=256", "--seq=12", "--batch=1",
         "-o", f"{folder}/1.mlir")
    call("fsdp-compile", f"{folder}/1.mlir", *options, f"--also-mesh={others}", "-o", f"{folder}/gpt.fsdp")
    shutil.rmtree(f"{folder}/shrunk", ignore_errors=True)
    for name in ("whole", "shrunk"):
        if os.path.exists(f"{folder}/{name}.jsonl"):
            os.remove(f"{folder}/{name}.jsonl")
    run = ["fsdp-run", f"{folder}/gpt.fsdp", "--text=" + __file__, "--lr=0.003", "--steps=10"]
    call(*run, f"--metrics={folder}/whole.jsonl")
    said = call(*run, f"--metrics={folder}/shrunk.jsonl", "--processes", f"--save={folder}/shrunk", "--save-every=3",
                "--on-failure=restart", "--elastic=2:8", "--inject-rank-fault=kill:2:reduce:7",
                f"--flight-record={folder}/flight.json")
    seen = seen.replace("FOLDER", folder)
    for words in [seen, "rank 2 (process", "(1 of at most 3)", "resumed after step 6", expected, ORDER]:
        assert words in said, (words, said)
    whole, shrunk = metrics(f"{folder}/whole.jsonl"), metrics(f"{folder}/shrunk.jsonl")
    assert [one["step"] for one in whole] == [one["step"] for one in shrunk]
    assert all(abs(a["loss"] - b["loss"]) <= 2e-6 for a, b in zip(whole, shrunk)), (whole, shrunk)


def main():
    folder = os.path.abspath(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for samples in (2, 3, 4, 6, 12):
        call("fsdp-modelgen", "gpt2", "--layers=2", "--hidden=24", "--heads=3", "--vocab=256", "--seq=13",
             f"--batch={samples}", "-o", f"{folder}/{samples}.mlir")
    cells = {**SOME, **MORE} if "--all" in sys.argv else SOME
    for name, cell in cells.items():
        count = check(folder, name, cell)
        print(f"{name}: {count} elements are equal")
    if "--all" in sys.argv:
        print(f"large: {convert_large(folder)} elements are equal")
    refuse(folder)
    print("other models are refused")
    shrink(folder, [FULL, "--grad-accum=3"], "shard=3,replicate=2,shard=3,shard=2",
           "compiled with --mesh=shard=4 --grad-accum=3 instead of --mesh=shard=3 --grad-accum=4: states are equal",
           "elastic: 6 ranks: FOLDER/gpt.replicate2-shard3.fsdp, 4 ranks: FOLDER/gpt.fsdp, 3 ranks:")
    print("three of four ranks go on")
    shrink(folder, ["--mesh=shard=2,context=2"], "context=3",
           "compiled with --mesh=shard=2,context=2 instead of --mesh=context=3 --grad-accum=2: states are equal",
           "on 3 ranks with FOLDER/gpt.context3.fsdp")
    print("three ranks of an axis context go on")


if __name__ == "__main__":
    main()
