# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's C interface (``fsdprt/fsdprt.h``) by ctypes.

The structures have the same members as the structures of the C header. ``tests/test_native.py``
compares the names and types of their members. A call that fails raises the exception for the
returned status.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import (POINTER, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint32, c_uint64, c_void_p)

import numpy as np

from . import errors, tools

ABI_MAJOR = 2
REFERENCE = 0xFFFFFFFF

# fsdprt_status
OK, FAILED, BAD_INPUT, LOST, HUNG, ABANDONED = range(6)
_EXCEPTIONS = {BAD_INPUT: errors.BadInputError, LOST: errors.RankLostError,
               HUNG: errors.RankHungError}

# The name and the NumPy type of each fsdprt_dtype. NumPy has no bf16, so bf16 is stored as uint16.
DTYPES = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1"]
_NUMPY = [np.float64, np.float32, np.float16, np.uint16, np.int64, np.int32, np.int16, np.int8,
          np.bool_]
BF16 = 3

# fsdprt_state_role
ROLES = ["parameter", "first_moment", "second_moment", "momentum", "master"]
# fsdprt_input_role
INPUT_ROLES = ["tokens", "targets", "other"]

# Indices of the values in the step block of a session.
BLOCK_SIZE = 16
(BLOCK_LR, BLOCK_STEP, BLOCK_LOSS_SCALE, BLOCK_GROWTH, BLOCK_CLIP, BLOCK_TOKENS, BLOCK_FINITE,
 BLOCK_LOSS, BLOCK_GRAD_NORM, BLOCK_SKIPPED, BLOCK_LOOKUPS, BLOCK_LOOKUP_NUMBER,
 BLOCK_LOOKUP_VALUE) = range(13)


def refuse(message: str):
    """Raises BadInputError with the status BAD_INPUT."""
    raise errors.BadInputError(message, BAD_INPUT)


def numpy_dtype(dtype: int) -> np.dtype:
    """Returns the NumPy type of an fsdprt_dtype. A bf16 is represented by its 16 bits."""
    return np.dtype(_NUMPY[dtype])


class _Sized(ctypes.Structure):
    """A structure whose first member is the structure's size in bytes."""

    @classmethod
    def make(cls, **values):
        made = cls()
        made.struct_size = ctypes.sizeof(cls)
        for name, value in values.items():
            setattr(made, name, value)
        return made


class Error(_Sized):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("message", c_char * 2048)]


class ArtifactInfo(_Sized):
    _fields_ = [("struct_size", c_size_t), ("compiler", c_char_p), ("source", c_char_p),
                ("target", c_char_p), ("optimizer", c_char_p), ("ranks", c_uint64),
                ("params", c_uint64), ("parameter_elements", c_uint64),
                ("tokens_per_rank", c_uint64), ("arena_bytes", c_uint64),
                ("reference_arena_bytes", c_uint64), ("image_bytes", c_uint64),
                ("threads_per_rank", c_uint32), ("workers", c_uint32), ("lr", c_double),
                ("sha256", c_uint8 * 32), ("seed", c_uint64), ("host_bytes", c_uint64),
                ("file_bytes", c_uint64), ("constants", c_uint64), ("loss_scale", c_uint32),
                ("snapshot_bytes", c_uint64), ("data_ranks", c_uint64)]


class ParamInfo(_Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("unit", c_char_p),
                ("dtype", c_int32), ("rank", c_uint32), ("shape", POINTER(c_uint64)),
                ("elements", c_uint64), ("trainable", c_int32), ("has_values", c_int32),
                ("unit_index", c_uint64), ("unit_offset", c_uint64), ("split_dim", c_uint32),
                ("num_split_blocks", c_uint32), ("split_blocks", POINTER(c_uint64))]


class InputInfo(_Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("role", c_int32),
                ("dtype", c_int32), ("rank", c_uint32), ("shape", POINTER(c_uint64)),
                ("bytes", c_uint64), ("micro_batches", c_uint32), ("limit", c_uint64),
                ("extra_ids", POINTER(c_int64)), ("num_extra_ids", c_uint64)]


