# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One .safetensors file, or an index of several .safetensors files, as Hugging Face writes them.

https://huggingface.co/docs/safetensors describes the format: the size of the header in 8 bytes, a
JSON header with dtype, shape and offsets of each tensor, and the values without gaps.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Callable, Iterable, Iterator, Sequence

import numpy as np

from .formats import Source, beside, read_bytes, read_json
from .tensors import ITEM_SIZES, CheckpointError, Entry, counts, cut

INDEX = "model.safetensors.index.json"
_MOST_HEADER = 100 << 20


def _entry(path: pathlib.Path, name: str, found: object) -> tuple[Entry, int, int]:
    """Returns the tensor that an item of the header describes, and the two byte offsets between
    which its values are stored."""
    where = f"{path}: tensor '{name}'"
    if not isinstance(found, dict) or not {"dtype", "shape", "data_offsets"} <= set(found):
        raise CheckpointError(f"{where}: expected dtype, shape and data_offsets")
    dtype, shape, offsets = found["dtype"], found["shape"], found["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_SIZES:
        raise CheckpointError(f"{where}: expected a dtype of {', '.join(ITEM_SIZES)}, found "
                              f"{str(dtype)!r:.40}")
    if not counts(shape) or not counts(offsets) or len(offsets) != 2:
        raise CheckpointError(f"{where}: expected whole numbers as shape and two offsets")
    return Entry(name, dtype, tuple(shape)), *offsets


def read_header(path: pathlib.Path, data: np.ndarray):
    """Returns ({name: (tensor, begin, end)}, metadata) of a file. ``begin`` and ``end`` are byte
    offsets in the file. Raises CheckpointError."""
    size = len(data)
    length = int.from_bytes(data[:8].tobytes(), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise CheckpointError(f"{path}: expected a header of at most {max(size - 8, 0)} bytes, "
                              f"found a size of {length}; it is cut short or no .safetensors file")
    header = read_json(path, data[8:8 + length].tobytes())
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or any(type(v) is not str for v in metadata.values()):
        raise CheckpointError(f"{path}: expected texts in __metadata__")
    start, at, found = 8 + length, 0, {}
    items = [_entry(path, name, item) for name, item in header.items()]
    for entry, begin, end in sorted(items, key=lambda item: item[1:]):
        if end - begin != entry.nbytes:
            raise CheckpointError(f"{path}: tensor '{entry.name}': expected {entry.nbytes} bytes "
                                  f"for {entry.dtype} {list(entry.shape)}, found {end - begin}")
        if begin != at:
            raise CheckpointError(f"{path}: tensor '{entry.name}': expected offset {at}, the end "
                                  f"of the tensor before it, found {begin}")
        at = end
        found[entry.name] = (entry, start + begin, start + end)
    if start + at != size:
        raise CheckpointError(f"{path}: expected {start + at} bytes by its header, found {size}")
    return {name: found[name] for name in header}, metadata


class SafetensorsSource(Source):
    """A checkpoint that is one .safetensors file."""

    format = "safetensors"

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        self._places, self.metadata = read_header(path, self.files[path])
        self.entries = {name: entry for name, (entry, _, _) in self._places.items()}

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        _, begin, end = self._places[name]
        return cut(self.files[self.path][begin:end])

    def describe(self) -> list[str]:
        return [f"metadata {name}: {value}" for name, value in self.metadata.items()]


class IndexSource(Source):
    """A checkpoint of model.safetensors.index.json and the .safetensors files beside it."""

    format = "safetensors with an index"

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        index = read_json(path, read_bytes(path))
        places = index.get("weight_map")
        if not isinstance(places, dict) or any(type(file) is not str for file in places.values()):
            raise CheckpointError(f"{path}: expected an object 'weight_map' of tensors and files")
        self._metadata = index.get("metadata")
        self._shards, self._files = {}, {}
        for file in dict.fromkeys(places.values()):
            where = beside(path, file)
            if not where.is_file():
                self.missing.append(f"{where}: expected this file of the index, found none")
                continue
            self._shards[file] = read_header(where, self.files[where])[0]
        for name, file in places.items():
            if file in self._shards and name in self._shards[file]:
                self.entries[name] = self._shards[file][name][0]
                self._files[name] = file
            elif file in self._shards:
                self.missing.append(f"{path.with_name(file)}: expected tensor '{name}', which the "
                                     "index places there, found none")

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        _, begin, end = self._shards[self._files[name]][name]
        return cut(self.files[self.path.with_name(self._files[name])][begin:end])

    def problems(self) -> Iterator[str]:
        yield from self.missing
        for file, tensors in self._shards.items():
            for name in tensors:
                place = self._files.get(name)
                if place != file:
                    yield (f"{self.path.with_name(file)}: found tensor '{name}', which the index "
                           f"{'places in ' + place if place else 'lacks'}")

    def warnings(self) -> Iterator[str]:
        total = self._metadata.get("total_size") if isinstance(self._metadata, dict) else None
        found = sum(entry.nbytes for entry in self.entries.values())
        if total is not None and total != found and not self.missing:
            yield f"{self.path}: total_size: expected {found}, found {str(total):.40}"

    def describe(self) -> list[str]:
        return [f"file {file}: {len(tensors)} tensors" for file, tensors in self._shards.items()]


# --- Writing. In the functions below, ``pieces`` returns the bytes of an entry.

Pieces = Callable[[Entry], Iterable[np.ndarray]]


def write_file(path: pathlib.Path, entries: Sequence[Entry], pieces: Pieces,
               metadata: dict[str, str]) -> None:
    """Writes a .safetensors file. Tensors are sorted by decreasing element size, so that every
    tensor is aligned."""
    entries = sorted(entries, key=lambda entry: -ITEM_SIZES[entry.dtype])
    header: dict = {"__metadata__": metadata}
    offset = 0
    for entry in entries:
        header[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape),
                              "data_offsets": [offset, offset + entry.nbytes]}
        offset += entry.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST_HEADER:
        raise CheckpointError(f"{path}: {len(entries)} tensors need a header of {len(text)} bytes, "
                              f"expected at most {_MOST_HEADER}; write several files")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in entries:
            for piece in pieces(entry):
                file.write(piece.data)
        file.flush()
        os.fsync(file.fileno())


def groups(entries: Iterable[Entry], most: int) -> list[list[Entry]]:
    """Divides tensors into groups of at most ``most`` bytes. A tensor of more than ``most`` bytes
    forms a group of its own."""
    found: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if found[-1] and size + entry.nbytes > most:
            found.append([])
            size = 0
        found[-1].append(entry)
        size += entry.nbytes
    return found


def write_sharded(folder: pathlib.Path, entries: Sequence[Entry], pieces: Pieces, most: int,
                  metadata: dict[str, str]) -> None:
    """Writes model-00001-of-0000N.safetensors and the index into an empty folder."""
    parts = groups(entries, most)
    places = {}
    for number, part in enumerate(parts, 1):
        name = f"model-{number:05}-of-{len(parts):05}.safetensors"
        write_file(folder / name, part, pieces, metadata)
        places |= {entry.name: name for entry in part}
    index = {"metadata": {"total_size": sum(entry.nbytes for entry in entries)},
             "weight_map": places}
    with open(folder / INDEX, "w") as file:
        file.write(json.dumps(index, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
