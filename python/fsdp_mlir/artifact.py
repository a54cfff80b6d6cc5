# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts, which are .fsdp files: their parameters, inputs and programs."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import pathlib

from . import native


@dataclasses.dataclass(frozen=True)
class StepInput:
    """A batch input of a program. ``shape`` is the shape of the input for one micro-batch of one
    rank."""

    index: int
    name: str
    role: str
    dtype: int
    shape: tuple[int, ...]
    micro_batches: int
    limit: int


@dataclasses.dataclass(frozen=True)
class StepParameter:
    """A parameter of an artifact. ``dtype`` is an index into ``native.DTYPES``."""

    index: int
    name: str
    unit: str
    dtype: int
    shape: tuple[int, ...]
    trainable: bool
    has_values: bool


class Artifact:
    """An open artifact. Opening an artifact checks the whole file."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        self._handle = None
        self._library = native.library()
        handle = ctypes.c_void_p()
        self._library.artifact_open(str(path).encode(), ctypes.byref(handle))
        self._handle = handle
        self._info = native.ArtifactInfo.make()
        self._library.artifact_get_info(handle, ctypes.byref(self._info))

    def __del__(self):
        if getattr(self, "_handle", None):
            self._library.artifact_close(self._handle)
            self._handle = None

    @property
    def ranks(self) -> int:
        """Number of ranks: the product of the mesh's axes."""
        return self._info.ranks

    @property
    def arena_bytes(self) -> int:
        """Bytes of a rank's arena, which contains all memory that a step uses."""
        return self._info.arena_bytes

    @property
    def tokens_per_step(self) -> int:
        """Number of tokens of all ranks in one step, or 0 if the model has no input "tokens"."""
        return self._info.tokens_per_rank * self._info.data_ranks

    @property
    def lr(self) -> float:
        """Learning rate of a step if the caller has not set ``lr``."""
        return self._info.lr

    @property
    def target(self) -> str:
        """CPU or GPU for which the kernels are compiled."""
        return self._info.target.decode()

    def has_program(self, name: str) -> bool:
        """Returns true if the artifact has the program ``name``, such as "eval" or "reference"."""
        return bool(self._library.artifact_has_program(self._handle, name.encode()))

    def inputs_of(self, program: str) -> list[StepInput]:
        """Returns the batch inputs of a program, in the order of the model's arguments."""
        found = []
        info = native.InputInfo.make()
        while self._library.artifact_get_input(self._handle, program.encode(), len(found),
                                               ctypes.byref(info)) == native.OK:
            shape = tuple(info.shape[i] for i in range(info.rank))
            if info.micro_batches > 1:
                shape = shape[1:]
            found.append(StepInput(len(found), info.name.decode(), native.INPUT_ROLES[info.role],
                                   info.dtype, shape, info.micro_batches, info.limit))
            info = native.InputInfo.make()
        return found

    @functools.cached_property
    def inputs(self) -> list[StepInput]:
        """Batch inputs of the program "step", in the order of the model's arguments."""
        return self.inputs_of("step")

    @functools.cached_property
    def parameters(self) -> list[StepParameter]:
        """All parameters, in the order of the model's arguments."""
        found = []
        for index in range(self._info.params):
            info = native.ParamInfo.make()
            self._library.artifact_get_param(self._handle, index, ctypes.byref(info))
            shape = tuple(info.shape[i] for i in range(info.rank))
            found.append(StepParameter(index, info.name.decode(), info.unit.decode(), info.dtype,
                                       shape, bool(info.trainable), bool(info.has_values)))
        return found
