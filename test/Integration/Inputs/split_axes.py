"""Pairs of mesh axes x models: runs have the bits of the unsharded program, and the values of one plain rank.

    split_axes.py FOLDER grid [--all]      meshes of 2 to 8 ranks with one or two axes, on models of fsdp-modelgen
    split_axes.py FOLDER rings             meshes with the axis context, where keys and values travel in rings
    split_axes.py FOLDER views             meshes on a model with rotary pairs and keys that heads share
    split_axes.py FOLDER options           options that change sums, kernels or collectives: bits of the reference only
    split_axes.py FOLDER foreign MODELS [--all]
                                           the same on programs that PyTorch and JAX wrote (MODELS/*.mlir.gz)
    split_axes.py FOLDER rows [--all]      the same with --sequence-parallel: meshes with the axis tensor, options, foreign models
    split_axes.py FOLDER faults PLANT      planted faults are found (PLANT: test/Shard/Inputs/plant-partition.py)

Each run of three steps must equal, bit for bit, the program `reference` of its artifact: the unsharded program, whose sums
are split in the same order (--check-against=unsharded). Its losses, norms and weights must equal those of a run on one rank,
which computes all samples as micro-batches and splits no sum, within 2e-6.
"""
import gzip, itertools, json, os, re, subprocess, sys

HERE = os.path.dirname(__file__)
AXES = ["replicate", "shard", "context", "tensor"]
OPTIONS = ["--optimizer=sgd", "--momentum=0.9", "--clip-grad-norm=1"]
RUN = ["--steps=3", "--lr=0.1", "--seed=3"]
ROWS = ["--sequence-parallel"] if sys.argv[2] == "rows" else []


def call(*command, fails=False):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode and not fails:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr if fails else done.stdout


def meshes(sizes):
    """Returns the meshes of at most 8 ranks with one axis, or a pair of axes, of these sizes."""
    for axis, size in itertools.product(AXES, sizes):
        yield {axis: size}
    for a, b in itertools.combinations(AXES, 2):
        for x, y in itertools.product(sizes, sizes):
            if x * y <= 8:
                yield {a: x, b: y}


def name_of(mesh):
    return ",".join(f"{axis}={mesh[axis]}" for axis in AXES if axis in mesh)


def generate(folder, kind, mesh, odd=1):
    """Writes a model whose heads and sequence the mesh divides. Llama has half as many heads of keys and values."""
    heads = 2 * mesh.get("tensor", 1) * (2 if kind == "llama" else 1)
    model = f"{folder}/{kind}.{heads}.{mesh.get('context', 1)}.{odd}.mlir"
    rows = mesh["tensor"] if ROWS else 1
    shape = ["--layers=1", f"--hidden={8 * heads}", f"--heads={heads}", "--batch=2", f"--vocab={16 * heads + odd}",
             f"--seq={4 * rows * mesh.get('context', 1)}"]
    if kind == "llama":
        shape += [f"--kv-heads={heads // 2}", f"--intermediate={12 * heads}"]
    if not os.path.exists(model):
        call("fsdp-modelgen", kind, *shape, "-o", model)
    return model


def train(artifact, out, *options):
    """Runs the artifact. Writes its metrics and weights, and returns its output."""
    if os.path.exists(out + ".jsonl"):
        os.remove(out + ".jsonl")
    return call("fsdp-run", artifact, *RUN, f"--metrics={out}.jsonl", f"--export={out}.safetensors", *options, fails=True)


def train_plain(folder, model, samples):
    """Trains on one rank, with `samples` micro-batches. Returns the prefix of its metrics and weights."""
    out = f"{folder}/{os.path.basename(model)}.plain{samples}"
    if not os.path.exists(out + ".safetensors"):
        call("fsdp-compile", model, *OPTIONS, f"--grad-accum={samples}", "-o", out + ".fsdp")
        train(out + ".fsdp", out)
    return out


def compare(run, plain):
    return call(sys.executable, f"{HERE}/compare-runs.py", run, plain, fails=True)


def check(folder, model, mesh, *more, mayRefuse=False):
    """Compiles the model for the mesh, with more options, and trains it. Fails unless it has the bits of the reference and the values of a plain run."""
    out = f"{folder}/run"
    told = call("fsdp-compile", model, *OPTIONS, *ROWS, *more, f"--mesh={name_of(mesh)}", "-o", out + ".fsdp", fails=mayRefuse)
    if mayRefuse and re.search("does not divide|would be split along two dimensions", told):
        return False
    said = train(out + ".fsdp", out, "--check-against=unsharded", "--assert-no-allocations")
    if "check against unsharded passed: 3 steps" not in said:
        raise SystemExit(f"{model}, {name_of(mesh)}: {said[-2000:]}")
    told = compare(out, train_plain(folder, model, mesh.get("replicate", 1) * mesh.get("shard", 1)))
    if not told.startswith("equal within"):
        raise SystemExit(f"{model}, {name_of(mesh)}: {told}")
    return True


