# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds source locations in the code of the exported module."""

from __future__ import annotations

import re

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.M)


def place(node) -> tuple[str | None, int | None]:
    """Returns the file and line from which a node was traced, or (None, None)."""
    return place_in(node.meta.get("stack_trace") or node.stack_trace or "")


def place_in(trace: str) -> tuple[str | None, int | None]:
    """Returns the file and line of the innermost frame of a stack trace outside torch and this
    package."""
    own = [frame for frame in _FRAME.findall(trace) if "/fsdp_mlir/" not in frame[0]]
    for file, line in reversed(own):
        if "/torch/" not in file:
            return file, int(line)
    return (own[-1][0], int(own[-1][1])) if own else (None, None)
