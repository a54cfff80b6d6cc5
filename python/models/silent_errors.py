# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes models in ways that an exporter could ignore without a message, and checks what it does.

    python python/models/silent_errors.py [--only=GPT2,Bert] [--plants=detach,padding]

Each function in the table PLANTS changes a module or its batch. The script then exports the changed module. The export must be refused or issue a
warning, or the training must result in the same losses and weights as PyTorch's own training. Prints a table. The exit code is 1 if a change fulfils
none of these three conditions.
"""

from __future__ import annotations

import argparse
import copy
import pathlib
import sys
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
MODELS = ("GPT2", "Llama", "OPT", "Gemma2", "Mixtral", "Bert", "T5", "Bart", "LSTM", "nn.Transformer")
STEPS, RANKS, RATE = 3, 2, 1e-2
NEAR = 2e-5  # Allowed relative difference of losses.
# The difference of a weight may be as large as a sum of three terms. The first term is NEAR_WEIGHTS times the largest change of the tensor in
# training. The second term is ROUNDING times the largest element of the tensor. The third term is
# NOISE times the largest change of all tensors.
NEAR_WEIGHTS, ROUNDING = 2e-3, 4e-7
# If a tensor, such as a bias of keys, changes by less than this fraction of the largest change of all tensors, its change consists only of rounding
# errors.
NOISE = 1e-5
PLANTS: dict = {}


class Unsuitable(Exception):
    """The error that is raised if the module has no layer of the class that a plant changes."""


def plant(function):
    PLANTS[function.__name__] = function
    return function


def largest(module, kind):
    """Lists all submodules of a class in the order of modules(), and returns the submodule in the middle of this list. Raises Unsuitable if there
    is no such submodule.

    Submodules of subclasses are ignored, because nn.MultiheadAttention reads the weight of such a submodule without calling it.
    """
    found = [m for m in module.modules() if type(m) is kind]
    if not found:
        raise Unsuitable(kind.__name__)
    return found[len(found) // 2]


def hook(module, change):
    module.register_forward_hook(lambda _, arguments, output: change(output))


@plant
def detach(module, batch):
    """Replaces the output y of a layer in the middle of the model by the mean of y and y.detach()."""
    from torch import nn

    hook(largest(module, nn.Linear), lambda y: 0.5 * y + 0.5 * y.detach())


@plant
def padding(module, batch):
    """Sets padding_idx of the embedding to an id that occurs in the batch."""
    from torch import nn

    table = next((m for m in module.modules() if isinstance(m, nn.Embedding)), None)
    if table is None:
        raise Unsuitable("Embedding")
    table.padding_idx = int(np.asarray(batch[0]).flat[0]) % table.num_embeddings


@plant
def tied(module, batch):
    """Ties the weights of two layers of the same shape."""
    from torch import nn

    shapes: dict = {}
    for layer in (m for m in module.modules() if isinstance(m, nn.Linear)):
        if tuple(layer.weight.shape) in shapes:
            layer.weight = shapes[tuple(layer.weight.shape)].weight
            return
        shapes[tuple(layer.weight.shape)] = layer
    raise Unsuitable("two Linear of one shape")


@plant
def frozen(module, batch):
    """Sets requires_grad=False for a weight in the middle of the model."""
    from torch import nn

    largest(module, nn.Linear).weight.requires_grad_(False)


@plant
def buffer(module, batch):
    """Adds a buffer that scales a layer's output and must not be trained."""
    import torch
    from torch import nn

    layer = largest(module, nn.Linear)
    layer.register_buffer("planted", torch.linspace(0.5, 1.5, layer.out_features))
    hook(layer, lambda y: y * layer.planted)


@plant
def unused(module, batch):
    """Adds a parameter that the loss does not use."""
    import torch
    from torch import nn

    module.register_parameter("planted", nn.Parameter(torch.ones(3)))


@plant
def no_grad(module, batch):
    """Computes a layer under torch.no_grad."""
    import torch
    from torch import nn

    def change(y):
        with torch.no_grad():
            scale = 1 + torch.tanh(y.mean(-1, keepdim=True))
        return y * scale

    hook(largest(module, nn.Linear), change)


@plant
def ignored(module, batch):
    """Sets some targets to -100, which cross-entropy ignores."""
    targets = np.asarray(batch[-1])
    if targets.ndim < 2:
        raise Unsuitable("targets of tokens")
    targets[..., ::3] = -100


@plant
def one_tensor(module, batch):
    """Passes the same tensor as two inputs of the example. In training, the two inputs differ."""
    return "one tensor"


@plant
def rule(module, batch):
    """Adds a torch.autograd.Function whose backward is not the derivative of its forward."""
    import torch
    from torch import nn

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    hook(largest(module, nn.Linear), Doubled.apply)


