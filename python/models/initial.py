# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes weights and batches by rules that need only NumPy and do not depend on its version.

The random numbers of a tensor are drawn with a seed that is computed from the tensor's name. A
value is 0.05 n, where n is a standard normal number. In the scale of a norm layer, a value is 1 +
0.05 n. ``numpy.random.RandomState`` is used because it draws the same numbers in every version of NumPy.
"""

from __future__ import annotations

import zlib

import numpy as np

_SCALES = ("weight", "scale")


def value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the f32 values of the parameter ``name``."""
    random = np.random.RandomState(zlib.crc32(name.encode()))
    values = 0.05 * random.standard_normal(shape)
    is_scale = len(shape) == 1 and name.rpartition(".")[2] in _SCALES
    return np.asarray(1.0 + values if is_scale else values, dtype=np.float32)


def set_weights(module) -> None:
    """Sets each parameter of a PyTorch module to the result of ``value`` for this parameter."""
    import torch

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(value(name, tuple(parameter.shape))))


def draw(shape: tuple[int, ...], dtype, limit: int, random) -> np.ndarray:
    """Returns ids in [0, limit) for an integer dtype, and normally distributed floats otherwise."""
    if np.dtype(dtype).kind in "iu":
        return random.randint(0, limit, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def limits_of(examples: list[np.ndarray]) -> list[int]:
    """Returns, for each example, one plus its largest id, or 0 if the example contains floats."""
    return [int(a.max()) + 1 if a.dtype.kind in "iu" else 0 for a in examples]


def draw_batches(inputs: list, limits: list[int], ranks: int, steps: int) -> list[list[np.ndarray]]:
    """Returns, for each step, a batch that contains the examples of all ranks.

    ``inputs`` contains arrays with the shapes and types of the batch of one rank. ``limits``
    contains a limit for each input. The ids of the input are drawn below this limit.
    """
    random = np.random.RandomState(1)
    return [[draw((ranks * a.shape[0], *a.shape[1:]), a.dtype, limit, random)
             for a, limit in zip(inputs, limits)] for _ in range(steps)]
