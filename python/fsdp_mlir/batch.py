# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the arrays of a batch against the inputs of a program, and converts them."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from . import native
from .arrays import Bf16, as_bf16, to_numpy, widened
from .artifact import StepInput
from .native import refuse


class BoundInput:
    """Converts the arrays of one input of a program. An array contains the examples of one or more
    ranks.

    ``readers`` consecutive ranks read the same examples, which a batch contains once."""

    def __init__(self, about: StepInput, ranks: Sequence[int], readers: int = 1):
        self.about = about
        self.dtype = native.numpy_dtype(about.dtype)
        parts = len(ranks) // readers * about.micro_batches
        self.elements = int(np.prod(about.shape, dtype=np.int64))
        self.shape = (parts * about.shape[0], *about.shape[1:]) if about.shape else (parts,)
        self.size = self.elements * self.dtype.itemsize
        self.parts = [(ranks[first:first + readers], micro)
                      for first in range(0, len(ranks), readers)
                      for micro in range(about.micro_batches)]

    def convert(self, value: Any) -> np.ndarray:
        """Returns ``value`` as a contiguous array of this input's type. Raises BadInputError."""
        try:
            array = to_numpy(value)
        except TypeError as error:
            refuse(f"input '{self.about.name}': {error}")
        if array.shape != self.shape:
            refuse(f"input '{self.about.name}': expected the shape {self._shape_text()}, found "
                    f"{list(array.shape)}")
        if self.about.dtype == native.BF16 and not isinstance(array, Bf16):
            return _round_bf16(array, self.about.name)
        if self.about.dtype != native.BF16:
            array = widened(array)
        if array.dtype == self.dtype:
            return array
        if not _may_convert(array.dtype, self.dtype):
            refuse(f"input '{self.about.name}': expected {native.DTYPES[self.about.dtype]}, found "
                    f"{array.dtype}")
        converted = array.astype(self.dtype)
        if array.dtype.kind in "iu" and not np.array_equal(converted, array):
            refuse(f"input '{self.about.name}': a value does not fit into "
                    f"{native.DTYPES[self.about.dtype]}")
        return converted

    def _shape_text(self) -> str:
        parts = len(self.parts)
        text = str(list(self.shape))
        return text if parts == 1 else f"{text} ({parts} batches of {list(self.about.shape)})"

    def write(self, library, session, array: np.ndarray) -> None:
        address = array.ctypes.data
        for ranks, micro in self.parts:
            for rank in ranks:
                library.session_write_input(session, rank, self.about.index, micro, address,
                                            self.size)
            address += self.size


def _may_convert(source: np.dtype, target: np.dtype) -> bool:
    integers = "iub"
    if target.kind == "f":
        return source.kind == "f"
    return source.kind in integers and target.kind in integers


def _round_bf16(array: np.ndarray, name: str) -> np.ndarray:
    """Returns the bits of the bf16 values that are nearest to floats. Rounds ties to even."""
    if array.dtype.kind != "f":
        refuse(f"input '{name}': expected bf16, found {array.dtype}")
    bits = array.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    rounded = np.where(np.isnan(array), 0x7FC0, rounded)
    return as_bf16(rounded.astype(np.uint16))


def by_input(batch: Any, bound: Sequence[BoundInput]) -> list[np.ndarray]:
    """Returns a batch's converted arrays in the order of ``bound``. Raises BadInputError."""
    names = [one.about.name for one in bound]
    if isinstance(batch, Mapping):
        if missing := [name for name in names if name not in batch]:
            refuse(f"the batch lacks the input '{missing[0]}'; it has {sorted(batch)}")
        if extra := [name for name in batch if name not in names]:
            refuse(f"the step has no input '{extra[0]}'; expected {names}")
        values = [batch[name] for name in names]
    elif isinstance(batch, (tuple, list)):
        values = list(batch)
    else:
        values = [batch]
    if len(values) != len(bound):
        refuse(f"expected {len(bound)} arrays ({', '.join(names)}), found {len(values)}")
    return [one.convert(value) for one, value in zip(bound, values)]
