"""attention_memory.py bare|whole PLAN.mlir S V: the plan has no tensor of S x S and none of S rows (or more) of V
elements, and no activation is as large; with `whole`, it has both. attention_memory.py linear S=JSON...: activations
grow with S as a straight line does."""
import json
import re
import sys


def linear(points):
    sizes = sorted((int(s), json.load(open(path))["memory"]["activations"]) for s, path in (p.split("=") for p in points))
    slopes = [(b - a) / (t - s) for (s, a), (t, b) in zip(sizes, sizes[1:])]
    print("activations per token:", ", ".join(f"{slope:.0f}" for slope in slopes))
    # What grows with the square makes slopes grow; they may shrink a little, where the moment of the peak changes.
    grows = any(later > 1.03 * earlier for earlier, later in zip(slopes, slopes[1:]))
    assert len(slopes) > 1 and not grows and max(slopes) <= 1.1 * min(slopes), sizes


def read(path, length, vocabulary):
    """The first tensor types of S x S and of S x V, and the largest activation."""
    text = open(path).read()
    squares, logits = set(), set()
    for shape in set(re.findall(r"tensor<((?:\d+x)+)[a-z]", text)):
        dims = [int(d) for d in shape[:-1].split("x")]
        if dims.count(length) > 1:
            squares.add(shape)
        others = 1
        for d in dims:
            others *= d
        if vocabulary in dims and others // vocabulary >= length:
            logits.add(shape)
    buffers = re.findall(r'fsdp\.buffer @(\S+) "([^"]*)" +(\w+) (\d+) at', text)
    assert len(buffers) > 50, "the plan has buffers"
    activations = [(int(n), name, label) for name, label, kind, n in buffers if kind == "activations"]
    return squares, logits, max(activations)


if sys.argv[1] == "linear":
    linear(sys.argv[2:])
    sys.exit(0)
length, vocabulary = int(sys.argv[3]), int(sys.argv[4])
squares, logits, (largest, name, label) = read(sys.argv[2], length, vocabulary)
print(f"S x S: {sorted(squares)}, tokens x vocabulary: {sorted(logits)}; the largest activation has {largest} bytes: @{name} {label}")
if sys.argv[1] == "bare":
    assert not squares and not logits and largest < min(length * length, length * vocabulary) * 4, "none expected"
else:
    assert squares and logits and largest >= 4 * length * length, "both expected"
print(sys.argv[1])
