# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts arrays of PyTorch, JAX and NumPy to NumPy arrays, if possible without a copy.

NumPy has no type bf16. A bf16 array is therefore represented by a ``Bf16`` array, whose elements
are the 16 bits of each number as uint16.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Bf16(np.ndarray):
    """An array of bfloat16 numbers, each stored as its 16 bits in a uint16."""


def as_bf16(bits: np.ndarray) -> Bf16:
    """Returns an array of 16-bit integers as a Bf16 array with the same bits."""
    return np.ascontiguousarray(bits).view(np.uint16).view(Bf16)


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """Returns the f32 values of bfloat16 bits."""
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def widened(array: np.ndarray) -> np.ndarray:
    """Returns a Bf16 array converted to f32, and any other array unchanged."""
    return bf16_to_f32(array) if isinstance(array, Bf16) else array


def is_torch(value: Any) -> bool:
    """Returns true if a value is a PyTorch tensor, without importing PyTorch."""
    return type(value).__module__.split(".")[0] == "torch" or hasattr(value, "__torch_function__")


def to_numpy(value: Any) -> np.ndarray:
    """Returns a C-contiguous NumPy array with the values and the element type of ``value``.

    The result shares the array's memory if the array is contiguous and in host memory. Raises
    TypeError if ``value`` is not an array.
    """
    if isinstance(value, np.ndarray):
        # Arrays of JAX use the type bfloat16 of the package ml_dtypes.
        if value.dtype.name == "bfloat16":
            return as_bf16(np.ascontiguousarray(value))
        return value if value.flags.c_contiguous else np.ascontiguousarray(value)
    if is_torch(value):
        import torch

        tensor = value.detach()
        if tensor.device.type != "cpu":
            tensor = tensor.cpu()
        tensor = tensor.contiguous()
        if tensor.dtype == torch.bfloat16:
            return as_bf16(tensor.view(torch.int16).numpy())
        return tensor.numpy()
    if hasattr(value, "__array__") or isinstance(value, (int, float, bool, list, tuple)):
        return to_numpy(np.asarray(value))
    raise TypeError(f"expected an array of NumPy, PyTorch or JAX, found {type(value).__name__}")


def dtype_name(array: np.ndarray) -> str:
    """Returns MLIR's name of an array's element type, such as f32 or i64."""
    if isinstance(array, Bf16):
        return "bf16"
    names = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32",
             "int16": "i16", "int8": "i8", "uint8": "ui8", "bool": "i1"}
    if array.dtype.name not in names:
        raise TypeError(f"expected an array of floats, integers or booleans, found {array.dtype}")
    return names[array.dtype.name]
