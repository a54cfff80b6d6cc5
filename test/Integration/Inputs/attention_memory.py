"""attention_memory.py bare|whole PLAN.mlir S V: checks that the plan has no tensor of S x S, none of S or more rows of V
elements, and no activation as large; with `whole`, that it has both tensors. attention_memory.py linear S=JSON...: checks
that activations at the peak grow linearly with S. It compares lengths whose peaks are at the same moment of the step, and
expects at least three lengths per moment."""
import itertools
import json
import re
import sys


def linear(points):
    peaks = sorted((int(s), json.load(open(path))["moment_of_peak"]) for s, path in (p.split("=") for p in points))
    for moment, group in itertools.groupby(peaks, lambda point: point[1]["label"]):
        sizes = [(s, peak["activations"]) for s, peak in group]
        slopes = [(b - a) / (t - s) for (s, a), (t, b) in zip(sizes, sizes[1:])]
        print(f"activations per token at '{moment}', {sizes[0][0]} to {sizes[-1][0]}:", ", ".join(f"{slope:.0f}" for slope in slopes))
        assert len(slopes) > 1 and max(slopes) <= 1.03 * min(slopes), sizes


def read(path, length, vocabulary):
    """Returns the tensor types of S x S and of S x V, and the largest activation."""
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
