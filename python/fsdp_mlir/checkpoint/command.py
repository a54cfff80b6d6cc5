# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inspects, verifies and converts checkpoints.

PATH is a .safetensors file, model.safetensors.index.json, a folder of PyTorch DCP
(torch.distributed.checkpoint), a save of fsdp-run, a folder of saves, or a folder that contains one
of these. Pickles are read as data, and no code in them is executed.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import re
import sys

from .conversion import DTYPES, FORMATS, check_rules, convert
from .formats import open_checkpoint, read_bytes, read_json
from .tensors import CheckpointError, UsageError

_CODES = "Exit codes: 0 success, 1 the checkpoint is damaged or cannot be converted, 2 bad usage."
_CONVERT = """\
Writes the tensors of FROM to TO, which must not exist. Memory is that of a few MiB of values, or
of one tensor if DCP has it in several chunks.

examples:
  fsdp-ckpt convert run1 model.safetensors
  fsdp-ckpt convert run1 llama --to=sharded --dtype=bf16
  fsdp-ckpt convert dcp-folder model.safetensors --rename=names.json

names.json holds an object of names and new names. null leaves a tensor out, and * at the end of
both stands for the rest of a name: {"model.*": "*", "optimizer.*": null}
"""
_UNITS = {"": 1, "K": 10 ** 3, "M": 10 ** 6, "G": 10 ** 9, "T": 10 ** 12, "KI": 1 << 10,
          "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40}


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})([KMGT]I?)?B?", text.upper())
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"expected bytes such as 5G or 512Mi, found '{text}'")
    return int(match[1]) * _UNITS[match[2] or ""]


def _inspect(options: argparse.Namespace) -> int:
    source = open_checkpoint(options.path)
    entries = source.entries.values()
    types = collections.Counter(entry.dtype.lower() for entry in entries)
    print(f"{source.path}: {source.format}, {len(entries)} tensors ("
          f"{', '.join(f'{count} {name}' for name, count in types.items()) or 'none'}), "
          f"{sum(entry.elements for entry in entries)} elements, "
          f"{sum(entry.nbytes for entry in entries)} bytes")
    for line in source.describe():
        print(f"  {line}")
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        shape = "[" + ", ".join(map(str, entry.shape)) + "]"
        print(f"{entry.name:{width}}  {entry.dtype.lower():5} {shape}  {entry.nbytes} bytes")
    return 0


def _verify(options: argparse.Namespace) -> int:
    source = open_checkpoint(options.path)
    problems = 0
    for problem in source.problems():
        problems += 1
        print(f"fsdp-ckpt: error: {problem}", file=sys.stderr)
    for warning in source.warnings():
        print(f"fsdp-ckpt: warning: {warning}", file=sys.stderr)
    if problems:
        return 1
    print(f"{source.path}: {source.format}, {len(source.entries)} tensors are whole")
    return 0


def _convert(options: argparse.Namespace) -> int:
    rename = None
    if options.rename:
        path = pathlib.Path(options.rename)
        rename = check_rules(options.rename, read_json(path, read_bytes(path)))
    source = open_checkpoint(options.source)
    for line in source.describe():
        if line.startswith("no tensor"):
            print(f"fsdp-ckpt: note: {line}", file=sys.stderr)
    entries = convert(source, options.target, options.to, options.max_shard_bytes, options.dtype,
                      rename, options.verify)
    print(f"wrote {options.target}: {len(entries)} tensors, "
          f"{sum(entry.nbytes for entry in entries)} bytes")
    return 0


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Adds the commands inspect, verify and convert to an argument parser."""
    parser.description, parser.epilog = __doc__, _CODES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = commands.add_parser("inspect", help="print format, tensors, types, shapes and bytes")
    inspect.add_argument("path", metavar="PATH")
    inspect.set_defaults(run=_inspect)
    verify = commands.add_parser(
        "verify", help="check sizes, offsets, hashes, and tensors against the index")
    verify.add_argument("path", metavar="PATH")
    verify.set_defaults(run=_verify)
    to = commands.add_parser("convert", help="write tensors in another format", epilog=_CODES,
                             description=_CONVERT,
                             formatter_class=argparse.RawDescriptionHelpFormatter)
    to.add_argument("source", metavar="FROM")
    to.add_argument("target", metavar="TO")
    to.add_argument("--to", choices=FORMATS,
                    help="format (default safetensors if TO ends so, else sharded)")
    to.add_argument("--max-shard-bytes", type=_bytes, default=5 * 10 ** 9, metavar="N",
                    help="largest file of sharded and dcp (default 5G; K, M, G, Ki, Mi, Gi)")
    to.add_argument("--dtype", choices=list(DTYPES),
                    help="type of all float tensors, rounded to nearest (default: as they are)")
    to.add_argument("--rename", metavar="FILE.json", help="names and new names")
    to.add_argument("--no-verify", dest="verify", action="store_false",
                    help="convert without a check of hashes first")
    to.set_defaults(run=_convert)


def run(options: argparse.Namespace) -> int:
    """Runs the command that the user chose, and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):  # A name may have characters that cannot be printed.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return options.run(options)
    except CheckpointError as error:
        print(f"fsdp-ckpt: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except (RecursionError, MemoryError) as error:
        print(f"fsdp-ckpt: error: {type(error).__name__}: the checkpoint is nested too deeply or "
              "larger than the memory", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"fsdp-ckpt: error: {error.filename or 'file'}: {error.strerror or error}",
              file=sys.stderr)
        return 1


def main(arguments: list[str] | None = None) -> int:
    """Runs fsdp-ckpt and returns the exit code."""
    parser = argparse.ArgumentParser(prog="fsdp-ckpt")
    add_commands(parser)
    return run(parser.parse_args(arguments))