class SessionOptions(_Sized):
    _fields_ = [("struct_size", c_size_t), ("ranks", c_uint64), ("threads_per_rank", c_uint32),
                ("with_reference", c_uint32), ("device", c_char_p), ("backend", c_char_p),
                ("timeout_seconds", c_double), ("seed", c_uint64), ("profile", c_uint32),
                ("trace_runs", c_uint32), ("link_bytes_per_second", c_double), ("rank", c_uint32),
                ("channel", c_int32), ("steps_before", c_uint64), ("meeting_seconds", c_double),
                ("agreement", c_char_p), ("own_sums", c_uint32), ("ranks_on_machine", c_uint32),
                ("control", c_char_p), ("local_rank", c_uint32), ("offload_directory", c_char_p),
                ("cuda_graph", c_uint32), ("gemm", c_char_p), ("restrict_calls", c_uint32),
                ("heartbeat_seconds", c_double), ("nccl_windows", c_char_p),
                ("nccl_cta_policy", c_char_p), ("nccl_max_ctas", c_uint32)]


class SessionInfo(_Sized):
    _fields_ = [("struct_size", c_size_t), ("ranks", c_uint64), ("threads_per_rank", c_uint32),
                ("arena_bytes", c_uint64), ("reference_arena_bytes", c_uint64),
                ("peak_bytes", c_uint64), ("collective_bytes", c_uint64 * 4),
                ("first_rank", c_uint32), ("local_ranks", c_uint32), ("processes", c_uint32),
                ("meeting", c_char_p), ("file_bytes", c_uint64), ("file_is_direct", c_uint32),
                ("shift_bytes", c_uint64)]


class Comparison(_Sized):
    _fields_ = [("struct_size", c_size_t), ("equal", c_int32), ("parameter_elements", c_uint64),
                ("optimizer_elements", c_uint64), ("rank", c_uint32), ("param", c_uint64),
                ("element", c_uint64), ("role", c_int32), ("sharded", c_double),
                ("unsharded", c_double)]


class LaunchOptions(_Sized):
    _fields_ = [("struct_size", c_size_t), ("program", c_char_p), ("path", c_char_p),
                ("device", c_char_p), ("backend", c_char_p), ("rendezvous_seconds", c_double),
                ("heartbeat_seconds", c_double), ("timeout_seconds", c_double)]


class Resumed(_Sized):
    _fields_ = [("struct_size", c_size_t), ("step", c_uint64), ("seed", c_uint64),
                ("folder", c_char * 4096), ("fallback", c_char * 1024), ("remark", c_char * 1024)]


STRUCTS = {"fsdprt_error": Error, "fsdprt_artifact_info": ArtifactInfo,
           "fsdprt_param_info": ParamInfo, "fsdprt_input_info": InputInfo,
           "fsdprt_session_options": SessionOptions, "fsdprt_session_info": SessionInfo,
           "fsdprt_comparison": Comparison, "fsdprt_launch_options": LaunchOptions,
           "fsdprt_resumed": Resumed}

