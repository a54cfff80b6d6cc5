# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the package. A message states what is wrong, where, and how to correct it."""

from __future__ import annotations

import dataclasses
import re
from typing import Sequence


class FsdpError(Exception):
    """Base class of the errors that this package raises."""


class ToolNotFoundError(FsdpError):
    """A tool or the runtime library of fsdp-mlir was not found where ``tools`` searches."""


class ExportError(FsdpError):
    """A module cannot be exported.

    ``file`` and ``line`` are a location in the module's own source, or None if it is not known.
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None):
        self.file, self.line = file, line
        where = f"{file}:{line}: " if file else ""
        super().__init__(where + message)


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """A message of the compiler. ``severity`` is "error", "warning", "remark" or "note"."""

    severity: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        return f"{where}{self.severity}: {self.message}"


class CompileError(FsdpError):
    """fsdp-compile refused a model or an option. ``diagnostics`` are the compiler's messages."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()):
        self.diagnostics = tuple(diagnostics)
        super().__init__(message)


class CompileWarning(UserWarning):
    """A warning of the compiler, for example about an option that has no effect."""


class RuntimeFailure(FsdpError):
    """A run failed. ``status`` is the value of fsdprt_status that describes the failure. fsdp-run
    would exit with this value."""

    def __init__(self, message: str, status: int):
        self.status = status
        super().__init__(message)


class BadInputError(RuntimeFailure, ValueError):
    """An argument, a batch or a file does not match the artifact."""


class RankLostError(RuntimeFailure):
    """A rank died, or ended before the run ended."""


class RankHungError(RuntimeFailure):
    """A rank made no progress within the time limit."""


class NonFiniteError(RuntimeFailure):
    """A loss or gradient norm is not finite. The step changed no parameter."""


class LookupRangeError(RuntimeFailure):
    """A checked lookup read an id outside its table. The step changed no parameter."""


_DIAGNOSTIC = re.compile(
    r"^(?:(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): |(?:[\w-]+: )?(?:loc\([^)]*\): )?)"
    r"(?P<severity>error|warning|remark|note): (?P<message>.*)$")


def parse_diagnostics(text: str) -> list[Diagnostic]:
    """Returns the diagnostics in the stderr of a tool. Lines that quote source code are skipped."""
    found: list[Diagnostic] = []
    for line in text.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match:
            file = match["file"]
            found.append(Diagnostic(match["severity"], match["message"], file,
                                    int(match["line"]) if file else None,
                                    int(match["column"]) if file else None))
    return found
