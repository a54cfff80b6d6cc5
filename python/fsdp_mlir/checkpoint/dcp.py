# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of torch.distributed.checkpoint (DCP): a .metadata pickle and .distcp files.

The file .metadata has the type, shape and chunks of each tensor, and for each chunk the name of a
file, an offset and a length. A chunk is stored as a tensor in the format of torch.save. Neither
reading nor writing needs PyTorch.
"""

from __future__ import annotations

import math
import os
import pathlib
from typing import Iterator, Sequence

import numpy as np

from . import pickles, torch_files
from .formats import Source, beside, read_bytes
from .hugging_face import Pieces, groups
from .pickles import Name, Object
from .tensors import ITEM_SIZES, CheckpointError, Entry, counts, cut

_METADATA = "torch.distributed.checkpoint.metadata"
_FILES = "torch.distributed.checkpoint.filesystem"
_OLDER = "torch.distributed._shard.sharded_tensor.metadata"
_NAMES = frozenset(
    [f"{_METADATA}.{name}" for name in (
        "Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata",
        "TensorProperties", "_MEM_FORMAT_ENCODING", "MetadataIndex", "StorageMeta")] +
    [f"{_FILES}._StorageInfo", f"{_OLDER}.TensorProperties", f"{_OLDER}.MEM_FORMAT_ENCODING",
     "torch.Size", "torch.serialization._get_layout", "collections.OrderedDict"] +
    [f"torch.{name}" for name in torch_files.DTYPES] +
    [f"{module}.{name}" for module in ("pathlib", "pathlib._local")
     for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")])


def _size(value: object) -> tuple[int, ...] | None:
    """Returns the sizes that a torch.Size contains, or None if ``value`` is not a torch.Size."""
    if isinstance(value, Object) and value.is_a("Size") and len(value.args) == 1:
        value = value.args[0]
    return tuple(value) if counts(value) else None


class DcpSource(Source):
    """An open DCP checkpoint, which is a folder."""

    format = "PyTorch DCP"

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        self._where = path / ".metadata"
        metadata = pickles.read(str(self._where), read_bytes(self._where), _NAMES)
        if not isinstance(metadata, Object) or not metadata.is_a("Metadata"):
            raise self._damage("expected Metadata of torch.distributed.checkpoint")
        tensors, storage = metadata.get("state_dict_metadata"), metadata.get("storage_data")
        if not isinstance(tensors, dict) or not isinstance(storage, dict):
            raise self._damage("expected state_dict_metadata and storage_data")
        self._storage = dict(self._place(key, info) for key, info in storage.items())
        self._chunks: dict[str, list[tuple[tuple, tuple]]] = {}
        self._others: list[str] = []
        for name, found in tensors.items():
            if not isinstance(name, str) or not isinstance(found, Object):
                raise self._damage("expected names with metadata in state_dict_metadata")
            if found.is_a("BytesStorageMetadata"):
                self._others.append(name)
            else:
                self._tensor(name, found)

    def _damage(self, text: str) -> CheckpointError:
        return CheckpointError(f"{self._where}: {text}")

    def _place(self, key: object, info: object):
        """Converts an item of storage_data to the pair ((tensor, offsets of the chunk), (file,
        offset, length))."""
        name = key.get("fqn") if isinstance(key, Object) else None
        if not isinstance(name, str) or not isinstance(info, Object) or \
                not info.is_a("_StorageInfo"):
            raise self._damage("expected a file and an offset for each item of storage_data")
        if info.get("transform_descriptors"):
            raise self._damage(f"'{name}': expected no transform such as compression; load it with "
                               "torch.distributed.checkpoint and save it without")
        place = info.get("offset"), info.get("length")
        if not counts(place):
            raise self._damage(f"'{name}': expected whole numbers as offset and length")
        offsets = key.get("offset")
        return ((name, None if offsets is None else _size(offsets)),
                (beside(self._where, info.get("relative_path")), *place))

    def _tensor(self, name: str, found: Object) -> None:
        """Checks that the chunks of a tensor cover it without overlap, and adds the tensor."""
        shape, chunks, properties = (_size(found.get("size")), found.get("chunks"),
                                     found.get("properties"))
        state = properties.state if isinstance(properties, Object) else None
        dtype = state[0] if isinstance(state, tuple) and state else None
        word = torch_files.DTYPES.get(dtype.name) if isinstance(dtype, Name) else None
        if shape is None or len(shape) > 32 or not isinstance(chunks, list) or word is None:
            raise self._damage(f"tensor '{name}': expected a type, a size of at most 32 "
                               "dimensions, and chunks")
        self.entries[name] = Entry(name, word, shape)
        places = []
        for chunk in chunks:
            offsets, sizes = ((_size(chunk.get(key)) for key in ("offsets", "sizes"))
                              if isinstance(chunk, Object) else (None, None))
            if offsets is None or sizes is None or not len(offsets) == len(sizes) == len(shape) or \
                    any(o + n > s for o, n, s in zip(offsets, sizes, shape)):
                raise self._damage(f"tensor '{name}': expected chunks within {list(shape)}")
            if (name, offsets) not in self._storage:
                raise self._damage(f"tensor '{name}': expected a file for its chunk at "
                                   f"{list(offsets)}, found none")
            places.append((offsets, sizes))
        covered = sum(math.prod(sizes) for _, sizes in places)
        if covered != math.prod(shape) or self._overlap(places):
            raise self._damage(f"tensor '{name}': expected chunks that cover its "
                               f"{math.prod(shape)} elements once, found {len(places)} of "
                               f"{covered} in all")
        self._chunks[name] = places

    @staticmethod
    def _overlap(places: Sequence[tuple[tuple, tuple]]) -> bool:
        places = [(offsets, sizes) for offsets, sizes in places if 0 not in sizes]
        if len(places) < 2 or not places[0][0]:
            return len(places) > 1
        begin = np.array([offsets for offsets, _ in places])
        end = begin + np.array([sizes for _, sizes in places])
        return any(((begin[i + 1:] < end[i]) & (begin[i] < end[i + 1:])).all(axis=1).any()
                   for i in range(len(places) - 1))

    def _read(self, entry: Entry, offsets: tuple, sizes: tuple) -> tuple[str, torch_files.Stored]:
        """Returns the location of a chunk, as text for error messages, and the tensor that the
        chunk contains. Raises CheckpointError."""
        path, begin, length = self._storage[entry.name, offsets]
        where = f"{path}: tensor '{entry.name}' at offset {begin}"
        data = self.files[path]
        if begin + length > len(data):
            raise CheckpointError(f"{where}: expected {length} bytes, found "
                                  f"{max(len(data) - begin, 0)}; the file is cut short")
        stored = torch_files.read(where, data[begin:begin + length])
        if stored.dtype != entry.dtype or stored.shape != sizes:
            raise CheckpointError(f"{where}: expected {entry.dtype} {list(sizes)} as in .metadata, "
                                  f"found {stored.dtype} {list(stored.shape)}")
        return where, stored

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        entry = self.entries[name]
        chunks = [(offsets, sizes) for offsets, sizes in self._chunks[name] if 0 not in sizes]
        if not chunks:
            return
        if len(chunks) == 1:
            values = self._read(entry, *chunks[0])[1].array()
        else:
            # All chunks are checked before memory is allocated for the tensor.
            for offsets, sizes in chunks:
                self._read(entry, offsets, sizes)
            values = np.empty(entry.shape, f"u{ITEM_SIZES[entry.dtype]}")
            for offsets, sizes in chunks:
                place = tuple(slice(o, o + n) for o, n in zip(offsets, sizes))
                values[place] = self._read(entry, offsets, sizes)[1].array()
        yield from cut(np.ascontiguousarray(values).reshape(-1).view(np.uint8))

    def problems(self) -> Iterator[str]:
        for name, entry in self.entries.items():
            for offsets, sizes in self._chunks[name]:
                try:
                    if problem := torch_files.check(*self._read(entry, offsets, sizes)):
                        yield problem
                except CheckpointError as error:
                    yield str(error)
        for name, _ in self._storage:
            if name not in self.entries and name not in self._others:
                yield f"{self._where}: found storage of '{name}', which state_dict_metadata lacks"

    def describe(self) -> list[str]:
        files = {path for path, _, _ in self._storage.values()}
        return [f"files: {len(files)}"] + [f"no tensor, left out by convert: {name}"
                                           for name in self._others]


def _torch_size(values: Sequence[int]) -> Object:
    return Object(Name("torch", "Size"), (tuple(values),))


def _record(kind: str, state: dict | tuple, module: str = _METADATA) -> Object:
    return Object(Name(module, kind), (), state, new=True)


def _tensor_metadata(entry: Entry) -> Object:
    layout = Object(Name("torch.serialization", "_get_layout"), ("torch.strided",))
    contiguous = Object(Name(_METADATA, "_MEM_FORMAT_ENCODING"), (0,))
    properties = _record("TensorProperties", (
        Name("torch", torch_files.TORCH_NAMES[entry.dtype]), layout, False, contiguous, False))
    chunk = _record("ChunkStorageMetadata", {"offsets": _torch_size([0] * len(entry.shape)),
                                             "sizes": _torch_size(entry.shape)})
    return _record("TensorStorageMetadata", {"properties": properties,
                                             "size": _torch_size(entry.shape), "chunks": [chunk]})


def write(folder: pathlib.Path, entries: Sequence[Entry], pieces: Pieces, most: int) -> None:
    """Writes a DCP checkpoint into an empty folder, with one chunk for each tensor.

    A file has at most ``most`` bytes of values, except a file that contains a single larger tensor.
    The file .metadata is written last.
    """
    places = {}
    for number, part in enumerate(groups(entries, most)):
        name = f"__0_{number}.distcp"
        with open(folder / name, "w+b") as file:
            for entry in part:
                begin = file.tell()
                torch_files.write(file, entry, pieces(entry))
                places[entry.name] = name, begin, file.tell() - begin
            file.flush()
            os.fsync(file.fileno())
    storage = {}
    for entry in entries:
        name, begin, length = places[entry.name]
        key = _record("MetadataIndex", {"fqn": entry.name, "index": 0,
                                        "offset": _torch_size([0] * len(entry.shape))})
        storage[key] = _record("_StorageInfo", {"relative_path": name, "offset": begin,
                                                "length": length}, _FILES)
    metadata = _record("Metadata", {
        "state_dict_metadata": {entry.name: _tensor_metadata(entry) for entry in entries},
        "planner_data": {entry.name: (entry.name,) for entry in entries},
        "storage_data": storage, "storage_meta": None})
    with open(folder / ".metadata", "wb") as file:
        file.write(pickles.write(metadata))
        file.flush()
        os.fsync(file.fileno())