def grid(folder, isAll):
    chosen = ({2, 2}, {2, 4})
    pairs = [m for m in meshes(range(2, 9)) if isAll or (len(m) == 2 and set(m.values()) in chosen)]
    for kind in ("gpt2", "llama"):
        for mesh in pairs:
            check(folder, generate(folder, kind, mesh), mesh)
        print(f"{kind}: {len(pairs)} meshes, bits of the reference, equal within 2e-6 to one rank")


def rows(folder, isAll):
    """Rows of norms are split. Vocabularies that the axis tensor divides are split, and others stay whole."""
    chosen = ({2, 2}, {2, 4})
    pairs = [m for m in meshes(range(2, 9) if isAll else (2, 3, 4, 8)) if "tensor" in m and (isAll or len(m) == 1 or set(m.values()) in chosen)]
    for kind in ("gpt2", "llama"):
        for mesh in pairs:
            check(folder, generate(folder, kind, mesh, odd=sum(mesh.values()) % 2), mesh)
        print(f"{kind}: {len(pairs)} meshes, bits of the reference, equal within 2e-6 to one rank")


def rings(folder):
    chosen = [{"context": ranks} for ranks in (2, 3, 4)] + [m for m in meshes((2, 4)) if len(m) == 2 and "context" in m]
    for kind in ("gpt2", "llama"):
        for mesh in chosen:
            check(folder, generate(folder, kind, mesh), mesh, "--context-attention=ring")
        print(f"{kind}: {len(chosen)} meshes with rings, bits of the reference, equal within 2e-6 to one rank")


def views(folder):
    """Trains a model with slices that have strides, indices of a row, and a part of the keys that all heads read."""
    chosen = [{axis: ranks} for axis in ("context", "tensor") for ranks in (2, 4)] + [m for m in meshes((2,)) if len(m) == 2]
    for mesh in chosen:
        check(folder, f"{HERE}/rotated-heads.mlir", mesh)
    print(f"rotated heads: {len(chosen)} meshes, bits of the reference, equal within 2e-6 to one rank")


def options(folder):
    three = "--mesh=shard=2,context=2,tensor=2"
    for kind, *given in [("gpt2", three, "--grad-accum=2"), ("gpt2", three, "--grad-accum=2", "--grad-sync=last"),
                         ("gpt2", three, "--dropout=0.1"), ("gpt2", three, "--activation-checkpointing=full", "--overlap"),
                         ("gpt2", three, "--offload=parameters+gradients+optimizer+activations"),
                         ("gpt2", "--mesh=replicate=2,shard=2,tensor=2", "--sharding-strategy=zero1"),
                         ("gpt2", "--mesh=shard=4,tensor=2", "--reshard-after-forward=2"),
                         ("gpt2", three, "--reshard-after-forward=false"),
                         ("gpt2", "--mesh=shard=4,tensor=2", "--sharding-strategy=shard_grad_op", "--grad-accum=2"),
                         ("llama", three, "--gather-rows=always"), ("llama", three, "--param-dtype=bf16", "--reduce-dtype=bf16"),
                         ("llama", three, "--param-dtype=f16", "--reduce-dtype=f16", "--loss-scale-init=262144"),
                         ("llama", three, "--optimizer-state-dtype=bf16"),
                         ("llama", three, "--context-attention=ring", "--param-dtype=bf16", "--reduce-dtype=bf16", "--overlap"),
                         ("gpt2", three, "--fuse-attention=false"), ("llama", "--mesh=context=4,tensor=2", "--fuse-attention=false"),
                         ("gpt2", three, "--context-attention=ring", "--activation-checkpointing=full", "--grad-accum=2")]:
        model, artifact = f"{folder}/{kind}.mlir", f"{folder}/options.fsdp"
        dropout = [o for o in given if o.startswith("--dropout")]
        shape = ["--layers=1", "--hidden=48", "--heads=4", "--vocab=97", "--seq=8", "--batch=2"]
        call("fsdp-modelgen", kind, *shape, *(["--kv-heads=2", "--intermediate=80"] if kind == "llama" else dropout), "-o", model)
        call("fsdp-compile", model, "--clip-grad-norm=1", *ROWS, *(o for o in given if o not in dropout), "-o", artifact)
        said = call("fsdp-run", artifact, "--steps=3", "--check-against=unsharded", "--assert-no-allocations", fails=True)
        passed = re.search("check against unsharded passed: 3 steps on 8 ranks", said)
        print(f"{kind} {' '.join(given)}: {passed[0] if passed else said[-2000:]}")


