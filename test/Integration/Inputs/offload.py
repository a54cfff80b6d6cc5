"""Trains gpt.mlir with --offload to the host or to files, and compares with the unsharded model and the plan."""
import json
import pathlib
import re
import subprocess
import sys

STATE = "parameters+gradients+optimizer"
KINDS = ["optimizer", "gradients+optimizer", STATE, "activations", STATE + "+activations"]
STRATEGIES = [
    "--mesh=shard=1", "--mesh=shard=2 --clip-grad-norm=0.1", "--mesh=shard=3 --optimizer=sgd --momentum=0.9",
    "--mesh=replicate=2,shard=2 --param-dtype=bf16", "--mesh=replicate=2,shard=2 --sharding-strategy=hfsdp",
    "--mesh=shard=2 --sharding-strategy=zero1", "--mesh=shard=2 --sharding-strategy=zero2 --param-dtype=bf16 --param-storage=both",
    "--mesh=shard=2 --sharding-strategy=no_shard", "--mesh=shard=4 --reshard-after-forward=2",
    "--mesh=shard=2 --grad-accum=2 --clip-grad-norm=1", "--mesh=shard=2 --grad-accum=2 --grad-sync=last",
    "--mesh=shard=2 --loss-scale=dynamic --param-dtype=f16", "--mesh=shard=2 --overlap",
    "--mesh=shard=2 --overlap --activation-checkpointing=full"]
# Copies beside compute, with starts and waits at any place.
OVERLAPPED = [
    "--mesh=shard=1", "--mesh=shard=3 --optimizer=sgd --momentum=0.9", "--mesh=replicate=2,shard=2 --param-dtype=bf16",
    "--mesh=replicate=2,shard=2 --sharding-strategy=hfsdp",
    "--mesh=shard=2 --sharding-strategy=zero2 --param-dtype=bf16 --param-storage=both",
    "--mesh=shard=2 --sharding-strategy=no_shard", "--mesh=shard=4 --reshard-after-forward=2 --prefetch=copy=1",
    "--mesh=shard=2 --grad-accum=2 --clip-grad-norm=1", "--mesh=shard=2 --grad-accum=2 --grad-sync=last --prefetch=copy=0",
    "--mesh=shard=2 --loss-scale=dynamic --param-dtype=f16"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compile(strategy, kinds, out="m.fsdp", model="gpt.mlir"):
    small = ["--offload-min-bytes=4k"] if "activations" in kinds else []
    text = run("fsdp-compile", model, *strategy.split(), f"--offload={kinds}", *small, "--explain=json", "-o", out)
    return json.loads(text[text.index("{"):])["memory"]


def train(strategy, kinds):
    memory = compile(strategy, kinds)
    said = run("fsdp-run", "m.fsdp", "--overfit", "--steps=3", "--check-against=unsharded", "--assert-no-allocations")
    measured, planned = map(int, re.search(r"measured: .*\((\d+) bytes, planned (\d+)\)", said).groups())
    host = int(re.search(r"memory planned on the host: .*\((\d+) bytes\)", said)[1]) if memory["host"] else 0
    arena = -(-memory["peak"] // 4096) * 4096 if host else memory["peak"]
    file = re.search(r"offloaded state: a file of .*\((\d+) bytes, planned (\d+)\)", said)
    files = [int(number) for number in file.groups()] if file else [0, 0]
    if ("check against unsharded passed" not in said or measured != planned or host != memory["host"]
            or planned != arena + host or files != [memory["file"]] * 2 or (files[0] > 0) != ("optimizer:file" in kinds)):
        print(f"error: {strategy} {kinds}: {memory} {said}")
    return memory["peak"]


def main():
    if sys.argv[1:]: # with every strategy all kinds at once and one of the others in turn, or each
        strategies = STRATEGIES + [s + " --overlap" for s in OVERLAPPED]
        kinds = lambda i: KINDS if sys.argv[1:] == ["--all"] else [KINDS[i % (len(KINDS) - 1)], KINDS[-1]]
        runs = [train(strategy, kind) for i, strategy in enumerate(strategies) for kind in kinds(i)]
        print(f"{len(runs)} runs to the bits of the unsharded model")
        return

    mesh = "--mesh=shard=2 --clip-grad-norm=0.1"
    whole = train(mesh, "none")
    for kinds in (STATE, "activations", STATE + "+activations"):
        print(f"{kinds}: {100 * train(mesh, kinds) // whole} % of the arena")

    # Beside compute, copies are waited for later than they start.
    train(mesh + " --overlap", STATE + "+activations")
    said = run("fsdp-run", "m.fsdp", "--overfit", "--steps=2", "--trace=trace.json")
    ahead = re.search(r"copies to the host and back are in flight .* starts (\d+) % of their bytes ahead", said)
    lanes = {event["args"]["name"] for event in json.loads(pathlib.Path("trace.json").read_text())["traceEvents"]
             if event["name"] == "thread_name"}
    print("copies beside compute" if ahead and int(ahead[1]) >= 50 and "host copy" in lanes else f"error: {said} {lanes}")

    # Checkpointing under a limit takes offloaded values into account.
    full = compile(mesh + " --activation-checkpointing=full", "none")["peak"]
    auto = compile(f"{mesh} --activation-checkpointing=auto --memory-limit={full}", "activations")["peak"]
    print("auto keeps to the limit" if auto <= full else f"error: {auto} above {full}")

    # A save has the same bits as without offload.
    compile(mesh, STATE, "host.fsdp"), compile(mesh, "none", "device.fsdp")
    common = ["--overfit", "--seed=3"]
    run("fsdp-run", "device.fsdp", *common, "--steps=4", "--export=whole.safetensors")
    run("fsdp-run", "host.fsdp", *common, "--steps=2", "--save=saved")
    run("fsdp-run", "host.fsdp", *common, "--steps=4", "--resume=saved", "--export=resumed.safetensors")
    same = pathlib.Path("whole.safetensors").read_bytes() == pathlib.Path("resumed.safetensors").read_bytes()
    print("saved and resumed: the weights of a run without" if same else "error: other weights")


if __name__ == "__main__":
    main()
