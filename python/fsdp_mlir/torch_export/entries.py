# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of decompositions that the files of this folder register."""

from __future__ import annotations

from typing import Callable

ENTRIES: list[tuple[str, str, Callable]] = []


def entry(name: str, reason: str):
    """Registers a decomposition of the overload ``aten.<name>``, if this torch has it."""

    def register(function):
        ENTRIES.append((name, reason, function))
        return function

    return register
