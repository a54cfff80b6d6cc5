"""Trains GPT-2 124M on this CPU with this project, PyTorch and JAX, and compares tokens per second and memory.

  build/python/bin/python benchmarks/peers/cpu_train.py --python=PYTHON [--rounds=3] [--steps=4] [--out=PAGE.md]

PYTHON is a Python interpreter that can import torch. If it cannot import jax, the rows of JAX are omitted. Nothing is installed. Each program runs in
a process of its own. The program first runs warm-up steps and then timed steps; each step trains on one sequence of 1024 tokens per rank (forward,
backward, clipping, AdamW). All programs run once in each round, so that other processes of the machine affect all of them. A row of the table shows
the best round and the spread, which is the time of the worst round divided by the time of the best round. A single rank has two threads, and each of
two ranks has one thread. A single rank of this project keeps its bf16 copies of the parameters until the backward (--reshard-after-forward=false), as
autocast does. PyTorch computes in bf16 by autocast, or, with fully_shard, by MixedPrecisionPolicy(param_dtype=bf16). Both compute logits in bf16, and
fully_shard also reduces gradients in bf16. This project does the same (--output-dtype=bf16, and --reduce-dtype=bf16 with two ranks). Exit codes: 0
success, 1 a program failed, 2 bad usage.
"""
import argparse
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = pathlib.Path(__file__).resolve().parent
LENGTH, WARM = 1024, 2
STEPS = 4  # timed steps of a program per round, set by --steps
LIMIT_SECONDS = 900
# Each entry contains a name, the number of ranks, and the number of threads per rank.
PROGRAMS = [("fsdp-mlir", 1, 2), ("torch eager", 1, 2), ("torch.compile", 1, 2), ("jax", 1, 2),
            ("fsdp-mlir", 2, 1), ("fully_shard + gloo", 2, 1), ("jax", 2, 1)]
DTYPES = ["f32", "bf16"]


def report(seconds, loss):
    """Prints the result of a child process as JSON: the seconds of each timed step, the last loss, and the peak resident bytes."""
    import resource

    print(json.dumps({"seconds": seconds, "loss": loss,
                      "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


def timed(step):
    """Runs the warm-up steps and the timed steps. Returns the seconds of each timed step, and the last loss."""
    seconds, loss = [], None
    for number in range(WARM + STEPS):
        start = time.perf_counter()
        loss = float(step())
        if number >= WARM:
            seconds.append(time.perf_counter() - start)
    return seconds, loss


def train_torch(compiled, dtype, threads):
    import models
    import torch

    torch.set_num_threads(threads)
    model = models.make_torch(LENGTH)
    named = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in named if p.dim() > 1], "weight_decay": models.DECAY},
                                   {"params": [p for p in named if p.dim() <= 1], "weight_decay": 0.0}], lr=models.RATE)
    run = torch.compile(model) if compiled else model
    tokens, targets = torch.randint(0, models.VOCABULARY, (2, 1, LENGTH))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = run(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(named, models.CLIP)
        optimizer.step()
        return loss.detach()

    report(*timed(step))


def train_fully_shard(dtype, threads, rank, ranks, port):
    import models
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    torch.set_num_threads(threads)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    model = models.make_torch(LENGTH)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16) if dtype == "bf16" else MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    named = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in named if p.dim() > 1], "weight_decay": models.DECAY},
                                   {"params": [p for p in named if p.dim() <= 1], "weight_decay": 0.0}], lr=models.RATE)
    torch.manual_seed(rank)
    tokens, targets = torch.randint(0, models.VOCABULARY, (2, 1, LENGTH))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(named, models.CLIP)
        optimizer.step()
        return loss.detach()

    seconds, loss = timed(step)
    if rank == 0:
        report(seconds, loss)
    dist.destroy_process_group()


def train_jax(dtype, ranks):
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={ranks}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import models
    import numpy as np
    import optax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    parameters, loss_of = models.make_jax(LENGTH)
    mesh = Mesh(np.array(jax.devices()), ("shard",))
    # Shards each value along its first dimension whose size is at least 64 and a multiple of the number of ranks.
    def place(value):
        split = next((i for i, n in enumerate(value.shape) if n % ranks == 0 and n >= 64), None)
        axes = [None] * value.ndim
        if split is not None and ranks > 1:
            axes[split] = "shard"
        return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*axes)))

    parameters = jax.tree.map(place, parameters)
    decay = jax.tree.map(lambda p: p.ndim > 1, parameters)
    optimizer = optax.chain(optax.clip_by_global_norm(models.CLIP),
                            optax.adamw(models.RATE, weight_decay=models.DECAY, mask=decay))
    state = jax.jit(optimizer.init)(parameters)
    wanted = jnp.bfloat16 if dtype == "bf16" else jnp.float32

    @jax.jit
    def update(parameters, state, tokens, targets):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, tokens, targets, wanted)
        changes, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, changes), state, loss

    random = np.random.default_rng(0)
    batch = [jax.device_put(random.integers(0, models.VOCABULARY, (ranks, LENGTH)),
                            NamedSharding(mesh, PartitionSpec("shard"))) for _ in range(2)]
    held = [parameters, state]

    def step():
        held[0], held[1], loss = update(*held, *batch)
        return loss

    report(*timed(step))


