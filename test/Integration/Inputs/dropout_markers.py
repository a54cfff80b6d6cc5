"""dropout_markers.py MODEL.mlir OUT.mlir: writes the dropout of a generated model as an exporter would.

Each `fsdp.random` and the product that reads it become a call of a marker. The arguments for seed, step and sample go.
"""
import re
import sys

text = open(sys.argv[1]).read()
found = re.compile(r"( *)%(\S+) = fsdp\.random +bernoulli keep (\S+) seed .*? : (tensor<\S+>)\n"
                   r".*tensor\.empty.*\n"
                   r" *%(\S+) = linalg\.generic .* ins\(%(\S+), %(\S+) : .*\n(?:.*\n){3} *\} -> .*\n")
declared = {}


def call(match):
    pad, factor, keep, type_, result, x, read = match.groups()
    assert factor == read, match.group()
    name = declared.setdefault((type_, 1 - float(keep)), f"fsdp.dropout.{len(declared)}")
    return f"{pad}%{result} = call @{name}(%{x}) : ({type_}) -> {type_}\n"


text = found.sub(call, text)
assert "fsdp.random" not in text
text = re.sub(r", %(seed|step|sample): tensor<i64> \{fsdp\.key = \"\w+\"\}", "", text)
functions = "".join(f"  func.func private @{name}({type_}) -> {type_} attributes {{fsdp.dropout = {p} : f64}}\n"
                    for (type_, p), name in declared.items())
text = text.replace("  func.func @loss(", functions + "  func.func @loss(", 1)
assert text.count("call @fsdp.dropout") >= 4
open(sys.argv[2], "w").write(text)
