# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of decompositions that the files of this folder register."""

from __future__ import annotations

from typing import Callable

import torch
import torch.fx.traceback

from ..errors import ExportError
from .source import place_in

ENTRIES: list[tuple[str, str, Callable]] = []


def entry(name: str, reason: str):
    """Registers a decomposition of the overload ``aten.<name>``; ``name`` may have another
    namespace."""

    def register(function):
        ENTRIES.append((name, reason, function))
        return function

    return register


def find(name: str):
    """Returns the overload of an entry's name, or None if this process has no such op."""
    library, _, name = name.rpartition("::")
    op, overload = name.split(".")
    packet = getattr(getattr(torch.ops, library or "aten"), op, None)
    return getattr(packet, overload, None)


def refuse(message: str) -> ExportError:
    """Returns an error at the line of the module whose op is being decomposed."""
    return ExportError(message, *place_in("".join(torch.fx.traceback.format_stack())))
