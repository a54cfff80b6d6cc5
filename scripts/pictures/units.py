"""Draws units.svg. The picture shows the flat buffer of each unit of a small GPT, and the slice of each buffer that each of four ranks stores.

The offsets of parameters are read from the output of `fsdp-compile --compile-to=shard`, and the bytes of a rank from `--explain=json`.
"""
import json
import re

from pictures.svg import Drawing, INK, LINE, RANKS, size
from pictures.tools import expect

RANK_COUNT = 4
UNIT = re.compile(r"^ *fsdp\.unit @(\S+) shards (\d+) x (\d+) : (\w+) (.*)$", re.M)
PARAM = re.compile(r'#fsdp\.param<"([^"]+)", tensor<([0-9x]+)x\w+>, (\d+)')


def read_units(text):
    """Returns [(unit, number of shards, shard size, [(parameter, offset, elements)])]."""
    units = []
    for name, shards, shard, dtype, rest in UNIT.findall(text):
        params = []
        for label, shape, offset in PARAM.findall(rest):
            count = 1
            for extent in shape.split("x"):
                count *= int(extent)
            params.append((label, int(offset), count))
        units.append((name.strip('"'), int(shards), int(shard), params))
    return expect(units, "fsdp.unit")


def short(name):
    return re.sub(r"^(transformer\.)?(h\.\d+\.)?", "", name)


def draw(tools):
    model = tools.model("gpt.mlir", "gpt2", "--layers=2", "--hidden=32", "--heads=2", "--vocab=64", "--seq=32",
                        "--batch=1")
    mesh = f"--mesh=shard={RANK_COUNT}"
    units = read_units(tools.run("fsdp-compile", model, mesh, "--compile-to=shard", "-o", "-"))
    plan = json.loads(tools.run("fsdp-compile", model, mesh, tools.CPU, "--explain=json"))
    reports = {unit["name"]: unit for unit in plan["units"]}
    out = Drawing(1000, "Units of a GPT of two layers, sharded over four ranks")
    left, right = 84, 990
    scale = (right - left) / max(shards * shard for _, shards, shard, _ in units)
    y = 14
    out.text(10, y + 2, f"A GPT of 2 layers, hidden size 32, sharded over {RANK_COUNT} ranks", 14, bold=True)
    y = out.legend(10, y + 16, [("#c9d1d9", "parameter"), ("url(#padding)", "padding"),
                                *((RANKS[rank], f"slice of rank {rank}") for rank in range(RANK_COUNT))], right) + 10
    for name, shards, shard, params in units:
        report = reports[name]
        width = shards * shard * scale
        out.text(10, y + 18, name, 13, bold=True)
        out.rect(left, y, width, 26, "url(#padding)", LINE, f"{report['padding_bytes']} bytes of padding")
        for label, offset, count in params:
            fill = "#c9d1d9"
            out.rect(left + offset * scale, y, count * scale, 26, fill, LINE,
                     f"{label}: {count} elements from element {offset}")
            parts = short(label).split(".")
            out.label(left + offset * scale, y, count * scale, 26, [".".join(parts), ".".join(parts[-2:]), parts[-2]],
                      fill, 11)
        for rank in range(shards):
            x = left + rank * shard * scale
            out.box(x, y + 31, shard * scale, 22, [f"rank {rank}: {shard} elements", f"rank {rank}"], RANKS[rank],
                    tip=f"elements {rank * shard} to {(rank + 1) * shard - 1} of {name} on rank {rank}")
            if rank:
                out.line([(x, y - 5), (x, y)], INK, 1.5)
                out.line([(x, y + 26), (x, y + 31)], INK, 1.5)
        out.text(left, y + 68, f"{report['elements']} elements in {len(params)} parameters, "
                 f"{report['padding_bytes']} bytes of padding; each rank owns {size(report['shard_bytes'])}, "
                 f"a gather makes {size(report['gathered_bytes'])}; {report['reshard']}", 11)
        y += 88
    owned, whole = plan["memory"], plan["unsharded"]
    out.text(10, y + 8, f"In sum a rank owns {size(owned['parameters'])} of parameters ({size(whole['parameters'])} "
             f"unsharded) and {size(owned['optimizer'])} of optimizer state ({size(whole['optimizer'])}).")
    return out
