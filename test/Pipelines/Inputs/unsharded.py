"""Compares the figures of `unsharded` in --explain=json, for two ranks, with the sizes of the buffers of a plan for one rank."""
import json
import subprocess
import sys

kinds = ("parameters", "gradients", "optimizer", "owned")


def explain(mesh, options):
    """Returns the JSON of --explain."""
    command = ["fsdp-compile", sys.argv[1], f"--mesh={mesh}", "--explain=json", *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


for options in sys.argv[2:]:
    one, two = (explain(mesh, options.split()) for mesh in ("shard=1", "shard=2"))
    # On one rank, all gradients are alive in the step of the optimizer, and no buffer has padding.
    for kind in kinds:
        real = one["memory"][kind]
        if not one["unsharded"][kind] == two["unsharded"][kind] == real:
            print(f"{options}: {kind}: expected {real}, found {one['unsharded'][kind]} and {two['unsharded'][kind]}")
    print(f"{options}: {[one['memory'][kind] // one['parameters']['trained_elements'] for kind in kinds]} bytes per parameter")
