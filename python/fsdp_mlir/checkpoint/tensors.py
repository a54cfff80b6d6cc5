# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes tensors of a checkpoint by name, type and shape, and converts floats."""

from __future__ import annotations

import dataclasses
import math
from typing import Iterator

import numpy as np

from ..errors import FsdpError

# Number of bytes of an element, for each name of a type in .safetensors files.
ITEM_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
              "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
              "BOOL": 1, "C64": 8}
FLOATS = ("F64", "F32", "F16", "BF16")
PIECE_BYTES = 16 << 20  # a multiple of all values of ITEM_SIZES


class CheckpointError(FsdpError, ValueError):
    """A checkpoint is damaged, has an unknown format, or cannot be converted as requested."""


class UsageError(CheckpointError):
    """The caller gave an invalid path or an invalid rename rule."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor of a checkpoint; ``dtype`` is the type's name in .safetensors files."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * ITEM_SIZES[self.dtype]


def cut(values: np.ndarray) -> Iterator[np.ndarray]:
    """Divides a one-dimensional array of bytes into pieces of at most PIECE_BYTES."""
    for begin in range(0, len(values), PIECE_BYTES):
        yield values[begin:begin + PIECE_BYTES]


def counts(values: object, least: int = 0) -> bool:
    """Returns true if ``values`` is a list or tuple of integers that are at least ``least``."""
    return isinstance(values, (list, tuple)) and all(
        type(value) is int and least <= value < 1 << 62 for value in values)


def _to_numbers(piece: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "BF16":
        return (piece.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return piece.view({"F64": np.float64, "F32": np.float32, "F16": np.float16}[dtype])


def _to_bf16(values: np.ndarray) -> np.ndarray:
    """Rounds f32 to the nearest bf16 (ties to even). A NaN remains a NaN with the same sign."""
    bits = values.view(np.uint32)
    rounded = ((bits + (0x7fff + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), ((bits >> 16) | 0x40).astype(np.uint16), rounded)


def convert_piece(piece: np.ndarray, entry: Entry, dtype: str) -> np.ndarray:
    """Converts the bytes of float elements to another float type, rounded to the nearest value.

    An f64 value is converted to f32 and then to bf16, as in PyTorch. Raises CheckpointError if a
    finite value is outside the range of the new type.
    """
    if entry.dtype == dtype:
        return piece
    values = _to_numbers(np.ascontiguousarray(piece), entry.dtype)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype == "BF16":
            bits = _to_bf16(values.astype(np.float32))
            finite, result = (bits & 0x7f80) != 0x7f80, bits
        else:
            result = values.astype({"F64": np.float64, "F32": np.float32, "F16": np.float16}[dtype])
            finite = np.isfinite(result)
    lost = np.isfinite(values) & ~finite
    if lost.any():
        raise CheckpointError(f"tensor '{entry.name}': its value {values[lost][0]!s} is out of the "
                              f"range of {dtype.lower()}; convert to bf16 or f32")
    return result.view(np.uint8)
