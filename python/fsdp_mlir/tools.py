# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the command-line tools and the runtime library, libfsdprt.so.

The functions search in this order:

1. ``FSDP_MLIR_HOME``: an installation, or a build folder (its ``bin/`` and ``lib/``);
2. the package itself (``fsdp_mlir/native``), in a wheel that has the tools;
3. ``PATH`` for tools. The library is searched in the folder ``lib`` beside a ``bin`` of ``PATH``
   that contains the tools.
"""

from __future__ import annotations

import os
import pathlib
import shutil

from .errors import ToolNotFoundError

_PACKAGE = pathlib.Path(__file__).resolve().parent
_ADVICE = ("set FSDP_MLIR_HOME to an installation or a build folder of fsdp-mlir, put its bin "
           "folder on PATH, or install a wheel with the tools")


def homes() -> list[pathlib.Path]:
    """Returns the folders in which ``bin`` and ``lib`` are searched, in the order of the search."""
    found = []
    if home := os.environ.get("FSDP_MLIR_HOME"):
        found.append(pathlib.Path(home))
    found.append(_PACKAGE / "native")
    for tool in ("fsdp-run", "fsdp-compile"):
        if path := shutil.which(tool):
            found.append(pathlib.Path(path).resolve().parent.parent)
    return found


def find_tool(name: str) -> str:
    """Returns the path of a tool such as ``fsdp-compile``.

    Raises ToolNotFoundError if no searched folder has the tool.
    """
    for home in homes():
        path = home / "bin" / name
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    raise ToolNotFoundError(f"{name} was not found; {_ADVICE}")


def find_library() -> str:
    """Returns the path of ``libfsdprt.so``. Raises ToolNotFoundError if the file is not found."""
    for home in homes():
        path = home / "lib" / "libfsdprt.so"
        if path.is_file():
            return str(path)
    raise ToolNotFoundError(f"libfsdprt.so was not found; {_ADVICE}")
