# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface that each checkpoint format offers to a reader, and the recognition of formats."""

from __future__ import annotations

import collections
import json
import mmap
import pathlib
from typing import Iterator

import numpy as np

from .tensors import CheckpointError, Entry, UsageError


class Files:
    """The memory-mapped files of a checkpoint. At most 64 of them are mapped at a time."""

    def __init__(self):
        self._maps: collections.OrderedDict[pathlib.Path, np.ndarray] = collections.OrderedDict()

    def __getitem__(self, path: pathlib.Path) -> np.ndarray:
        """Returns the bytes of a file as a memory map. Raises CheckpointError."""
        found = self._maps.pop(path, None)
        if found is None:
            try:
                with open(path, "rb") as file:
                    size = file.seek(0, 2)
                    found = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                                          if size else b"", np.uint8)
            except OSError as error:
                raise CheckpointError(f"{path}: {error.strerror or error}") from None
        self._maps[path] = found
        if len(self._maps) > 64:
            self._maps.popitem(last=False)
        return found


class Source:
    """An open checkpoint. ``entries`` maps the name of each tensor to its description, in the order
    of the file.

    Opening a checkpoint checks its headers and indices, and raises CheckpointError for an error.
    """

    format = ""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.files = Files()
        self.entries: dict[str, Entry] = {}
        self.metadata: dict[str, str] = {}
        # Errors about missing tensors, and about missing files that the index names.
        self.missing: list[str] = []

    def describe(self) -> list[str]:
        """Returns lines for ``fsdp-ckpt inspect`` that describe all content except tensors."""
        return []

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """Yields the bytes of a tensor in row-major order. Each piece contains whole elements."""
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """Reads the whole checkpoint. Yields an error for each damaged value, and for each tensor
        that is missing or unexpected."""
        yield from ()

    def warnings(self) -> Iterator[str]:
        """Yields warnings about irregularities that do not affect the tensors."""
        yield from ()


def read_json(path: pathlib.Path, text: bytes) -> dict:
    """Parses a JSON object. Raises CheckpointError if the text is not a JSON object, or if a key is
    repeated."""

    def unique(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            name = next(name for name in names if names.count(name) > 1)
            raise CheckpointError(f"{path}: expected each key once, found '{name}' twice")
        return found

    try:
        found = json.loads(text.decode(), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path}: expected JSON, found damage: {error}") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(found).__name__}")
    return found


def read_bytes(path: pathlib.Path) -> bytes:
    """Returns the content of a small file. Raises CheckpointError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from None


def beside(path: pathlib.Path, name: object) -> pathlib.Path:
    """Returns the path of the file ``name`` in the folder of ``path``. Raises CheckpointError if
    ``name`` is not a plain file name."""
    if not isinstance(name, str) or not name or "\0" in name or name == ".." or \
            pathlib.PurePath(name).name != name:
        found = ascii(name) if isinstance(name, str) else type(name).__name__
        raise CheckpointError(f"{path}: expected names of files beside it, found {found:.80}")
    return path.with_name(name)


def open_checkpoint(path: str | pathlib.Path) -> Source:
    """Opens a checkpoint of any of the supported formats. Raises CheckpointError."""
    from .dcp import DcpSource
    from .hugging_face import IndexSource, SafetensorsSource
    from .saves import SaveSource

    path = pathlib.Path(path)
    if path.is_file():
        if path.name.endswith(".index.json"):
            return IndexSource(path)
        if path.name == "index.json":
            return SaveSource(path.parent)
        if path.name == ".metadata":
            return DcpSource(path.parent)
        return SafetensorsSource(path)
    if not path.is_dir():
        raise UsageError(f"{path}: expected a checkpoint, found no such file or folder")
    if (path / ".metadata").is_file():
        return DcpSource(path)
    if (path / "index.json").is_file() or (path / "latest").is_file():
        return SaveSource(path)
    found = sorted(path.glob("*.safetensors.index.json"))
    if not found:
        found = sorted(path.glob("*.safetensors"))
    if len(found) != 1:
        raise UsageError(
            f"{path}: expected one .safetensors file, model.safetensors.index.json, .metadata of "
            f"PyTorch DCP, or a save of fsdp-run, found {len(found)} .safetensors files")
    return open_checkpoint(found[0])
