"""Trains gpt.mlir with the optimizer's state in a file of each rank. Checks bits, bytes, saves, and errors of files."""
import os
import pathlib
import subprocess
import sys
import time

from offload import compile, run, train

STRATEGIES = [
    "--mesh=shard=1", "--mesh=shard=2 --clip-grad-norm=0.1", "--mesh=shard=3 --optimizer=sgd --momentum=0.9",
    "--mesh=replicate=2,shard=2", "--mesh=shard=2 --sharding-strategy=zero1 --param-dtype=bf16",
    "--mesh=shard=2 --param-dtype=bf16 --param-storage=both", "--mesh=shard=2 --grad-accum=2 --clip-grad-norm=1",
    "--mesh=shard=2 --optimizer-state-dtype=bf16"]
KINDS = ["optimizer:file", "gradients+optimizer:file", "parameters+gradients+optimizer:file+activations"]


def weights(artifact, *options):
    run("fsdp-run", artifact, "--overfit", "--seed=3", "--export=w.safetensors", *options)
    return pathlib.Path("w.safetensors").read_bytes()


def check_bits():
    runs = [train(strategy + overlap, KINDS[(number + len(overlap)) % len(KINDS)])
            for number, strategy in enumerate(STRATEGIES) for overlap in ("", " --overlap")]
    print(f"{len(runs)} runs to the bits of the unsharded model")
    for mesh in ("--mesh=replicate=2,shard=2", "--mesh=shard=2 --param-dtype=bf16 --param-storage=both --overlap"):
        file, plain = compile(mesh, "optimizer:file", "file.fsdp"), compile(mesh, "none", "plain.fsdp")
        same = weights("file.fsdp", "--steps=4") == weights("plain.fsdp", "--steps=4")
        print("the weights of a run without" if same and file["file"] > plain["file"] == 0 else f"error: {mesh} {file} {plain}")
        same = weights("file.fsdp", "--steps=4", "--processes") == weights("plain.fsdp", "--steps=4")
        print("the same with processes" if same else f"error: {mesh} with processes")


def check_window():
    """Checks that the host holds the state of some launches, not of all, and that this does not depend on their number."""
    for layers in (12, 24):
        run("fsdp-modelgen", "gpt2", f"--layers={layers}", "--hidden=64", "--heads=4", "--vocab=256", "--seq=64", "--batch=4",
            "-o", "deep.mlir")
        host, file = [compile("--mesh=shard=2 --overlap", f"parameters+gradients+{kind}", "deep.fsdp", "deep.mlir")
                      for kind in ("optimizer", "optimizer:file")]
        window = file["on_host"]["staging"] * layers / file["file"]
        print(f"{layers} layers: room for the state of {window:.1f}" if host["file"] == 0 else f"error: {host} {file}")


def check_saves():
    mesh = "--mesh=shard=2 --param-dtype=bf16 --param-storage=both"
    compile(mesh + " --overlap", "optimizer:file", "file.fsdp"), compile(mesh, "none", "plain.fsdp")
    weights("file.fsdp", "--steps=2", "--save=saved")
    same = weights("file.fsdp", "--steps=4", "--resume=saved") == weights("plain.fsdp", "--steps=4")
    print("saved and resumed: the weights of a run without" if same else "error: other weights")
    said = run("fsdp-run", "file.fsdp", "--overfit", "--seed=3", "--steps=4", "--resume=saved", "--check-against=unsharded")
    print("resumed and checked" if "check against unsharded passed" in said else f"error: {said}")


def refused(code, *command):
    """Runs a command that must fail with `code`, and prints its only error line."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = [line for line in done.stderr.splitlines() if "error: " in line]
    print(lines[0] if done.returncode == code and len(lines) == 1 else f"bad: {done.returncode} {done.stderr}")


def check_refusals():
    file = compile("--mesh=shard=2 --overlap", "optimizer:file", "file.fsdp")
    compile("--mesh=shard=2", "none", "plain.fsdp")
    pathlib.Path("plain").write_text("")
    for way in ([], ["--processes"]):
        start = ["fsdp-run", "file.fsdp", "--overfit", "--steps=2", *way]
        refused(2, *start, "--offload-dir=nowhere")
        refused(2, *start, "--offload-dir=plain")
        if not way:  # with processes, the limit would count shared memory, too
            limited = f"ulimit -f {file['file'] // 1024 - 1}; exec \"$@\""
            refused(1, "bash", "-c", limited, "bash", *start, "--offload-dir=.")
        full = f"mkdir -p small; mount -t tmpfs -o size={file['file'] // 2} none small && exec \"$@\""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0:
            refused(1, "unshare", "-rm", "bash", "-c", full, "bash", *start, "--offload-dir=small")
        else:
            print("small: not here: No space left on device")
    refused(2, "fsdp-run", "plain.fsdp", "--overfit", "--steps=2", "--offload-dir=.")
    done = subprocess.run(["fsdp-run", "file.fsdp", "--overfit", "--steps=2"], env={**os.environ, "TMPDIR": "nowhere"},
                          capture_output=True, text=True)
    print("TMPDIR counts" if done.returncode == 2 and "nowhere: cannot create" in done.stderr else f"error: {done}")
    names = [name for name in os.listdir(".") if name.startswith("fsdp-offload")]
    print("no file is left" if not names else f"error: {names}")


def files_of(process):
    """Returns the deleted files that a process and its children have open."""
    found = []
    for pid in family(process):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if "/lost/" in target and target.endswith(" (deleted)"):
                found.append(entry)
    return found


def family(process):
    all = [process]
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        all += [int(child) for child in (task / "children").read_text().split()]
    return all


def check_loss():
    """Truncates a file while a rank reads it during a run."""
    os.makedirs("lost", exist_ok=True)
    for way in ([], ["--processes"]):
        process = subprocess.Popen(["fsdp-run", "file.fsdp", "--overfit", "--steps=1000000", "--timeout-seconds=5",
                                    "--offload-dir=lost", *way], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not process.stdout.readline().startswith("step"):
            pass
        files = files_of(process.pid)
        os.truncate(files[-1], 0)
        said, errors = process.communicate(timeout=60)
        lines = [line for line in errors.splitlines() if "error: " in line]
        print(f"{len(files)} files; exit {process.returncode}: {lines[0] if len(lines) == 1 else errors}")


for check in (check_bits, check_window, check_saves, check_refusals, check_loss):
    start = time.time()
    check()
    print(f"{check.__name__}: {time.time() - start:.0f} s", file=sys.stderr)
