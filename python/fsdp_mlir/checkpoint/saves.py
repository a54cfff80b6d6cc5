# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads saves of fsdp-run and Run.save: joins the ranks' slices to parameters by name.

docs/how-to/save-and-resume.md describes the files. If a parameter has an f32 master, the values of
the master are read, as fsdp-run --export does.
"""

from __future__ import annotations

import hashlib
import math
import pathlib
import re
from typing import Any, Iterator

import numpy as np

from .formats import Source, beside, read_bytes, read_json
from .hugging_face import read_header
from .tensors import ITEM_SIZES, CheckpointError, Entry, counts, cut

_HASH = re.compile(rb'  "sha256": "([0-9a-f]{64})"\n}\n\Z')
_STEP = re.compile(r"step-\d{8,}")


def _save_folder(folder: pathlib.Path) -> tuple[pathlib.Path, str | None]:
    """Returns a save's folder, and the index's hash if the file ``latest`` names the save."""
    if (folder / "index.json").is_file():
        return folder, None
    words = read_bytes(folder / "latest").decode(errors="replace").split()
    if len(words) != 2 or not _STEP.fullmatch(words[0]):
        raise CheckpointError(f"{folder / 'latest'}: expected the name of a save and a SHA-256")
    return folder / words[0], words[1]


def _members(where: pathlib.Path, found: object, kinds: dict[str, type]) -> list[Any]:
    """Returns the members of a JSON object that ``kinds`` {name: type} names, in this order. Raises
    CheckpointError if a member is missing or has another type."""
    values = []
    for name, kind in kinds.items():
        value = found.get(name) if isinstance(found, dict) else None
        if not isinstance(value, kind) or kind is int and not counts([value]):
            raise CheckpointError(f"{where}: expected {kind.__name__} '{name}', found "
                                  f"{type(value).__name__}")
        values.append(value)
    return values


class SaveSource(Source):
    """A checkpoint that is a save, or the newest save in a folder of saves."""

    format = "save of fsdp-run"

    def __init__(self, path: pathlib.Path):
        folder, expected = _save_folder(path)
        super().__init__(folder)
        self._where = where = folder / "index.json"
        self._index = self._read_index(expected)
        units, states, files = _members(where, self._index, {"units": list, "states": list,
                                                             "files": list})
        self._files = [_members(where, file, {"name": str, "bytes": int, "sha256": str})
                       for file in files]
        self._paths = [beside(where, name) for name, _, _ in self._files]
        for unit in units:
            _members(where, unit, {"name": str, "params": list})
        self._slices = [self._slices_of(unit) for unit in units]
        self._states: dict[tuple[int, str], tuple[str, str, int, list[int]]] = {}
        for state in states:
            self._state(state, len(units))
        # For each parameter: the key of its state in ``_states``, the offset of its elements in the
        # flat buffer of a slice, and the sizes of split blocks with their dimension.
        self._places: dict[str, tuple[tuple[int, str], int, tuple[int, list[int]] | None]] = {}
        for number, unit in enumerate(units):
            for param in unit["params"]:
                self._parameter(number, param)

    def _read_index(self, expected: str | None) -> dict:
        text = read_bytes(self._where)
        index = read_json(self._where, text)
        if index.get("format") != "fsdp-save":
            raise CheckpointError(f"{self._where}: expected the format 'fsdp-save'")
        if index.get("version") not in (1, 2):
            raise CheckpointError(f"{self._where}: expected version 1 or 2 of the format, found "
                                  f"{str(index.get('version')):.40}")
        found = _HASH.search(text)
        if not found:
            raise CheckpointError(f"{self._where}: expected its SHA-256 at its end; it is cut "
                                  "short or damaged")
        zeroed = text[:found.start(1)] + b"0" * 64 + text[found.end(1):]
        if hashlib.sha256(zeroed).hexdigest() != found[1].decode():
            raise CheckpointError(f"{self._where}: its content does not match the SHA-256 at its "
                                  "end; it is damaged")
        if expected is not None and expected != found[1].decode():
            raise CheckpointError(f"{self._where}: expected the SHA-256 in ../latest, "
                                  f"{expected:.64}, found {found[1].decode()}")
        return index

    def _slices_of(self, unit: dict) -> int:
        """Returns the number of slices of a unit, which only an index of version 2 has."""
        slices = unit.get("slices", 1) if self._index["version"] == 2 else 1
        if not counts([slices], 1):
            raise CheckpointError(f"{self._where}: expected a number of slices, found "
                                  f"{str(slices):.40}")
        return slices

    def _split(self, unit: int, param: dict) -> tuple[int, list[int]] | None:
        """Returns the dimension of a parameter that is split, with the sizes of its blocks."""
        if self._slices[unit] == 1 or "split" not in param:
            return None
        dim, blocks = _members(self._where, param["split"], {"dim": int, "blocks": list})
        shape, slices = param["shape"], self._slices[unit]
        if dim >= len(shape) or not counts(blocks, 1) or sum(blocks) != shape[dim] or \
                any(block % slices for block in blocks):
            raise CheckpointError(f"{self._where}: parameter '{param['name']}': expected blocks of "
                                  f"one of its dimensions that {slices} ranks divide")
        return dim, blocks

    def _state(self, state: object, units: int) -> None:
        tensor, role, dtype, unit, elements, files = _members(self._where, state, {
            "tensor": str, "role": str, "dtype": str, "unit": int, "elements": int, "files": list})
        if dtype not in ITEM_SIZES or unit >= units or not counts(files) or \
                any(file >= len(self._files) for file in files) or \
                len(files) % self._slices[unit]:
            raise CheckpointError(f"{self._where}: state '{tensor}': expected a known dtype, a "
                                  "unit and files of the index")
        self._states[unit, role] = tensor, dtype, elements, files

    def _parameter(self, unit: int, param: object) -> None:
        name, offset, shape = _members(self._where, param, {"name": str, "offset": int,
                                                            "shape": list})
        role = next((one for one in ("master", "parameter") if (unit, one) in self._states), None)
        if role is None or not counts(shape) or name in self.entries:
            raise CheckpointError(f"{self._where}: parameter '{name}': expected a shape, once, and "
                                  "values as 'master' or 'parameter'")
        _, dtype, elements, files = self._states[unit, role]
        split, slices = self._split(unit, param), self._slices[unit]
        end = offset + math.prod(shape) // (slices if split else 1)
        if end > elements * len(files) // slices:
            raise CheckpointError(f"{self._where}: parameter '{name}': expected at most "
                                  f"{elements * len(files) // slices} elements in its unit, found "
                                  f"{end}")
        self.entries[name] = Entry(name, dtype, tuple(shape))
        self._places[name] = (unit, role), offset, split

    def _piece(self, state: tuple[int, str], number: int) -> np.ndarray:
        """Returns the bytes of file ``number`` of a state. Raises CheckpointError."""
        tensor, dtype, elements, files = self._states[state]
        path = self._paths[files[number]]
        data = self.files[path]
        expected = self._files[files[number]][1]
        if len(data) != expected:
            raise CheckpointError(f"{path}: expected {expected} bytes, found {len(data)}")
        found = read_header(path, data)[0].get(tensor)
        if found is None or found[0].dtype != dtype or found[0].shape != (elements,):
            raise CheckpointError(f"{path}: expected the tensor '{tensor}', {dtype} [{elements}]")
        return data[found[1]:found[2]]

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        entry = self.entries[name]
        state, offset, split = self._places[name]
        if split is None or not entry.elements:
            yield from self._range(state, offset, entry.elements)
            return
        # A slice has the shape of the parameter with a part of each block. Join the parts of each
        # block along this dimension.
        _, dtype, elements, files = self._states[state]
        (dim, blocks), slices = split, self._slices[state[0]]
        shape, size = entry.shape, elements * len(files) // slices
        parts = []
        for slice_ in range(slices):
            data = list(self._range(state, slice_ * size + offset, entry.elements // slices))
            parts.append(np.concatenate(data or [np.zeros(0, np.uint8)]).reshape(
                math.prod(shape[:dim]), shape[dim] // slices, -1))
        ends = np.cumsum([block // slices for block in blocks])[:-1]
        cuts = [np.split(part, ends, axis=1) for part in parts]
        joined = [part[block] for block in range(len(blocks)) for part in cuts]
        yield from cut(np.concatenate(joined, axis=1).reshape(-1))

    def _range(self, state: tuple[int, str], offset: int, count: int) -> Iterator[np.ndarray]:
        """Returns the bytes of ``count`` elements of a flat buffer, from element ``offset``."""
        _, dtype, elements, _ = self._states[state]
        size, end = ITEM_SIZES[dtype], offset + count
        while offset < end:
            number, begin = divmod(offset, elements)
            taken = min(elements - begin, end - offset)
            yield from cut(self._piece(state, number)[begin * size:(begin + taken) * size])
            offset += taken

    def problems(self) -> Iterator[str]:
        for path, (_, size, expected) in zip(self._paths, self._files):
            try:
                data = self.files[path]
            except CheckpointError as error:
                yield str(error)
                continue
            if len(data) != size:
                yield f"{path}: expected {size} bytes, found {len(data)}"
                continue
            digest = hashlib.sha256()
            for piece in cut(data):
                digest.update(piece.data)
            if digest.hexdigest() != expected:
                yield f"{path}: expected the SHA-256 {expected}, found {digest.hexdigest()}"
        for state, (tensor, _, _, files) in self._states.items():
            for number in range(len(files)):
                try:
                    self._piece(state, number)
                except CheckpointError as error:
                    yield str(error)
        for path in sorted(self.path.iterdir()):
            if path.name != "index.json" and path not in self._paths:
                yield f"{path}: found this file, which the index lacks"

    def describe(self) -> list[str]:
        index = self._index
        artifact = index.get("artifact") if isinstance(index.get("artifact"), dict) else {}
        lines = [f"step {index.get('step')} of {str(artifact.get('source')):.200}"]
        lines += [f"state {tensor}: {dtype}, {len(files)} x {elements} elements"
                  for tensor, dtype, elements, files in self._states.values()]
        return lines
