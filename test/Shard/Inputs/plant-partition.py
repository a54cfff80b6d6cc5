"""Plants a fault in a program of the axis tensor: plant-partition.py FAULT < in.mlir > out.mlir

missing-sum    the first all_reduce of a partial sum is left out
missing-entry  the first reduce_cotangent is left out
twice          the first sum is added over the ranks a second time
whole-entry    an op that is not split reads the first reduce_cotangent instead of the first sum
wrong-split    a parameter is split along another dimension than its readers expect
wrong-heads    the columns of queries, keys and values are split as one block, so that a rank has queries of other heads
"""

import re
import sys

fault, text = sys.argv[1], sys.stdin.read()


def first(op):
    match = re.search(r"( *)(%\w+) = fsdp\." + op + r" (%\w+) (.*)\n", text)
    assert match, op
    return match


if fault in ("missing-sum", "missing-entry"):
    found = first("all_reduce" if fault == "missing-sum" else "reduce_cotangent")
    text = text.replace(found[0], "")
    text = re.sub(found[2] + r"\b", found[3], text)
elif fault == "twice":
    found = first("all_reduce")
    again = f"{found[1]}%again = fsdp.all_reduce {found[2]} {found[4]}\n"
    begin, end = text.split(found[0])
    text = begin + found[0] + again + re.sub(found[2] + r"\b", "%again", end)
elif fault == "whole-entry":
    entered, total = first("reduce_cotangent"), first("all_reduce")
    begin, end = text.split(total[0])
    text = begin + total[0] + re.sub(total[2] + r"\b", entered[2], end, count=1)
elif fault == "wrong-heads":
    name = r"(h\.0\.attn\.c_attn\.weight = array<i64: 1), 32, 32, 32>"
    assert re.search(name, text)
    text = re.sub(name, r"\g<1>, 96>", text)
else:
    assert fault == "wrong-split"
    name = r"h\.0\.mlp\.c_fc\.weight = array<i64: "
    assert re.search(name + "1, 128>", text)
    text = re.sub("(" + name + ")1, 128>", r"\g<1>0, 64>", text)
sys.stdout.write(text)
