# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes .safetensors files of NumPy arrays, with no package but NumPy.

A file has the header's size (8 bytes, little-endian), a JSON header with dtype, shape and offsets
of each tensor, and the values. See https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Mapping

import numpy as np

from .arrays import Bf16, as_bf16
from .errors import FsdpError

_NAMES = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32",
          "i16": "I16", "i8": "I8", "ui8": "U8", "i1": "BOOL"}
_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
          "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8,
          "BOOL": np.bool_}
_MOST_HEADER = 100 << 20


class FileError(FsdpError, ValueError):
    """A file is not a .safetensors file, or is damaged."""


def write(path: str | os.PathLike, tensors: Mapping[str, np.ndarray],
          metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors in the given order. While the file is incomplete, it has a temporary name."""
    from .arrays import dtype_name

    header: dict = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, value in tensors.items():
        header[name] = {"dtype": _NAMES[dtype_name(value)], "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for value in tensors.values():
                file.write(np.ascontiguousarray(value).view(np.uint8).reshape(-1).data
                           if value.size else b"")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _header(path: pathlib.Path, file) -> tuple[dict, int]:
    """Returns the header, and the file offset at which the values begin. Raises FileError."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise FileError(f"{path}: expected a header of at most {max(size - 8, 0)} bytes, found a "
                        f"size of {length}; it is cut short or no .safetensors file")
    try:
        header = json.loads(file.read(length))
        entries = {name: (_TYPES[e["dtype"]], e["dtype"], tuple(e["shape"]), *e["data_offsets"])
                   for name, e in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path}: its header is damaged: {error}") from None
    for name, (dtype, _, shape, begin, end) in entries.items():
        expected = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if not 0 <= begin <= end <= size - 8 - length or end - begin != expected:
            raise FileError(f"{path}: tensor '{name}': expected {expected} bytes within the file, "
                            f"found the offsets {begin} and {end}")
    return entries, 8 + length


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Returns all tensors by name, as read-only memory maps of the file.

    ``path`` may also name the ``.index.json`` of a sharded checkpoint. Raises FileError.
    """
    path = pathlib.Path(path)
    if path.name.endswith(".index.json"):
        return _read_sharded(path)
    with open(path, "rb") as file:
        entries, start = _header(path, file)
        values = np.memmap(file, np.uint8, "r") if entries else np.zeros(0, np.uint8)
    tensors = {}
    for name, (dtype, word, shape, begin, end) in entries.items():
        array = np.frombuffer(values, dtype, (end - begin) // np.dtype(dtype).itemsize,
                              start + begin).reshape(shape)
        tensors[name] = array.view(Bf16) if word == "BF16" else array
    return tensors


def _read_sharded(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        places = json.loads(path.read_text())["weight_map"]
        files = sorted(set(places.values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileError(f"{path}: expected a JSON object with a 'weight_map'") from None
    found: dict[str, np.ndarray] = {}
    for name in files:
        if pathlib.PurePath(name).name != name:
            raise FileError(f"{path}: expected names of files beside it, found '{name}'")
        found |= read(path.with_name(name))
    missing = sorted(set(places) - set(found))
    if missing:
        raise FileError(f"{path}: tensor '{missing[0]}' is in none of its files")
    return {name: found[name] for name in places}


__all__ = ["FileError", "as_bf16", "read", "write"]