def child(words):
    sys.path.insert(0, str(HERE))
    name, dtype, threads, *rest = words
    if name in ("torch eager", "torch.compile"):
        train_torch(name == "torch.compile", dtype, int(threads))
    elif name == "jax":
        train_jax(dtype, int(rest[0]))
    else:
        train_fully_shard(dtype, int(threads), int(rest[0]), int(rest[1]), int(rest[2]))


def run_own(tools, folder, ranks, threads, dtype):
    """Compiles the model unless its artifact exists, and trains with fsdp-run. Returns the result with the members that a child process prints."""
    artifact = folder / f"{ranks}.{dtype}.fsdp"
    if not artifact.exists():
        subprocess.run([tools / "fsdp-modelgen", "gpt2", "--batch=1", f"--seq={LENGTH}", "-o", folder / "gpt2.mlir"],
                       check=True, capture_output=True)
        subprocess.run([tools / "fsdp-compile", folder / "gpt2.mlir", f"--mesh=shard={ranks}", f"--threads-per-rank={threads}",
                        "--clip-grad-norm=1", *(["--param-dtype=bf16", "--output-dtype=bf16"] if dtype == "bf16" else []),
                        *(["--reshard-after-forward=false"] if ranks == 1 else []),
                        *(["--reduce-dtype=bf16"] if ranks > 1 and dtype == "bf16" else []), "-o", artifact], check=True)
    metrics = folder / "steps.jsonl"
    subprocess.run([tools / "fsdp-run", artifact, f"--ranks={ranks}", "--overfit", f"--steps={WARM + STEPS}", "--val-batches=0",
                    f"--metrics={metrics}"], check=True, capture_output=True, timeout=LIMIT_SECONDS)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()][WARM:]
    return {"seconds": [row["step_ms"] / 1e3 for row in rows], "loss": rows[-1]["loss"], "bytes": rows[-1]["resident_bytes"]}


def bound_seconds(tools, folder, ranks, dtype):
    """Returns the seconds of a step's multiply-adds on rank 0 at the peak rates that fsdp-run measures."""
    profile = folder / "profile.json"
    subprocess.run([tools / "fsdp-run", folder / f"{ranks}.{dtype}.fsdp", f"--ranks={ranks}", "--overfit", "--steps=2", "--val-batches=0",
                    "--profile", f"--profile-file={profile}"], check=True, capture_output=True, timeout=LIMIT_SECONDS)
    found = json.loads(profile.read_text())
    return sum(command[key] / found["peak_rates"][f"{key}_per_second"]
               for command in found["commands"] for key in ("multiply_adds", "bf16_multiply_adds")) / found["steps"]


