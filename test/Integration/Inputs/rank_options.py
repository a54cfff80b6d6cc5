"""Gives each option of fsdp-run to one of two ranks, which meet as under torchrun.

    rank_options.py FOLDER ARTIFACT TEXT

Either both ranks refuse to run, with exit code 2 and a message that names the difference, or the run ends with the
same weights, bit for bit, as without the option. There is no third result: no rank may train on other options than
the others, and none may wait for a rank that does something else. Every option of --help must be in a table below.
Prints a line per option that fails, and counts. Exit codes: 0, 1.
"""

import os
import pathlib
import re
import socket
import subprocess
import sys

folder, artifact, text = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
folder.mkdir(parents=True, exist_ok=True)
os.chdir(folder)
LIMIT = 100

# What both ranks get, and what one rank gets in addition or instead; with "all", an option of both ranks is replaced.
PLAIN = ["--text", str(text), "--steps=4"]
DATA = ["--data", str(text), "--steps=4"]
SAVES = PLAIN + ["--save=saves"]
REFUSED = {  # message
    "--text": (["--synthetic=tokens", "--synthetic=targets", "--steps=4"], None, PLAIN, "ranks do not agree"),
    "--data": (PLAIN, None, DATA, "ranks do not agree"),
    "--input": (PLAIN, None, ["--input", "tokens=ids.bin", "--synthetic=targets", "--steps=4"], "ranks do not agree"),
    "--synthetic": (["--input", "tokens=ids.bin", "--input", "targets=ids.bin", "--steps=4"], None,
                    ["--input", "tokens=ids.bin", "--synthetic=targets", "--steps=4"], "ranks do not agree"),
    "--token-dtype": (DATA, ["--token-dtype=uint16"], None, "expected an id in"),
    "--overfit": (PLAIN, ["--overfit"], None, "--overfit"),
    "--val-fraction": (PLAIN, ["--val-fraction=0.2"], None, "--val-fraction"),
    "--val-every": (PLAIN, ["--val-every=2"], None, "--val-every"),
    "--val-batches": (PLAIN, ["--val-batches=1"], None, "--val-batches"),
    "--steps": (PLAIN, None, ["--text", str(text), "--steps=5"], "--steps"),
    "--lr": (PLAIN, ["--lr=0.5"], None, "--lr"),
    "--warmup": (PLAIN, ["--warmup=2"], None, "--warmup"),
    "--lr-decay-steps": (PLAIN, ["--lr-decay-steps=4"], None, "--lr-decay-steps|--min-lr"),
    "--min-lr": (PLAIN, ["--min-lr=1e-5"], None, "--min-lr|--lr-decay-steps"),
    "--on-nonfinite": (PLAIN, ["--on-nonfinite=skip"], None, "--on-nonfinite"),
    "--seed": (PLAIN, ["--seed=7"], None, "seed"),
    "--init": (PLAIN, ["--init=plain.safetensors"], None, "--init"),
    "--export": (PLAIN, ["--export=other.safetensors"], None, "--export"),
    "--save": (PLAIN, ["--save=new"], None, "--save"),
    "--save-every": (SAVES, ["--save-every=2"], None, "--save-every"),
    "--wait-for-saves": (SAVES, ["--wait-for-saves"], None, "--wait-for-saves"),
    "--resume": (PLAIN, ["--resume=half"], None, "ranks do not agree"),
    "--device": (PLAIN, ["--device=emulate"], None, "--device|compiled for the CPU"),
    "--gemm": (PLAIN, ["--gemm=auto"], None, "--gemm|ranks do not agree"),
    "--cuda-graph": (PLAIN, ["--cuda-graph"], None, "--cuda-graph needs"),
    "--nccl-windows": (PLAIN, ["--nccl-windows=off"], None, "--nccl-windows needs"),
    "--nccl-cta-policy": (PLAIN, ["--nccl-cta-policy=zero"], None, "--nccl-cta-policy needs"),
    "--nccl-max-ctas": (PLAIN, ["--nccl-max-ctas=8"], None, "--nccl-max-ctas needs"),
    "--processes": (PLAIN, ["--processes"], None, "--processes"),
    "--mpi-reduce": (PLAIN, ["--mpi-reduce=library"], None, "--mpi-reduce"),
    "--on-failure": (PLAIN, ["--on-failure=restart"], None, "--on-failure"),
    "--max-restarts": (PLAIN, ["--max-restarts=2"], None, "--max-restarts"),
    "--offload-dir": (PLAIN, ["--offload-dir=/tmp"], None, "--offload-dir"),
    "--check-against": (PLAIN, ["--check-against=unsharded"], None, "--check-against"),
    "--trace": (PLAIN, ["--trace=t.json"], None, "--trace"),
    "--trace-steps": (PLAIN + ["--trace=t.json"], ["--trace-steps=2"], None, "--trace-steps"),
    "--ranks": (PLAIN, ["--ranks=3"], None, "ranks"),
    "--config": (PLAIN, ["--config=lr.json"], None, "--lr"),
}
EQUAL = {
    "--verify-key": (PLAIN, ["--verify-key=public.pem"]),
    "--keep": (PLAIN + ["--save=saves", "--save-every=1"], ["--keep=1"]),
    "--other-data": (PLAIN + ["--resume=half"], ["--other-data"]),
    "--threads-per-rank": (PLAIN, ["--threads-per-rank=3"]),
    "--link-bandwidth": (PLAIN, ["--link-bandwidth=1e9"]),
    "--timeout-seconds": (PLAIN, ["--timeout-seconds=50"]),
    "--rendezvous-timeout": (PLAIN, ["--rendezvous-timeout=50"]),
    "--heartbeat-seconds": (PLAIN, ["--heartbeat-seconds=30"]),
    "--elastic": (PLAIN, ["--elastic=1:2"]),  # says which artifacts a restart may use
    "--elastic-artifacts": (PLAIN, ["--elastic=1:2", "--elastic-artifacts=."]),
    "--flight-record": (PLAIN, ["--flight-record=flight.json"]),
    "--metrics": (PLAIN, ["--metrics=m.jsonl"]),
    "--tensorboard": (PLAIN, ["--tensorboard=tb"]),
    "--profile": (PLAIN, ["--profile"]),
    "--profile-file": (PLAIN + ["--profile"], ["--profile-file=p.json"]),
    "--restrict-calls": (PLAIN, ["--restrict-calls"]),
    "--assert-no-allocations": (PLAIN, ["--assert-no-allocations"]),
}
OTHER = {  # options with which fsdp-run trains nothing, or by which ranks meet: docs/reference/ranks.md
    "--help", "--version", "--dump", "--simulate", "--backend",
}


