"""Checks the plan of Llama 7B, fully sharded over 8 ranks in f32, against closed forms."""
import json
import sys

plan = json.load(open(sys.argv[1]))
P, RANKS = 6738415616, 8
unsharded, memory, units, peak = plan["unsharded"], plan["memory"], plan["units"], plan["moment_of_peak"]


def expect(name, found, expected):
    if found != expected:
        sys.exit(f"{name}: expected {expected}, found {found}")


expect("parameters", unsharded["parameters"], 4 * P)
expect("optimizer", unsharded["optimizer"], 8 * P)
expect("owned unsharded", unsharded["owned"], 16 * P)
expect("units", len(units), 33)
expect("elements", sum(unit["elements"] for unit in units), P)
expect("padding", sum(unit["padding_bytes"] for unit in units), memory["padding"])
for unit in units:
    expect(f"shard of {unit['name']}", RANKS * unit["shard_bytes"], 4 * unit["elements"] + unit["padding_bytes"])
    expect(f"gathered {unit['name']}", unit["gathered_bytes"], RANKS * unit["shard_bytes"])
expect("shards", sum(unit["shard_bytes"] for unit in units), memory["parameters"])
# A rank has an eighth of each, plus padding.
for what, bytes_each in (("parameters", 4), ("optimizer", 8)):
    beyond = memory[what] * RANKS - bytes_each * P
    if not 0 <= beyond <= bytes_each // 4 * memory["padding"]:
        sys.exit(f"{what}: {beyond} bytes beyond an eighth each, of padding {memory['padding']}")
parts = ["owned", "activations", "gathered", "staging", "workspace", "inputs", "control"]
expect("sum at the peak", sum(peak[part] for part in parts), peak["bytes"])
layers = sorted((unit["gathered_bytes"] for unit in units if unit["name"] != "root"), reverse=True)
root = next(unit["gathered_bytes"] for unit in units if unit["name"] == "root")
if not root + layers[0] <= memory["gathered"] <= root + 2 * layers[0]:
    sys.exit(f"gathered: {memory['gathered']}, with a root of {root} and layers of {layers[0]}")
print("as expected")