def foreign(folder, models, isAll):
    """Trains programs of PyTorch and JAX on the meshes that divide their heads and their sequence. Mixtral routes tokens."""
    for name in ("GPT2", "Llama", "Gemma2", "Mixtral", "Bert", "jax-flax") if isAll else ("GPT2", "Llama", "Gemma2") + ("Mixtral",) * bool(ROWS):
        model = f"{folder}/{name}.mlir"
        with open(model, "wb") as file:
            file.write(gzip.decompress(open(f"{models}/{name}.mlir.gz", "rb").read()))
        count = 0
        for mesh in meshes((2, 4) if isAll else (2,)):
            if (not isAll and len(mesh) == 1) or (ROWS and "tensor" not in mesh):
                continue
            count += check(folder, model, mesh, mayRefuse=isAll)
        print(f"{name}: {count} meshes, bits of the reference, equal within 2e-6 to one rank")


def plant(ir, fault, script, where):
    """Returns `ir` with a fault, in the whole module or in the function @step alone."""
    begin, end = 0, len(ir)
    if where == "step":
        begin = ir.index("func.func @step")
        end = ir.index("\n  }\n", begin) + 5
    done = subprocess.run([sys.executable, script, fault], input=ir[begin:end], capture_output=True, text=True, check=True)
    assert done.stdout != ir[begin:end], fault
    return ir[:begin] + done.stdout + ir[end:]


def compile_planted(folder, model, mesh, fault, script, where, rows):
    """Compiles a step with a fault. Returns the messages of the compiler if it refuses the fault."""
    stage = {"model": "shard", "step": "differentiate"}[where]
    ir, artifact = f"{folder}/{stage}.mlir", f"{folder}/fault.fsdp"
    call("fsdp-compile", model, *OPTIONS, f"--mesh={mesh}", f"--compile-to={stage}", *rows, "-o", ir)
    if where == "step":  # the reference has no fault
        call("fsdp-opt", ir, "--fsdp-add-reference", "-o", f"{folder}/reference.mlir")
        ir = f"{folder}/reference.mlir"
    planted = f"{folder}/fault.mlir"
    with open(planted, "w") as file:
        file.write(plant(open(ir).read(), fault, script, where))
    following = {"shard": "differentiate", "differentiate": "update"}[stage]
    done = subprocess.run(["fsdp-compile", planted, *OPTIONS, f"--mesh={mesh}", f"--compile-from={following}", "-o", artifact],
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def faults(folder, script):
    """Faults in the step differ from the reference. Faults that the reference has too are refused, or differ from one rank."""
    model = f"{folder}/model.mlir"
    call("fsdp-modelgen", "gpt2", "--layers=1", "--hidden=32", "--heads=4", "--vocab=65", "--seq=8", "--batch=1", "-o", model)
    plain = train_plain(folder, model, 1)
    for where, mesh, fault, *rows in [("step", "tensor=2", "missing-sum"), ("step", "context=2", "missing-gather"),
                               ("step", "context=2", "first-rows"), ("step", "context=2", "wrong-offset"),
                               ("model", "tensor=2", "missing-sum"), ("model", "tensor=2", "wrong-heads"),
                               ("model", "tensor=2", "missing-entry"), ("model", "context=2", "missing-gather"),
                               ("model", "context=2", "missing-offset"), ("model", "context=2", "first-rows"),
                               ("model", "context=2", "missing-weight"),
                               ("step", "tensor=2", "other-rows", "--sequence-parallel"),
                               ("model", "tensor=2", "missing-norm-sum", "--sequence-parallel"),
                               ("model", "tensor=2", "first-rows", "--sequence-parallel")]:
        refused = compile_planted(folder, model, mesh, fault, script, where, rows)
        if refused:
            found = re.search("error: (.*)", refused)[1]
        else:
            out = f"{folder}/fault"
            said = train(out + ".fsdp", out, "--check-against=unsharded")
            found = re.search("check against unsharded (failed|passed).*", said)[0]
            if where == "model":
                found = compare(out, plain).strip()
        print(f"{where}, {mesh}, {fault}: {found}")


folder, what = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)
if what == "grid":
    grid(folder, "--all" in sys.argv)
elif what == "rows":
    rows(folder, "--all" in sys.argv)
    options(folder)
    foreign(folder, sys.argv[3], isAll=False)
elif what in ("rings", "views"):
    {"rings": rings, "views": views}[what](folder)
elif what == "options":
    options(folder)
elif what == "foreign":
    foreign(folder, sys.argv[3], "--all" in sys.argv)
else:
    faults(folder, sys.argv[3])
