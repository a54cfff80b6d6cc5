# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rank of this process, if torchrun, mpirun, srun or a script started it."""

from __future__ import annotations

import ctypes

from . import native
from .artifact import Artifact


class Launch:
    """The rank of this process in a run of several processes. docs/how-to/launch.md lists the
    environment variables that define it."""

    def __init__(self, library: native.Library, handle: ctypes.c_void_p):
        self._library, self._handle = library, handle
        options = native.SessionOptions.make()
        self.place(options)
        self.rank = options.rank

    @staticmethod
    def join(artifact: Artifact, device: str, backend: str | None,
             timeout_seconds: float) -> Launch | None:
        """Connects to the other ranks. Returns None if this process was not started by a launcher.

        Raises BadInputError if the number of processes differs from the artifact's number of ranks,
        and RuntimeFailure if the other ranks do not connect in time.
        """
        library = artifact._library
        options = native.LaunchOptions.make(
            program=b"fsdp_mlir", path=str(artifact.path).encode(), device=device.encode(),
            backend=None if backend is None else backend.encode(),
            timeout_seconds=timeout_seconds)
        handle = ctypes.c_void_p()
        library.launch_join(artifact._handle, ctypes.byref(options), ctypes.byref(handle))
        return Launch(library, handle) if handle.value else None

    def place(self, options: native.SessionOptions) -> None:
        """Sets the backend, the rank and the channel in the options of a session."""
        self._library.launch_place(self._handle, ctypes.byref(options))

    def leave(self, status: int, message: str) -> None:
        """Reports to the other ranks how this rank ended."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.launch_leave(handle, status, message.encode(), None)
