# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes tensors in the zip format of torch.save, which DCP uses, without PyTorch.

An archive contains data.pkl (the description of a tensor) and data/0 (the bytes of its storage).
"""

from __future__ import annotations

import dataclasses
import io
import struct
import zipfile
import zlib
from typing import BinaryIO, Iterable

import numpy as np

from . import pickles
from .pickles import Name, Object
from .tensors import ITEM_SIZES, CheckpointError, Entry, counts, cut

# Maps PyTorch's name of an element type to the name in .safetensors files.
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
          "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
          "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64",
          "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64"}
TORCH_NAMES = {word: name for name, word in DTYPES.items()}
_STORAGES = {"DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16",
             "BFloat16Storage": "BF16", "LongStorage": "I64", "IntStorage": "I32",
             "ShortStorage": "I16", "CharStorage": "I8", "ByteStorage": "U8", "BoolStorage": "BOOL",
             "ComplexFloatStorage": "C64"}
_STORAGE_NAMES = {word: name for name, word in _STORAGES.items()}
_UNTYPED = Name("torch.storage", "UntypedStorage")
_NAMES = frozenset(
    [f"torch.{name}" for name in (*DTYPES, *_STORAGES)] + [_UNTYPED.text] +
    [f"torch._utils._rebuild_{name}" for name in ("tensor_v2", "tensor_v3", "parameter")] +
    ["collections.OrderedDict"])
_DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, NotImplementedError, EOFError,
           ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError, RuntimeError,
           OSError)


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file. ``bytes`` is its storage. ``offset`` and ``strides`` are counted in
    elements."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
    bytes: np.ndarray
    crc: int

    def array(self) -> np.ndarray:
        """Returns a view of the elements (at least one) as unsigned integers of equal size."""
        size = ITEM_SIZES[self.dtype]
        values = self.bytes[self.offset * size:]
        values = values[:len(values) // size * size].view(f"u{size}")
        return np.lib.stride_tricks.as_strided(values, self.shape,
                                               [stride * size for stride in self.strides],
                                               writeable=False)


def _record(data: np.ndarray, archive: zipfile.ZipFile, name: str) -> tuple[np.ndarray, int]:
    """Returns a view of the bytes of an uncompressed record, and the record's stored CRC-32."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"expected {name} without compression")
    header = data[info.header_offset:info.header_offset + 30].tobytes()
    if header[:4] != b"PK\3\4":
        raise ValueError(f"expected {name} at offset {info.header_offset}")
    begin = info.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
    if begin + info.file_size > len(data):
        raise ValueError(f"expected {info.file_size} bytes of {name}, found its end")
    return data[begin:begin + info.file_size], info.CRC


def _small(data: np.ndarray, archive: zipfile.ZipFile, name: str) -> bytes:
    found, crc = _record(data, archive, name)
    found = found.tobytes()
    if zlib.crc32(found) != crc:
        raise ValueError(f"the CRC-32 of {name} does not match its content")
    return found


def read(where: str, data: np.ndarray) -> Stored:
    """Returns the tensor of the archive whose bytes are ``data``. Raises CheckpointError."""
    try:
        with zipfile.ZipFile(_Window(data)) as archive:
            pickle = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if pickle is None:
                raise ValueError("expected data.pkl of torch.save")
            root = pickle[:-len("data.pkl")]
            order = root + "byteorder"
            if order in archive.namelist() and _small(data, archive, order) != b"little":
                raise ValueError("expected the byte order 'little'")
            found = pickles.read(f"{where}: data.pkl", _small(data, archive, pickle), _NAMES)
            return _tensor(found, lambda key: _record(data, archive, f"{root}data/{key}"))
    except CheckpointError as error:
        raise CheckpointError(str(error) if str(error).startswith(where) else f"{where}: {error}"
                              ) from None
    except _DAMAGE as error:
        raise CheckpointError(f"{where}: expected a tensor of torch.save: {error}") from None


