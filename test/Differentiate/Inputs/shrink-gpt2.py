#!/usr/bin/env python3
"""The text of a GPT-2 124M at sizes that finite differences can afford:
hidden 24 in 12 heads, vocabulary 97, 16 positions; same graph. stdin to stdout."""
import re
import sys

text = sys.stdin.read()
text = re.sub(r"^\s*ml_program.*\n", "", text, flags=re.M)
for old, new in ((50257, 97), (3072, 96), (2304, 72), (1536, 48), (768, 24), (1024, 16)):
    text = re.sub(rf"(?<![0-9a-wyzA-Z_%#.]){old}(?![0-9])", str(new), text)
text = re.sub(r"(?<=x)64(?=x)|(?<=, )64(?=\])", "2", text)  # head size
text = text.replace("7.680000e+02", "2.400000e+01")  # the N of the means
text = text.replace("%c50257", "%c97")
sys.stdout.write(text)