@plant
def dropout(module, batch):
    """Adds dropout. The losses cannot be compared with those of PyTorch, which draws other numbers. Instead, dropout must be off in evaluation,
    and must draw new numbers in each step."""
    import torch.nn.functional as F
    from torch import nn

    hook(largest(module, nn.Linear), lambda y: F.dropout(y, 0.5, module.training))
    return "random"


@plant
def out_of_range(module, batch):
    """Changes the batch so that it contains an id outside the table of the embedding."""
    ids = np.asarray(batch[0])
    if ids.dtype.kind not in "iu":
        raise Unsuitable("ids")
    ids.flat[-1] = 1 << 20
    return "bad batch"


def reference(module, loss, batches):
    """Trains with the optimizer SGD of PyTorch. Returns losses, weights and each tensor's largest change."""
    import torch

    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    losses = []
    for batch in batches:
        halves = [[torch.from_numpy(np.split(a, RANKS)[rank].copy()) for a in batch]
                  for rank in range(RANKS)]
        for p in module.parameters():
            p.grad = None
        value = sum(loss(module, *half) for half in halves) / RANKS
        value.backward()
        with torch.no_grad():
            for p in module.parameters():
                if p.requires_grad and p.grad is not None:
                    p -= RATE * p.grad
        losses.append(float(value.detach()))
    after = {n: p.detach().numpy() for n, p in module.named_parameters()}
    moved = {n: float(np.abs(after[n] - before[n].numpy()).max()) for n in after}
    return losses, after, moved


def outcome(name: str, planted: str) -> str:
    """Tests a plant. Returns "refused: ..", "warned: ..", "equal", "unsuitable: .." or "SILENT: .."."""
    import torch

    import families
    import fsdp_mlir as fm
    from initial import draw_batches, limits_of

    torch.manual_seed(0)
    module, example, loss = families.FAMILIES[name][1]()
    names = list(example) if isinstance(example, dict) else None
    if names:
        return "unsuitable: a batch by names"
    arrays = [t.numpy() for t in example]
    batches = draw_batches(arrays, limits_of(arrays), RANKS, STEPS)
    try:
        kind = PLANTS[planted](module, batches[1])
    except Unsuitable as error:
        return f"unsuitable: {error}"
    if kind == "one tensor":
        if len(example) < 2 or example[0].shape != example[-1].shape:
            return "unsuitable: inputs of one shape"
        example = (*example[:-1], example[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = fm.export_torch(module, example, loss=loss, **families.OPTIONS.get(name, {}))
            step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=fm.SGD(lr=RATE))
            with step.train(weights=copy.deepcopy(module), seed=1,
                            check_against_unsharded=True) as run:
                if kind == "random":
                    return dropout_outcome(module, loss, run, batches[0])
                losses = [run.step(batch).loss for batch in batches]
                run.compare()
                found = dict(run.parameters())
        except fm.errors.FsdpError as error:
            return "refused: " + str(error).splitlines()[0][:90]
    own = [w for w in caught if "fsdp_mlir" in str(w.category) or "does not" in str(w.message)]
    if kind == "bad batch":
        return "SILENT: an id that is out of range was accepted"
    expected, weights, moved = reference(module, loss, batches)
    far = np.max([abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, expected)])
    # The comparisons are false for NaN.
    apart = [n for n, w in weights.items() if n in found and
             not np.abs(found[n] - w).max() <= NEAR_WEIGHTS * moved[n] + ROUNDING * np.abs(w).max() +
             NOISE * max(moved.values())]
    if far < NEAR and not apart:
        return "equal"
    if own:
        return f"warned: {str(own[0].message).splitlines()[0][:90]}"
    return f"SILENT: losses differ by {far:.0e}, weights of {apart[:2]}"


def dropout_outcome(module, loss, run, batch) -> str:
    """Checks that evaluation applies no dropout, and that two steps with a learning rate of 0 on the same batch have different losses."""
    import torch

    plain = run.evaluate(batch)
    steps = [run.step(batch, lr=0.0).loss for _ in range(2)]
    module.eval()
    with torch.no_grad():
        halves = [[torch.from_numpy(np.split(a, RANKS)[rank].copy()) for a in batch]
                  for rank in range(RANKS)]
        expected = float(sum(loss(module, *half) for half in halves)) / RANKS
    if not abs(plain - expected) <= NEAR * abs(expected):
        return f"SILENT: an evaluation is {plain}, expected {expected}"
    return "equal" if steps[0] != steps[1] != plain else "SILENT: no dropout in a step"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS), help="families, separated by commas")
    parser.add_argument("--plants", default=",".join(PLANTS), help="plants, separated by commas")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    silent = 0
    for name in options.only.split(","):
        for planted in options.plants.split(","):
            if planted not in PLANTS:
                parser.error(f"unknown plant '{planted}'; expected {', '.join(PLANTS)}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = outcome(name, planted)
            silent += result.startswith("SILENT")
            print(f"{name:15} {planted:13} {result}", flush=True)
    print(f"{silent} silent")
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