def run_peer(python, name, ranks, threads, dtype):
    """Runs a program of PyTorch or JAX. If the program has several processes, their memory is estimated as the memory of the first process times the
    number of processes."""
    words = [python, __file__, f"--steps={STEPS}", "--child", name, dtype, str(threads)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if name == "jax":
        extra, copies = [[str(ranks)]], 1
    elif ranks > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        extra, copies = [[str(rank), str(ranks), str(port)] for rank in range(ranks)], ranks
    else:
        extra, copies = [[]], 1
    started = [subprocess.Popen(words + e, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for e in extra]
    outputs = [process.communicate(timeout=LIMIT_SECONDS) for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"{name}, {dtype}: {outputs[0][1].strip().splitlines()[-1:]}")
    result = json.loads(outputs[0][0].strip().splitlines()[-1])
    result["bytes"] *= copies
    return result


def describe(python):
    """Returns the versions of the packages, and the processor's model and its features for matrix products."""
    code = ("import importlib.metadata as m\nfor p in ('torch', 'jax', 'jaxlib', 'optax'):\n"
            "  try: print(p, m.version(p))\n  except m.PackageNotFoundError: pass")
    found = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.split("\n")
    info = pathlib.Path("/proc/cpuinfo").read_text()
    field = lambda key: next((line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith(key)), "?")
    features = [f for f in ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16") if f in field("flags").split()]
    return (", ".join(filter(None, found)), f"{field('model name')}, family {field('cpu family')}, model {field('model')}, "
            f"{os.cpu_count()} CPUs, {' '.join(features)}")


HEAD = """# Training on a CPU, beside PyTorch and JAX

This page compares the speed of training on CPUs. The tables have times of whole training steps of
GPT-2 124M with clipping and AdamW, on one sequence of 1024 tokens per rank.
`benchmarks/peers/cpu_train.py` wrote this page. The fastest step counts. Spread is the time of the
slowest step divided by the time of the fastest step. A bound is the rate at which the multiply-adds
of fsdp-mlir's step would run at the peak that `fsdp-run --profile` measures. In the rows of bf16,
PyTorch computes logits in bf16, and fully_shard also reduces gradients in bf16. fsdp-mlir does the
same.
"""


def section(results, versions, processor, rounds):
    """Returns the title and the text of the section of one processor."""
    lines = [*textwrap.wrap(f"- CPU: {processor}", 100, subsequent_indent="  "),
             f"- Date: {datetime.date.today()}; {rounds} round{'s' * (rounds > 1)} of {STEPS} steps in turns", f"- Versions: {versions}", "",
             "| ranks x threads | type | program | tokens/s | fsdp-mlir / program | spread | resident |", "|---|---|---|---|---|---|---|"]
    for (name, ranks, threads, dtype), (seconds, size) in results.items():
        own = results.get(("fsdp-mlir", ranks, threads, dtype))
        ratio = f"{min(seconds) / min(own[0]):.2f}" if own else "-"
        rest = f"{max(seconds) / min(seconds):.2f} | {size / 2**30:.1f} GiB" if size else "- | -"
        lines.append(f"| {ranks} x {threads} | {dtype} | {name} | {ranks * LENGTH / min(seconds):.0f} | {ratio} | {rest} |")
    name, features = processor.split(", family")[0], processor.split()
    if "avx512_fp16" in features:  # Intel's server cores, whose AMX a hypervisor may hide
        name += " with AMX" if "amx_bf16" in features else " without AMX"
    return name, "\n".join(lines) + "\n"


def merge(old, title, text):
    """Returns the page `old` with the section `title` replaced or added."""
    sections = dict(part.split("\n\n", 1) for part in old.split("\n## ")[1:])
    sections[title] = text
    return HEAD + "".join(f"\n## {name}\n\n{body.rstrip()}\n" for name, body in sorted(sections.items()))


def main():
    global STEPS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="Python with torch and, optionally, jax")
    parser.add_argument("--tools", default=HERE.parents[1] / "build" / "bin", type=pathlib.Path, help="folder of fsdp-compile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="timed steps of a program per round")
    parser.add_argument("--only", default="", help="programs, separated by commas (default: all)")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--out", help="page to write (default: print it)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.steps < 1 or options.rounds < 1:
        parser.error("expected at least 1 step and 1 round")
    STEPS = options.steps
    if options.child:
        return child(options.child)
    chosen = [p for p in PROGRAMS if not options.only or p[0] in options.only.split(",")]
    if not chosen:
        parser.error(f"unknown program; expected {', '.join(sorted({p[0] for p in PROGRAMS}))}")
    results, failed = {}, set()
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.rounds):
            for dtype in options.dtypes.split(","):
                for program, ranks, threads in chosen:
                    key = (program, ranks, threads, dtype)
                    if key in failed:
                        continue
                    try:
                        one = (run_own(options.tools, pathlib.Path(name), ranks, threads, dtype) if program == "fsdp-mlir"
                               else run_peer(options.python, program, ranks, threads, dtype))
                    except (RuntimeError, subprocess.SubprocessError) as error:
                        print(f"{key}: {error}", file=sys.stderr)
                        failed.add(key)
                        continue
                    seconds, size = results.get(key, ([], 0))
                    results[key] = (seconds + one["seconds"], max(size, one["bytes"]))
                    print(f"round {number + 1}: {key}: {ranks * LENGTH / min(one['seconds']):.0f} tokens/s, "
                          f"loss {one['loss']:.4f}", file=sys.stderr, flush=True)
        for ranks, threads, dtype in [key[1:] for key in results if key[0] == "fsdp-mlir"]:
            results["bound", ranks, threads, dtype] = [bound_seconds(options.tools, pathlib.Path(name), ranks, dtype)], 0
    found = section(dict(sorted(results.items(), key=lambda r: (r[0][1], r[0][3] != "f32"))), *describe(options.python), options.rounds)
    out = options.out and pathlib.Path(options.out)
    text = merge(out.read_text() if out and out.exists() else "", *found)
    out.write_text(text) if out else print(text)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