class _Window(io.RawIOBase):
    """A file object that reads the bytes of a memory-mapped file."""

    def __init__(self, data: np.ndarray):
        self._data, self._at = data, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        if self._at < 0:
            raise ValueError("seek before the beginning")
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else self._at + size
        found = self._data[self._at:end].tobytes()
        self._at += len(found)
        return found


class _Section:
    """A file object that appends to another file. Offset 0 of this object is the position that the
    other file had when the object was made."""

    def __init__(self, file: BinaryIO):
        self._file, self._begin = file, file.tell()
        self.write, self.flush = file.write, file.flush

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset + (self._begin if whence == 0 else 0), whence) - self._begin

    def tell(self) -> int:
        return self._file.tell() - self._begin


def _tensor(found: object, record) -> Stored:
    """Returns the tensor that the content of data.pkl describes. Raises ValueError."""
    if isinstance(found, Object) and found.is_a("_rebuild_parameter") and found.args:
        found = found.args[0]
    if not isinstance(found, Object) or not found.is_a("_rebuild_tensor_v2", "_rebuild_tensor_v3") \
            or len(found.args) < 6:
        raise ValueError("expected a dense tensor in data.pkl")
    storage, offset, shape, strides = found.args[:4]
    pid = storage.args if isinstance(storage, Object) and storage.kind is None else None
    if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or \
            not isinstance(pid[1], Name) or not isinstance(pid[2], str):
        raise ValueError("expected a storage in data.pkl")
    shape = shape.args[0] if isinstance(shape, Object) and shape.args else shape
    if not counts(shape) or not counts(strides) or not counts([offset]) or \
            len(shape) != len(strides):
        raise ValueError("expected whole numbers as offset, shape and strides")
    if found.is_a("_rebuild_tensor_v3"):
        name = found.args[6] if len(found.args) > 6 else None
        dtype = DTYPES.get(name.name) if isinstance(name, Name) else None
    else:
        dtype = _STORAGES.get(pid[1].name)
    if dtype is None:
        raise ValueError("expected an element type that .safetensors files have")
    values, crc = record(pid[2])
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
    if 0 not in shape and (last + 1) * ITEM_SIZES[dtype] > len(values):
        raise ValueError(f"expected a storage of at least {(last + 1) * ITEM_SIZES[dtype]} bytes, "
                         f"found {len(values)}")
    return Stored(dtype, tuple(shape), offset, tuple(strides), values, crc)


def check(where: str, stored: Stored) -> str | None:
    """Returns None if the bytes of a tensor have the stored CRC-32, and otherwise a message."""
    found = 0
    for piece in cut(stored.bytes):
        found = zlib.crc32(piece, found)
    if found == stored.crc:
        return None
    return (f"{where}: expected the CRC-32 {stored.crc:08x}, found {found:08x}; it is damaged, or "
            "was written with torch.serialization.set_crc32_options(False)")


def write(file: BinaryIO, entry: Entry, pieces: Iterable[np.ndarray]) -> None:
    """Appends a tensor to a file in the format of torch.save."""
    strides, step = [], 1
    for size in reversed(entry.shape):
        strides.append(step)
        step *= max(size, 1)
    typed = entry.dtype in _STORAGE_NAMES
    kind = Name("torch", _STORAGE_NAMES[entry.dtype]) if typed else _UNTYPED
    storage = Object(None, ("storage", kind, "0", "cpu",
                            entry.elements if typed else entry.nbytes))
    arguments = (storage, 0, entry.shape, tuple(strides[::-1]), False,
                 Object(Name("collections", "OrderedDict"), ()))
    if not typed:
        arguments += (Name("torch", TORCH_NAMES[entry.dtype]),)
    rebuild = Name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    with zipfile.ZipFile(_Section(file), "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("data.pkl", pickles.write(Object(rebuild, arguments))),
                              ("byteorder", b"little")):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), content)
        with archive.open(zipfile.ZipInfo("archive/data/0"), "w", force_zip64=True) as record:
            for piece in pieces:
                record.write(piece.data)
        archive.writestr(zipfile.ZipInfo("archive/version"), b"3\n")
