# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts a checkpoint to another format. Tensors are read and written in pieces, so that memory
for only a few MiB of values is needed.

Only a DCP tensor that is stored in several chunks is read as a whole. While the new checkpoint is
incomplete, it has a temporary name.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Callable, Iterator, Mapping

import numpy as np

from . import dcp, hugging_face
from .formats import Source, open_checkpoint
from .tensors import FLOATS, CheckpointError, Entry, UsageError, convert_piece

FORMATS = ("safetensors", "sharded", "dcp")
DTYPES = {"f32": "F32", "bf16": "BF16", "f16": "F16"}


def renamed(names: Iterator[str] | list[str], rules: Mapping[str, str | None]) -> dict[str, str]:
    """Applies rename rules to the names of tensors. Returns {name: new name} without the tensors
    that the rules omit.

    A rule maps a name to the new name, or to None if the tensor is to be omitted. A rule from "a.*"
    to "b.*" replaces the prefix "a." of names by "b.". A rule for a whole name has precedence over
    rules for prefixes. If several prefixes match a name, the rule for the longest prefix applies.
    Raises CheckpointError if a rule matches no tensor, or if two tensors would have the same name.
    """
    names = list(names)
    prefixes = sorted((rule for rule in rules if rule.endswith("*")), key=len, reverse=True)
    found: dict[str, str] = {}
    used = set()
    for name in names:
        rule = name if name in rules else next(
            (prefix for prefix in prefixes if name.startswith(prefix[:-1])), None)
        new: str | None = name
        if rule is not None:
            used.add(rule)
            new = rules[rule]
            if new is not None and rule != name:
                new = new[:-1] + name[len(rule) - 1:]
        if new is not None:
            found[name] = new
    if unused := [rule for rule in rules if rule not in used]:
        raise UsageError(f"rename: expected a tensor for '{unused[0]}', found none")
    old_names: dict[str, str] = {}
    for name, new in found.items():
        if not new or new == "__metadata__" or any("\ud800" <= c <= "\udfff" for c in new):
            raise UsageError(f"rename: expected a name for {ascii(name)}, found {ascii(new)}")
        if new in old_names:
            raise UsageError(f"rename: expected one tensor '{new}', found '{old_names[new]}' "
                                  f"and '{name}'")
        old_names[new] = name
    return found


def check_rules(path: str, rules: object) -> Mapping[str, str | None]:
    """Returns the rename rules in a JSON file. Raises CheckpointError if they are not valid."""
    for rule, new in rules.items() if isinstance(rules, dict) else [("", 0)]:
        if new is not None and (not isinstance(new, str) or
                                rule.endswith("*") != new.endswith("*")):
            raise UsageError(f"{path}: expected names and new names or null, both with '*' at "
                                  f"the end or both without, found '{rule}'")
    return rules


def convert(source: str | os.PathLike | Source, target: str | os.PathLike, to: str | None = None,
            max_shard_bytes: int = 5_000_000_000, dtype: str | None = None,
            rename: Mapping[str, str | None] | None = None, verify: bool = True) -> list[Entry]:
    """Writes a checkpoint in another format and returns its tensors.

    ``to`` is the new format: safetensors, sharded or dcp. The default is safetensors if ``target``
    ends in .safetensors, and sharded otherwise. ``dtype`` is the new type (f32, bf16 or f16) of all
    tensors whose type is f64, f32, bf16 or f16. ``rename``: see ``renamed``. If ``verify`` is true,
    all values of the source are checked first. Raises CheckpointError.
    """
    target = pathlib.Path(target)
    if not isinstance(source, Source):
        source = open_checkpoint(source)
    to = to or ("safetensors" if target.suffix == ".safetensors" else "sharded")
    if to not in FORMATS or dtype is not None and dtype not in DTYPES or max_shard_bytes < 1:
        raise UsageError(f"expected a format of {', '.join(FORMATS)}, a dtype of "
                              f"{', '.join(DTYPES)} and a positive size")
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise UsageError(f"{target}: expected no such file and no folder with files; remove it "
                              "or choose another name")
    problem = next(source.problems(), None) if verify else next(iter(source.missing), None)
    if problem:
        raise CheckpointError(problem)
    names = renamed(source.entries, rename or {})
    origins, entries = {}, []
    for name, new in names.items():
        old = source.entries[name]
        word = DTYPES[dtype] if dtype and old.dtype in FLOATS else old.dtype
        origins[new] = old
        entries.append(Entry(new, word, old.shape))
    if not entries:
        raise CheckpointError(f"{source.path}: expected at least one tensor to write, found none")

    def pieces(entry: Entry) -> Iterator[np.ndarray]:
        count = 0
        for piece in source.pieces(origins[entry.name].name):
            converted = convert_piece(piece, origins[entry.name], entry.dtype)
            count += len(converted)
            yield converted
        if count != entry.nbytes:
            raise CheckpointError(f"{source.path}: tensor '{entry.name}': expected {entry.nbytes} "
                                  f"bytes, found {count}")

    metadata = source.metadata or {"format": "pt"}
    writers: dict[str, Callable[[pathlib.Path], None]] = {
        "safetensors": lambda path: hugging_face.write_file(path, entries, pieces, metadata),
        "sharded": lambda path: hugging_face.write_sharded(path, entries, pieces, max_shard_bytes,
                                                           metadata),
        "dcp": lambda path: dcp.write(path, entries, pieces, max_shard_bytes)}
    _write_whole(target, writers[to], to != "safetensors")
    return entries


def _write_whole(target: pathlib.Path, writer: Callable[[pathlib.Path], None],
                 is_folder: bool) -> None:
    """Calls ``writer`` with a temporary path beside the target, and then renames the result."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if is_folder:
            temporary.mkdir()
        writer(temporary)
        os.replace(temporary, target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
