"""Runs tools, and reads the saves of fsdp-run by the definition in docs/how-to/save-and-resume.md."""
import json, math, struct, subprocess

WIDTH = {"F32": 4, "BF16": 2, "F16": 2}


def call(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def slices_of(param, slices):
    """Returns, for each slice, the list of the elements of the parameter that it has, in order."""
    elements = math.prod(param["shape"])
    if "split" not in param:
        return [list(range(elements))] * slices
    dim, blocks = param["split"]["dim"], param["split"]["blocks"]
    assert sum(blocks) == param["shape"][dim]
    owners = [t for block in blocks for t in range(slices) for _ in range(block // slices)]
    inner = math.prod(param["shape"][dim + 1:])
    lists = [[] for _ in range(slices)]
    for element in range(elements):
        lists[owners[element // inner % param["shape"][dim]]].append(element)
    return lists


def states(save):
    """Returns {(parameter, role): (dtype, elements)} of a save. Padding must be zero."""
    index = json.load(open(f"{save}/index.json"))
    assert index["version"] == (2 if any("slices" in unit for unit in index["units"]) else 1)
    tensors, found = {}, {}
    for number, file in enumerate(index["files"]):
        data = open(f"{save}/{file['name']}", "rb").read()
        begin = 8 + struct.unpack_from("<Q", data)[0]
        for name, about in json.loads(data[8:begin]).items():
            if name != "__metadata__":
                first, last = about["data_offsets"]
                tensors[number, name] = data[begin + first:begin + last]
    used = set()
    for state in index["states"]:
        unit, width = index["units"][state["unit"]], WIDTH[state["dtype"]]
        slices = unit.get("slices", 1)
        flat = b"".join(tensors[file, state["tensor"]] for file in state["files"])
        used.update((file, state["tensor"]) for file in state["files"])
        size = len(flat) // slices
        assert size == unit["shards"] * unit["shard_size"] * width
        padding = bytearray(flat)
        for param in unit["params"]:
            elements = math.prod(param["shape"])
            if slices == 1:
                begin, end = param["offset"] * width, (param["offset"] + elements) * width
                found[param["name"], state["role"]] = state["dtype"], flat[begin:end]
                padding[begin:end] = bytes(end - begin)
                continue
            values = [None] * elements
            for slice, places in enumerate(slices_of(param, slices)):
                for i, element in enumerate(places):
                    at = slice * size + (param["offset"] + i) * width
                    values[element] = flat[at:at + width]
                    padding[at:at + width] = bytes(width)
            found[param["name"], state["role"]] = state["dtype"], b"".join(values)
        assert not any(padding), (save, state["tensor"])
    assert {key for key in tensors if key[1] != "step_block"} == used  # each piece is in one file
    return found