_ERROR = POINTER(Error)
# Functions that return a status, with the types of all arguments except the last. The last argument
# receives the error.
_CALLS = {
    "fsdprt_artifact_open": [c_char_p, POINTER(c_void_p)],
    "fsdprt_session_create": [c_void_p, POINTER(SessionOptions), POINTER(c_void_p)],
    "fsdprt_session_run": [c_void_p, c_char_p],
    "fsdprt_session_find_nonfinite": [c_void_p, c_char_p, c_char_p, c_size_t],
    "fsdprt_session_write_input": [c_void_p, c_uint32, c_uint64, c_uint32, c_void_p, c_size_t],
    "fsdprt_session_read_block": [c_void_p, c_uint32, POINTER(c_float)],
    "fsdprt_session_write_block": [c_void_p, c_uint32, POINTER(c_float)],
    "fsdprt_session_read_param": [c_void_p, c_uint32, c_uint64, c_int32, c_uint64, c_uint64,
                                  c_void_p, c_size_t],
    "fsdprt_session_write_param": [c_void_p, c_uint64, c_int32, c_uint64, c_uint64, c_void_p,
                                   c_int32],
    "fsdprt_session_exchange": [c_void_p, c_void_p, c_size_t, c_void_p],
    "fsdprt_session_collect": [c_void_p, c_uint32, c_void_p, c_size_t, c_void_p],
    "fsdprt_session_leave": [c_void_p],
    "fsdprt_session_fail": [c_void_p, c_int32],
    "fsdprt_session_compare": [c_void_p, POINTER(Comparison)],
    "fsdprt_launch_join": [c_void_p, POINTER(LaunchOptions), POINTER(c_void_p)],
    "fsdprt_saves_resume": [c_void_p, c_void_p, c_char_p, c_char_p, c_int32, POINTER(Resumed)],
    "fsdprt_saver_open": [c_void_p, c_void_p, c_char_p, POINTER(Resumed), c_uint64,
                          POINTER(c_void_p)],
    "fsdprt_saver_save": [c_void_p, c_void_p, c_uint64, c_uint64],
    "fsdprt_saver_start": [c_void_p, c_void_p, c_uint64, c_uint64],
    "fsdprt_saver_poll": [c_void_p, c_void_p, POINTER(c_int32)],
    "fsdprt_saver_wait": [c_void_p, c_void_p],
}
# Functions without an error argument, with the types of their result and their arguments.
_PLAIN = {
    "fsdprt_abi_version": (c_uint32, []),
    "fsdprt_version": (c_char_p, []),
    "fsdprt_artifact_close": (None, [c_void_p]),
    "fsdprt_artifact_get_info": (None, [c_void_p, POINTER(ArtifactInfo)]),
    "fsdprt_artifact_has_program": (c_int32, [c_void_p, c_char_p]),
    "fsdprt_artifact_get_param": (c_int32, [c_void_p, c_uint64, POINTER(ParamInfo)]),
    "fsdprt_artifact_get_input": (c_int32, [c_void_p, c_char_p, c_uint64, POINTER(InputInfo)]),
    "fsdprt_launch_place": (None, [c_void_p, POINTER(SessionOptions)]),
    "fsdprt_launch_leave": (None, [c_void_p, c_int32, c_char_p, _ERROR]),
    "fsdprt_saver_close": (None, [c_void_p]),
    "fsdprt_session_destroy": (None, [c_void_p]),
    "fsdprt_session_get_info": (None, [c_void_p, POINTER(SessionInfo)]),
    "fsdprt_session_get_state": (c_int32, [c_void_p, c_uint64, c_int32, POINTER(c_int32)]),
}


def _raise(error: Error) -> None:
    message = error.message.decode(errors="replace")
    raise _EXCEPTIONS.get(error.status, errors.RuntimeFailure)(message, error.status)


class Library:
    """The loaded runtime library. The function ``fsdprt_x`` is the attribute ``x`` of this object.

    All calls of a Library share one buffer for errors, so only one thread may call it at a time.
    The C interface has the same requirement for calls with the same session.
    """

    def __init__(self, path: str):
        self.path = path
        self._dll = ctypes.CDLL(path)
        for name, (result, arguments) in _PLAIN.items():
            function = getattr(self._dll, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("fsdprt_"), function)
        found = self.abi_version()
        if found >> 16 != ABI_MAJOR:
            raise errors.ToolNotFoundError(
                f"{path}: expected a library of interface {ABI_MAJOR}.x, found {found >> 16}."
                f"{found & 0xffff}; install the package and the tools of one version")
        self._error = Error.make()
        for name, arguments in _CALLS.items():
            function = getattr(self._dll, name)
            function.restype, function.argtypes = c_int32, [*arguments, _ERROR]
            setattr(self, name.removeprefix("fsdprt_"), self._checked(function))

    def _checked(self, function):
        error, reference = self._error, ctypes.byref(self._error)

        def call(*arguments):
            if function(*arguments, reference) != OK:
                _raise(error)
        return call


@functools.cache
def library() -> Library:
    """Returns the runtime library. The first call loads it. Raises ToolNotFoundError."""
    return Library(tools.find_library())
