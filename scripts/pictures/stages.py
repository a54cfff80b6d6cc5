"""Draws stages.svg. The picture shows the weight h.0.weight of examples/mlp.mlir after each of the eight stages.

The lines in the picture are output of `fsdp-compile --dump-phases-to`, `fsdp-opt` and `fsdp-run --dump`. Text that is omitted, and the hash in the
name of a kernel, are replaced by "...".
"""
import re

from pictures.svg import DARK, Drawing, LINE, PANEL
from pictures.tools import expect, root

LENGTH = 142  # maximum number of characters in a line


def find(text, pattern):
    return expect(re.search(pattern, text, re.M), pattern)[0].strip()


def shorten(line):
    line = re.sub(r"k_[0-9a-f]{16}", "k_...", line)
    line = re.sub(r" indexing_maps = \[[^]]*\]", "", line)
    line = re.sub(r", trainable = .*", ", ...", line)
    line = re.sub(r" +", " ", line)
    return line if len(line) <= LENGTH else line[:LENGTH - 4] + " ..."


def function(text, name):
    """Returns the text of the function or program `name`, up to the next function or program."""
    start = expect(re.search(rf"(func\.func|fsdp\.program)( private)? @{name}\b", text), name).start()
    end = re.search(r"\n  (func\.func|fsdp\.program)", text[start + 1:])
    return text[start:start + 1 + end.start()] if end else text[start:]


def lines_of_stages(tools):
    """Returns [(stage, sentence about it, [line of IR])]."""
    tools.run("fsdp-compile", root / "examples/mlp.mlir", "--mesh=shard=2", tools.CPU, "--dump-phases-to=phases", "-o",
              "mlp.fsdp")
    ir = {path.name.split(".")[1]: path.read_text() for path in sorted((tools.folder / "phases").iterdir())}
    step = {stage: function(ir[stage], "loss" if stage in ("import", "shard") else "step")
            for stage in ("import", "shard", "differentiate", "update", "fuse", "plan")}
    state = r'%arg\d+: tensor<576xf32> \{fsdp\.state = "parameter", fsdp\.unit = @h\.0\}'
    slot = find(step["update"], state).split(":")[0].removeprefix("%arg")
    whole = find(step["fuse"], r"^ *%\d+:2 = fsdp\.unshard %arg\d+ @h\.0 site 0").split(":")[0]
    kernel = find(step["plan"], r'^ *fsdp\.launch @(k_\w+) .*"contract h\.0\.weight, h\.0\.bias"').split()[1]
    kernels = tools.run("fsdp-opt", "phases/06.plan.mlir", "--fsdp-keep-kernels", "--fsdp-lower-kernels")
    dump = expect(re.search(r"^program 'step'.*?\n\n", tools.run("fsdp-run", "mlp.fsdp", "--dump"), re.M | re.S),
                  "program 'step'")[0]
    return [
        ("Import", "The weight is an argument of the loss, with its name and initial values.",
         [find(step["import"], r'%arg\d+: tensor<32x32xf32> \{[^}]*"h\.0\.weight"\}'),
          find(step["import"], r"^ *%\d+ = linalg\.contract .*ins\(%\d+, %arg1 .*$")]),
        ("Shard", "A rank owns a slice of the unit h.0. An unshard makes the whole weight.",
         [find(ir["shard"], r"^ *fsdp\.unit @h\.0 .*$"), find(step["shard"], r"^ *%\d+:2 = fsdp\.unshard .*@h\.0.*$")]),
        ("Differentiate", "The backward gathers the weight again. Its gradient becomes a slice.",
         [find(step["differentiate"], r"^ *%\d+:2 = fsdp\.unshard .*@h\.0 +site 1.*$"),
          find(step["differentiate"], r"^ *%\d+ = fsdp\.reduce_scatter @h\.0.*$")]),
        ("Update", "The slice is state of the step, with two moments. The step updates it in place.",
         [find(step["update"], state), "-> " + find(step["update"], rf"tensor<576xf32> \{{fsdp\.updates = {slot} : i64\}}")]),
        ("Fuse", "A kernel reads the gathered weight. Another updates the slice and its moments.",
         [find(step["fuse"], rf'^ *%\d+ = fsdp\.dispatch\([^)]*{whole}#0.*?\}}'),
          find(step["fuse"], rf"^ *%\d+:3 = fsdp\.dispatch\([^)]*%arg{slot}\b.*?\}}")]),
        ("Plan", "Commands work on ranges of buffers, [offset, bytes].",
         [find(step["plan"], r"^ *fsdp\.collective \d+ +all_gather .*unit @h\.0.*$"),
          find(step["plan"], r'^ *fsdp\.launch @k_\w+ .*"contract h\.0\.weight, h\.0\.bias"')]),
        ("Codegen", "The kernel is a function on memory. Two indices are the range to compute.",
         [re.sub(r"%\w+: ", "", find(kernels, rf"func\.func (private )?{re.escape(kernel)}\(.*?\)"))]),
        ("Package", "The file has the same commands on ranges of the arena, [offset, +bytes).",
         [find(dump, r"^ *\d+  all_gather .*; h\.0$"), find(dump, r"^ *\d+  launch .*; contract h\.0\.weight, h\.0\.bias$")]),
    ]


def draw(tools):
    out = Drawing(1000, "One weight after each of the eight stages")
    out.text(10, 16, "h.0.weight of examples/mlp.mlir after each stage, for two ranks", 14, bold=True)
    y = 28
    stages = lines_of_stages(tools)
    for number, (name, sentence, lines) in enumerate(stages, 1):
        height = 27 + 17 * len(lines)
        out.rect(10, y, 980, height, PANEL, LINE, radius=4)
        out.text(20, y + 16, f"{number}  {name}", 13, DARK, bold=True)
        out.text(160, y + 16, sentence, 12, DARK)
        for i, line in enumerate(lines):
            out.text(20, y + 34 + 17 * i, shorten(line), 11, "#0a4a8f", mono=True)
        y += height
        if number < len(stages):
            out.line([(500, y), (500, y + 13)], arrow=True)
            y += 14
    return out
