"""Plants a fault in a program of the axis tensor or context: plant-partition.py FAULT < in.mlir > out.mlir

missing-sum    the first all_reduce of a partial sum is left out
missing-entry  the first reduce_cotangent is left out
twice          the first sum is added over the ranks a second time
whole-entry    an op that is not split reads the first reduce_cotangent instead of the first sum
wrong-split    a parameter is split along another dimension than its readers expect
wrong-heads    the columns of queries, keys and values are split as one block, so that a rank has queries of other heads
missing-head   functions of attention count heads from the first head of the rank
wrong-head     they add too many heads per rank

Of a vocabulary that is split:

missing-mask     ranks add the rows of all ids
wrong-rows       ids are mapped to half of the rows that a rank has
wrong-owner      a rank keeps the rows of the ids of another rank
missing-classes  the cross-entropy takes a slice of the logits for whole rows
wrong-coordinate the cross-entropy takes a constant for the coordinate of the rank
whole-logits     ranks add the sums of equal rows of logits

Of heads of keys and values, of which there are fewer than ranks:

wrong-part       neighbours read different heads of keys
other-heads      a rank adds the heads of keys of other ranks
first-head       all ranks read the first head of keys
missing-heads    ranks do not add the gradients of a weight of keys
missing-keys     ranks do not add the cotangents of a single head of keys
missing-repeated ranks do not add the cotangents of the part of the keys that all heads have

Of rows of norms and residuals (--sequence-parallel):

missing-norm-sum   ranks do not add the gradients of a weight of a norm
missing-scatter    a rank has its rows of its own term of a sum
other-rows         a rank has the rows of positions of another rank
whole-rows         an op that stays whole reads gathered rows, of which all ranks have the cotangent

Of the axis context:

missing-gather  attention reads the keys of its own rank several times instead of those of all ranks
missing-offset  the mask counts rows from the first row of the rank
wrong-offset    the mask adds too many rows per rank
neighbouring-rows  a rank has neighbouring rows of the position embeddings, but counts rows as stripes
neighbouring-keys  keys are gathered as neighbouring rows, but rows are stripes
first-rows      all ranks have the position embeddings of the first rank
missing-weight  the loss of a rank is not divided by the number of ranks
missing-ring    attention to keys that travel reads those of the own rank only
wrong-ring      the keys that travel have neighbouring rows, but rows are stripes
missing-share   a classifier of sums over the ranks reads its parameter directly
"""

import re
import sys

fault, text = sys.argv[1], sys.stdin.read()


def first(op):
    match = re.search(r"( *)(%\w+) = fsdp\." + op + r" (%[\w#]+) (.*)\n", text)
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
elif fault == "missing-mask":
    rows, masked = re.search(r"(%\w+) = fsdp.(?:gather|unshard)_rows", text)[1], first("all_reduce")
    text = text.replace(masked[0], masked[0].replace(masked[3] + " ", rows + " "))
elif fault == "wrong-rows":
    size = re.search(r"arith.remsi %\w+, (%\w+) : i64", text)[1]
    text = text.replace(f"{size} = arith.constant 32 : i64", f"{size} = arith.constant 16 : i64", 1)
elif fault == "wrong-owner":
    text = re.sub(r"(arith.cmpi )eq(, %\w+, %\w+ : i64)", r"\1ne\2", text, count=1)
elif fault == "missing-classes":
    text = re.sub(r' classes %\w+ over @mesh \["tensor"\](.*), tensor<i64> ->', r"\1 ->", text)
elif fault == "wrong-coordinate":
    zero = "    %zero = arith.constant dense<0> : tensor<i64>\n"
    text = re.sub(r"( *%\w+, %\w+ = fsdp.cross_entropy .* classes )%\w+", zero + r"\1%zero", text)
elif fault == "whole-logits":
    logits, kind = re.search(r"fsdp.cross_entropy (%\w+), .* : (tensor<\w+>), tensor<\w+>, tensor<i64>", text).groups()
    empty = f"    %whole = tensor.empty() : {kind}\n"
    text = re.sub(r"( *%\w+, %\w+ = fsdp.cross_entropy )" + logits, lambda m: empty + m[1] + "%whole", text)
elif fault in ("wrong-part", "other-heads"):
    constants = r"(?: *%\w+ = arith.constant .*\n)*"
    found = re.search(r"%\w+ = arith.divsi %\w+, (%\w+) : i64\n *%\w+ = arith.cmpi eq, .*\n" + constants + r" *%\w+ = arith.select .*\n *%\w+ = arith.addf", text)
    if fault == "wrong-part":
        text = text.replace(found[0], "%wrong = arith.constant 1 : i64\n" + found[0].replace(found[1], "%wrong"))
    else:
        text = text.replace(found[0], found[0].replace("cmpi eq", "cmpi ne"))
elif fault == "first-head":
    found = re.search(r"( *)(%\w+) = linalg.generic .*\"reduction\", \"parallel\", \"parallel\"\]} ins\((%\w+), %\w+ : tensor<2x8x32xf32>.*\n(.*\n)+? *} -> (\S+)\n", text)
    head = f"{found[1]}%head = tensor.extract_slice {found[3]}[0, 0, 0] [1, 8, 32] [1, 1, 1] : tensor<2x8x32xf32> to tensor<8x32xf32>\n"
    begin, end = text.split(found[0])
    text = begin + found[0] + head + re.sub(found[2] + r"\b", "%head", end)