def run(both, first, second, export):
    """Runs both ranks. Returns a list of (exit code, output)."""
    subprocess.run("rm -rf new tb saves/* t.json p.json m.jsonl", shell=True, check=True)
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank, words in enumerate((first, second)):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port))
        processes.append(subprocess.Popen(["fsdp-run", str(artifact)] + words + export, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"))
    results = []
    for process in processes:
        try:
            results.append((None, ""))
            output = process.communicate(timeout=LIMIT)[0]
            results[-1] = (process.returncode, output)
        except subprocess.TimeoutExpired:
            process.kill()
            results[-1] = (-9, process.communicate()[0])
    return results


def weights(path):
    data = pathlib.Path(path).read_bytes()
    pathlib.Path(path).unlink()
    return data


problems = []
ids = bytes(8 * 11 * 40)
pathlib.Path("ids.bin").write_bytes(ids)
pathlib.Path("lr.json").write_text('{"lr": 0.5}')
os.makedirs("saves", exist_ok=True)
subprocess.run(["fsdp-run", artifact, "--text", text, "--steps=2", "--save=half"], check=True, stdout=subprocess.DEVNULL)
subprocess.run(["fsdp-run", artifact] + PLAIN + ["--export=plain.safetensors"], check=True, stdout=subprocess.DEVNULL)
expected = pathlib.Path("plain.safetensors").read_bytes()

known = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", subprocess.run(
    ["fsdp-run", "--help"], capture_output=True, text=True, check=True).stdout, re.M))
tables = REFUSED.keys() | EQUAL.keys() | OTHER
problems += [f"{name}: is not in a table of this script" for name in sorted(known - tables)]
problems += [f"{name}: is not an option of fsdp-run" for name in sorted(tables - known)]

for name, (both, more, instead, pattern) in REFUSED.items():
    other = instead if instead else both + more
    for order in ((both, other), (other, both)):
        results = run(both, *order, [])
        where = "rank 0" if order[0] is other else "rank 1"
        for rank, (code, output) in enumerate(results):
            if code != 2 or not re.search(pattern, output):
                problems.append(f"{name} on {where}: rank {rank}: exit code {code}: {output[-300:]}")
for name, (both, more) in EQUAL.items():
    for order in ((both, both + more), (both + more, both)):
        results = run(both, *order, ["--export=out.safetensors"])
        where = "rank 0" if order[0] != both else "rank 1"
        if any(code for code, _ in results):
            problems.append(f"{name} on {where}: exit codes {[c for c, _ in results]}: {results[0][1][-200:]} {results[1][1][-200:]}")
        elif weights("out.safetensors") != expected:
            problems.append(f"{name} on {where}: other weights")
print(*problems, sep="\n")
print(f"{len(REFUSED)} options refused, {len(EQUAL)} without effect on weights, {len(problems)} problems")
sys.exit(bool(problems))
