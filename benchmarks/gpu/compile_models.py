"""Compiles the models of a bundle: writes the artifacts OUT/models/CHIP/*.fsdp, and the losses of a training run on the CPU to OUT/models/NAME.cpu.json.

An artifact for the CPU computes the losses on this machine. run_all trains the model on the GPU with the same seed and tokens, and compares the
losses on the GPU with the losses on the CPU.
"""
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

import models

TOOLS = ("fsdp-modelgen", "fsdp-compile", "fsdp-run")


def run(*words):
    """Runs a command and returns how many seconds it took. Exits if the command fails."""
    words = [str(word) for word in words]
    began = time.monotonic()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        sys.exit(f"build: {words[0]} did not end within 1800 s: {' '.join(words)}")
    if done.returncode:
        sys.exit(f"build: {words[0]} failed with exit code {done.returncode}: {' '.join(words)}\n{done.stderr[-2000:]}")
    return time.monotonic() - began


def say(what, seconds):
    print(f"{what}, {seconds:.1f} s", file=sys.stderr, flush=True)


def losses_of(path):
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


def processor():
    """Returns the name of the processor, or its architecture if the name is not known."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def write_cpu_losses(folder, model, source, scratch, tokens):
    artifact, metrics = scratch / "cpu.fsdp", scratch / "cpu.jsonl"
    run("fsdp-compile", source, *models.compiler_options(1), "-o", artifact)
    options = models.train_options(model, tokens)
    seconds = run("fsdp-run", artifact, *options, f"--metrics={metrics}")
    say(f"trained {model['name']} on the CPU for {model['steps']} steps", seconds)
    command = f"fsdp-run {model['name']}.fsdp {' '.join(models.train_options(model, models.TOKENS))}"
    found = {"machine": processor(), "command": command, "losses": losses_of(metrics)}
    (folder / f"{model['name']}.cpu.json").write_text(json.dumps(found, indent=1) + "\n")


def compile_model(folder, model, chips, tokens):
    """Compiles all variants of a model for all chips. If run_all compares the training of the model with a run on the CPU, also writes the losses of
    that run."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for ranks in model["ranks"]:
            source = scratch / f"{ranks}.mlir"
            run("fsdp-modelgen", *models.generator_options(model, ranks), "-o", source)
            for chip in chips:
                for number, gemm in models.variants(model):
                    if number == ranks:
                        name = models.artifact_name(model, ranks, gemm)
                        say(f"compiled {name} for {chip}", run("fsdp-compile", source, *models.compiler_options(ranks), f"--target={chip}", f"--gemm={gemm}",
                                                              "-o", folder / chip / name))
        if model["steps"]:
            write_cpu_losses(folder, model, scratch / "1.mlir", scratch, tokens)


def compile_models(out, wanted, chips, text):
    """Compiles models. Also copies the training text `text` and fsdp-run to `out`. This fsdp-run needs no libraries but libstdc++ and libc."""
    folder = out / "models"
    for chip in chips:
        (folder / chip).mkdir(parents=True, exist_ok=True)
    shutil.copy(text, folder / models.TOKENS)
    binary = shutil.which("fsdp-run")
    shutil.copy(binary, out / "fsdp-run")
    if shutil.which("strip"):
        run("strip", out / "fsdp-run")
    for model in wanted:
        compile_model(folder, model, chips, folder / models.TOKENS)