elif fault in ("missing-heads", "missing-keys", "missing-repeated", "missing-norm-sum"):
    kind, source = {"missing-heads": ("16x32", r"%\w+#\d+"), "missing-keys": ("2x1x8x8", r"%\w+"), "missing-repeated": ("2x8x2x2", r"%\w+"),
                    "missing-norm-sum": ("32", r"%[\w#]+")}[fault]
    found = re.search(r"( *)(%\w+) = fsdp\.reduce_cotangent (" + source + ") .* : tensor<" + kind + r"xf32>\n", text)
    text = re.sub(found[2] + r"\b", found[3], text.replace(found[0], ""))
elif fault == "missing-scatter":
    found = first("flat_reduce_scatter")
    large, small = re.search(r": (tensor<(?:\d+)xf32>) -> tensor<(\d+)xf32>", found[4]).groups()
    text = text.replace(found[0], f"{found[1]}{found[2]} = tensor.extract_slice {found[3]}[0] [{small}] [1] : {large} to tensor<{small}xf32>\n")
elif fault == "other-rows":
    assert re.search(r"arith.cmpi eq, %\w+, %\w+ : i64\n.*arith.select", text)
    text = re.sub(r"(arith.cmpi )eq(, %\w+, %\w+ : i64\n(?: *%\w+ = arith.constant .*\n)?.*arith.select)", r"\1ne\2", text, count=1)
elif fault == "whole-rows":
    found = first("share_cotangent")
    text = re.sub(found[2] + r"\b", found[3], text.replace(found[0], ""))
elif fault == "missing-gather":
    found = first("all_gather")
    small, large = re.search(r": (\S+) -> (\S+)", found[4]).groups()
    text = text.replace(found[0], f"{found[1]}{found[2]} = tensor.concat dim(0) {found[3]}, {found[3]} : ({small}, {small}) -> {large}\n")
elif fault == "missing-head":
    head = re.search(r"(%\w+) = arith.addi %h, .* : index\n", text)
    begin, end = text.split(head[0], 1)
    text = begin + head[0] + re.sub(head[1] + r"\b", "%h", end, count=1)
elif fault == "missing-offset":
    row = re.search(r"(%\w+) = arith.addi .* : index\n *%\w+ = arith.cmpi", text)
    text = re.sub(f"(arith.cmpi .*){row[1]}\\b", r"\g<1>%i", text)
elif fault in ("wrong-offset", "wrong-head"):
    found = re.search(r"( *)(%\w+) = arith.muli (%\w+), (%\w+) : index\n", text)
    size = int(re.search(rf"{found[4]} = arith.constant (\d+) : index", text)[1])
    text = text.replace(found[0], f"{found[1]}%wrong = arith.constant {2 * size} : index\n"
                                  f"{found[1]}{found[2]} = arith.muli {found[3]}, %wrong : index\n")
elif fault == "neighbouring-rows":
    found = first("own_piece")
    copy = re.search(rf"{found[3]} = tensor.collapse_shape (%\w+)", text)[1]
    rows = re.search(rf"{copy} = linalg.generic .* ins\((%\w+) : (\S+)\)", text)
    source = re.search(rf"{rows[1]} = tensor.expand_shape (%[\w#]+) .*: (\S+) into", text)
    dims = ", ".join(map(str, range(source[2].count("x"))))
    text = re.sub(rf"{found[3]} = tensor.collapse_shape .* into", f"{found[3]} = tensor.collapse_shape {source[1]} [[{dims}]] : {source[2]} into", text)
elif fault == "neighbouring-keys":
    found = first("all_gather")
    keys = re.search(rf"(%\w+) = tensor.expand_shape {found[2]} (.*) into tensor<2x128x(\S+)>\n", text)
    copy = re.search(rf"(%\w+) = linalg.generic .* ins\({keys[1]} : .*\n(.*\n)+? *}} -> (\S+)\n", text)
    whole = re.search(rf"(%\w+) = tensor.collapse_shape {copy[1]} .* into (\S+)\n", text)
    plain = re.search(r"tensor<\d+xf32>$", found[4])[0]
    text = re.sub(whole[1] + r"\b", "%plain", text.replace(whole[0], f"%plain = tensor.expand_shape {found[2]} [[0, 1, 2, 3]] output_shape "
                  f"[{whole[2][7:-5].replace('x', ', ')}] : {plain} into {whole[2]}\n"))
elif fault in ("missing-ring", "wrong-ring"):
    assert " ring 2 striped" in text
    text = text.replace(" ring 2 striped", "" if fault == "missing-ring" else " ring 2")
elif fault == "first-rows":
    found = first("own_piece")
    large, small = re.search(r": (tensor<(?:\d+)xf32>) -> tensor<(\d+)xf32>", found[4]).groups()
    text = text.replace(found[0], f"{found[1]}{found[2]} = tensor.extract_slice {found[3]}[0] [{small}] [1] : {large} to tensor<{small}xf32>\n")
elif fault == "missing-weight":
    found = first("all_reduce")
    loss = re.search(r"(%\w+), %\w+ = fsdp.cross_entropy", text)[1]
    text = text.replace(found[0], found[0].replace(found[3] + " ", loss + " "))
elif fault == "missing-share":
    found = first("share_cotangent")
    text = re.sub(found[2] + r"\b", found[3], text.replace(found[0], ""))
else:
    assert fault == "wrong-split"
    name = r"h\.0\.mlp\.c_fc\.weight = array<i64: "
    assert re.search(name + "1, 128>", text)
    text = re.sub("(" + name + ")1, 128>", r"\g<1>0, 64>", text)
sys.stdout.write(text)
