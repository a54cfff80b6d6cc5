# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of decompositions, which the other files of this folder register."""

from __future__ import annotations

from typing import Callable

import torch
import torch.fx.traceback

from ..errors import ExportError
from .source import place_in

ENTRIES: list[tuple[str, str, Callable]] = []


def entry(name: str, reason: str):
    """Registers a function as the decomposition of an overload. The overload is ``aten.<name>``; to
    select another namespace, ``name`` begins with the namespace and "::"."""

    def register(function):
        ENTRIES.append((name, reason, function))
        return function

    return register


def find(name: str):
    """Returns the overload of torch that an entry names, or None if torch does not have this op."""
    library, _, name = name.rpartition("::")
    op, overload = name.split(".")
    packet = getattr(getattr(torch.ops, library or "aten"), op, None)
    return getattr(packet, overload, None)


def refuse(message: str) -> ExportError:
    """Returns an error at the source line of the op that is being decomposed."""
    return ExportError(message, *place_in("".join(torch.fx.traceback.format_stack())))
