"""Damages each file of compiled kernels: flips a random bit, removes the last byte, or empties the file, in turn.

usage: damage-kernels.py FOLDER
"""
import glob
import random
import sys

draw = random.Random(1)
for number, path in enumerate(sorted(glob.glob(sys.argv[1] + "/llvmcache-*"))):
    content = bytearray(open(path, "rb").read())
    if number % 3 == 0:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    elif number % 3 == 1:
        content.pop()
    else:
        content.clear()
    open(path, "wb").write(content)
