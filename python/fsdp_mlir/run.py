# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training run: ranks, their memory, and one call per step."""

from __future__ import annotations

import ctypes
import os
import pathlib
import warnings
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from . import native, safetensors
from .arrays import as_bf16, widened
from .artifact import Artifact, StepParameter
from .batch import BoundInput, by_input
from .errors import NonFiniteError, RuntimeFailure
from .launch import Launch
from .metrics import Metrics, NonFiniteLimit
from .native import refuse
from .weights import checked_values, digest, dtype_number, initial_values, named_arrays

_BLOCK = ctypes.c_float * native.BLOCK_SIZE


class Run:
    """A training run of the ranks of an artifact. It is a context manager.

    ``ranks``: the number of ranks, which must be the size of the mesh (the default). If no launcher
    started the process, the ranks are threads of this process. If torchrun, mpirun or srun started
    it, this process has one rank, and all processes must call the same methods in the same order.

    ``weights``: the initial values: a torch module, a mapping of names to arrays, or the path of a
    .safetensors file or index. "model" means the values of the exported model, and is the default
    if the model has values. None selects the values that the artifact contains, or, if it contains
    none, random values from ``seed``.

    ``resume``: a save or a folder of saves, from which the run loads the states. ``weights`` must
    then be None or "model". A different mesh, strategy or storage of states causes a warning.

    ``on_nonfinite``: what ``step`` does if loss or gradient norm is not finite. Such a step changes
    no parameter. "raise" raises NonFiniteError, and "skip" returns the metrics. With a number N,
    NonFiniteError is raised after N such steps in a row. The default is 50 for a model with a loss
    scale, and otherwise "raise".

    ``check_against_unsharded``: an unsharded rank trains beside the ranks. A step raises
    RuntimeFailure unless the unsharded rank has the same loss and gradient norm, bit for bit.
    ``compare()`` compares all values.

    The other arguments are options of fsdp-run: ``device`` (cpu or cuda), ``backend``, ``gemm``,
    ``threads_per_rank``, ``seed``, ``timeout_seconds``, ``offload_directory``, ``cuda_graph``.

    Raises BadInputError before memory is allocated if an argument does not fit the artifact.
    """

    def __init__(self, artifact: Artifact, ranks: int | None = None, weights: Any = None, *,
                 resume: str | os.PathLike | None = None, device: str = "cpu",
                 backend: str | None = None, threads_per_rank: int = 0, seed: int | None = None,
                 timeout_seconds: float = 60.0, on_nonfinite: str | int | None = None,
                 check_against_unsharded: bool = False,
                 offload_directory: str | os.PathLike | None = None, cuda_graph: bool = False,
                 gemm: str | None = None):
        self.artifact = artifact
        self.steps = 0
        self._library, self._session, self._launch = artifact._library, None, None
        self._savers: dict[str, ctypes.c_void_p] = {}
        self._saving: ctypes.c_void_p | None = None  # the saver that is writing a save, or None
        self._checks = check_against_unsharded
        self._lr, self._failed, self._resumed = None, False, None
        if ranks is not None and ranks != artifact.ranks:
            refuse(f"ranks: expected {artifact.ranks}, the mesh that {artifact.path} was compiled "
                    f"for, found {ranks}; compile with mesh=\"shard={ranks}\"")
        if resume is not None and weights not in (None, "model"):
            refuse("weights: a run that resumes takes its parameters from the save; leave it out")
        self._seed = artifact._info.seed if seed is None else seed
        self._values = None if resume is not None else initial_values(artifact, weights)
        self._limit = NonFiniteLimit(on_nonfinite)
        self._launch = Launch.join(artifact, device, backend, timeout_seconds)
        try:
            self._create(device, backend, threads_per_rank, timeout_seconds, offload_directory,
                         cuda_graph, gemm, resume)
            self._start(resume)
        except BaseException as error:
            self._end(error)
            raise

    def _create(self, device, backend, threads_per_rank, timeout_seconds, offload_directory,
                cuda_graph, gemm, resume):
        encode = lambda text: None if text is None else os.fspath(text).encode()
        agreement = self._agreement(resume)
        options = native.SessionOptions.make(
            threads_per_rank=threads_per_rank, with_reference=self._checks and self.is_root,
            device=device.encode(), backend=encode(backend), timeout_seconds=timeout_seconds,
            seed=self._seed, offload_directory=encode(offload_directory), cuda_graph=cuda_graph,
            gemm=encode(gemm), agreement=agreement, channel=-1)
        if self._launch:
            self._launch.place(options)
        handle = ctypes.c_void_p()
        self._library.session_create(self.artifact._handle, ctypes.byref(options),
                                     ctypes.byref(handle))
        self._session = handle
        info = self.info()
        self.local_ranks = range(info.first_rank, info.first_rank + info.local_ranks)
        self.processes = info.processes
        self._blocks = {rank: _BLOCK() for rank in self.local_ranks}
        self._inputs = {name: self._bind(name) for name in ("step", "eval")
                        if self.artifact.has_program(name)}
        if self._checks and self.is_root:
            self._inputs["reference"] = self._bind("reference")
            self._blocks[native.REFERENCE] = _BLOCK()

    def _agreement(self, resume) -> bytes | None:
        """Returns lines of name=value whose values must be equal in all processes."""
        if not self._launch:
            return None
        lines = [f"seed={self._seed}", f"check={int(self._checks)}",
                 f"resume={'' if resume is None else os.path.basename(os.fspath(resume))}"]
        lines += [] if self._values is None else [f"weights={digest(self._values)}"]
        return "\n".join(lines).encode()

    def _start(self, resume):
        self._library.session_run(self._session, b"init")
        if self._checks and self.is_root:
            self._library.session_run(self._session, b"reference_init")
        if resume is not None:
            found = native.Resumed.make()
            self._library.saves_resume(self.artifact._handle, self._session,
                                       os.fspath(resume).encode(),
                                       str(self.artifact.path).encode(),
                                       int(self._checks and self.is_root), ctypes.byref(found))
            self.steps, self._seed, self._resumed = found.step, found.seed, found
            self._lr = float(self._read_block(self.local_ranks[0])[native.BLOCK_LR])
            if found.fallback:
                warnings.warn(f"{found.fallback.decode()}; going on from {found.folder.decode()}, "
                              "the newest save that is whole", stacklevel=4)
            if found.remark and self.is_root:
                warnings.warn(f"{found.folder.decode()}: {found.remark.decode()}", stacklevel=4)
        elif self._values is not None:
            self.load_state_dict(self._values, strict=False)
            self._values = None

    def _bind(self, program: str) -> list[BoundInput]:
        ranks = [native.REFERENCE] if program == "reference" else list(self.local_ranks)
        readers = self.artifact.ranks // self.artifact._info.data_ranks
        if readers > 1 and self.processes > 1:
            refuse(f"{self.artifact.path}: a mesh with an axis 'tensor' or 'context' needs all ranks in one "
                    "process, because its ranks read the same examples; start fsdp-run instead")
        if program == "reference":
            readers = 1
        return [BoundInput(one, ranks, readers) for one in self.artifact.inputs_of(program)]

    @property
    def is_root(self) -> bool:
        """True in the process of rank 0. Only this process should print and write files."""
        return self._launch is None or self._launch.rank == 0

    def info(self) -> native.SessionInfo:
        """Returns the runtime's counters, such as arena_bytes, peak_bytes and collective_bytes."""
        info = native.SessionInfo.make()
        self._library.session_get_info(self._open(), ctypes.byref(info))
        return info

    def _open(self):
        if self._session is None:
            raise RuntimeFailure("the run is closed", native.FAILED)
        if self._failed:
            raise RuntimeFailure("the run has failed before; start another one", native.FAILED)
        return self._session

    def step(self, batch: Any, lr: float | None = None) -> Metrics:
        """Runs one optimizer step on ``batch`` and returns its metrics.

        ``batch``: arrays of NumPy, PyTorch or JAX, by name or in the order of the model's inputs,
        or a single array if there is one input. The leading dimension counts the examples of all
        ranks of this process, beginning with rank 0. The examples of a rank begin with micro-batch
        0. Ranks of the axis ``tensor`` read the same examples, which the batch contains once. A
        contiguous array that has the input's type is not copied.

        ``lr``: learning rate from this step on. By default a step has the rate of the previous
        step. If the first step has no ``lr``, it uses the rate of the resumed save, or the rate of
        the artifact if no save was resumed.

        Raises BadInputError for a batch of another shape or type, or for ids out of range, without
        changing any state. Raises NonFiniteError as ``on_nonfinite`` requires. If an earlier
        ``save(wait=False)`` has failed, raises RuntimeFailure instead of running the step.
        """
        session = self._open()
        self._poll_save()
        arrays = by_input(batch, self._inputs["step"])
        for bound, array in zip(self._inputs["step"], arrays):
            bound.write(self._library, session, array)
        if self._checks:
            self._write_reference(arrays)
        self._set_rate(lr)
        before = self._save_blocks()
        self._run("step")
        if self._checks:
            self._run_reference()
        self.steps += 1
        return self._metrics(before)

    def evaluate(self, batch: Any) -> float:
        """Returns the mean loss over ``batch`` in all ranks. The evaluation neither trains nor
        applies dropout.

        Raises BadInputError if the artifact has no program 'eval'.
        """
        session = self._open()
        if "eval" not in self._inputs:
            refuse(f"{self.artifact.path}: has no program 'eval'")
        for bound, array in zip(self._inputs["eval"], by_input(batch, self._inputs["eval"])):
            bound.write(self._library, session, array)
        before = self._save_blocks()
        self._run("eval")
        loss = self._read_block(self.local_ranks[0])[native.BLOCK_LOSS]
        for rank, block in before.items():
            self._library.session_write_block(session, rank, block)
        return float(loss)

    def _run(self, program: str) -> None:
        try:
            self._library.session_run(self._session, program.encode())
        except RuntimeFailure as error:
            self._end(error)
            raise

    def _read_block(self, rank: int):
        block = self._blocks[rank]
        self._library.session_read_block(self._session, rank, block)
        return block

    def _save_blocks(self) -> dict[int, Any]:
        return {rank: _BLOCK(*self._read_block(rank)) for rank in self.local_ranks}

    def _set_rate(self, lr: float | None) -> None:
        if lr is None:
            lr = self._lr if self._lr is not None else self.artifact.lr
        lr = float(lr)
        if lr == self._lr:
            return
        if not lr >= 0 or lr == float("inf"):
            refuse(f"lr: expected a finite number of at least 0, found {lr}")
        for rank in self._blocks:
            block = self._read_block(rank)
            block[native.BLOCK_LR] = lr
            self._library.session_write_block(self._session, rank, block)
        self._lr = lr

    def _metrics(self, before: dict[int, Any]) -> Metrics:
        block = self._read_block(self.local_ranks[0])
        finite = block[native.BLOCK_FINITE] != 0
        metrics = Metrics(self.steps, block[native.BLOCK_LOSS], block[native.BLOCK_GRAD_NORM],
                          self._lr, self.artifact.tokens_per_step, finite,
                          block[native.BLOCK_LOSS_SCALE])
        adapts = block[native.BLOCK_LOSS_SCALE] != 0 and block[native.BLOCK_GROWTH] >= 0
        if self._limit.is_reached(finite, adapts):
            self._fail_nonfinite(before)
        return metrics

    def _fail_nonfinite(self, before: dict[int, Any]) -> None:
        for rank, block in before.items():
            self._library.session_write_block(self._session, rank, block)
        origin = ctypes.create_string_buffer(512)
        self._library.session_find_nonfinite(self._session, b"step", origin, len(origin))
        where = f"; {origin.value.decode()}" if origin.value else ""
        error = NonFiniteError(
            f"step {self.steps}: loss or gradient norm is not finite, no parameter was changed"
            f"{where}; lower lr, clip gradients, look at the inputs and initial values, or pass "
            "on_nonfinite=\"skip\"", native.FAILED)
        self._end(error)
        raise error

    def _write_reference(self, arrays: Sequence[np.ndarray]) -> None:
        if self.processes > 1:
            arrays = self._collect(arrays)
        for bound, array in zip(self._inputs.get("reference", ()), arrays):
            bound.write(self._library, self._session, array)

    def _collect(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Gathers the batches of all processes in the process of rank 0, ordered by rank."""
        whole = []
        for array in arrays:
            into = np.empty((self.processes, *array.shape), array.dtype)
            for rank in range(self.processes):
                self._library.session_collect(self._session, rank, array.ctypes.data, array.nbytes,
                                              into[rank].ctypes.data)
            whole.append(into.reshape(-1, *array.shape[1:]))
        return whole

    def _run_reference(self) -> None:
        if not self.is_root:
            return
        self._run("reference")
        own = bytes(self._read_block(self.local_ranks[0]))
        other = bytes(self._read_block(native.REFERENCE))
        numbers = slice(4 * native.BLOCK_LOSS, 4 * native.BLOCK_GRAD_NORM + 4)
        if own[numbers] != other[numbers]:
            error = RuntimeFailure(
                f"step {self.steps + 1}: expected the loss and norm of the unsharded program, "
                f"{np.frombuffer(other[numbers], np.float32)}, found "
                f"{np.frombuffer(own[numbers], np.float32)}", native.FAILED)
            self._end(error)
            raise error

    def compare(self) -> None:
        """Compares every value of every rank with the value of the unsharded rank, bit for bit.

        Raises RuntimeFailure at the first difference, and BadInputError if the run has no
        ``check_against_unsharded``.
        """
        if not self._checks:
            refuse("compare: the run was started without check_against_unsharded=True")
        result = native.Comparison.make()
        self._library.session_compare(self._open(), ctypes.byref(result))
        if self.is_root and not result.equal:
            name = self.artifact.parameters[result.param].name
            raise RuntimeFailure(
                f"{native.ROLES[result.role]} of '{name}', element {result.element} on rank "
                f"{result.rank}: expected {result.unsharded!r} as unsharded, found "
                f"{result.sharded!r}", native.FAILED)

    def _read(self, parameter: StepParameter, role: int) -> np.ndarray | None:
        """Returns one of the states of a parameter, or None if the parameter does not have this
        state. Role 0 selects the f32 master if the parameter has one, and otherwise the parameter
        itself."""
        dtype = ctypes.c_int32()
        for one in [native.ROLES.index("master"), role] if role == 0 else [role]:
            if self._library.session_get_state(self._open(), parameter.index, one,
                                               ctypes.byref(dtype)) == native.OK:
                array = np.empty(parameter.shape, native.numpy_dtype(dtype.value))
                self._library.session_read_param(self._session, 0, parameter.index, one, 0,
                                                 array.size, array.ctypes.data, array.nbytes)
                return as_bf16(array) if dtype.value == native.BF16 else array
        return None

    def parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the name and the current value of each parameter, gathered from its shards.

        If a parameter has an f32 master, its value is the value of the master. If the run has
        several processes, each process must read the iterator to its end, but only the process of
        rank 0 gets the values.
        """
        for parameter in self.artifact.parameters:
            yield parameter.name, self._read(parameter, 0)

    def state_dict(self) -> dict[str, Any]:
        """Returns all parameters by name, in the form of the framework that exported the model.

        For a model from PyTorch, returns a ``state_dict`` of the module with trained values, tied
        weights and buffers, for ``module.load_state_dict``. Otherwise returns NumPy arrays, with
        bf16 converted to f32.
        """
        values = {name: widened(value) for name, value in self.parameters()}
        model = getattr(self.artifact, "model", None)
        return model.to_state(values) if model is not None else values

    def optimizer_state(self) -> dict[str, dict[str, np.ndarray]]:
        """Returns {name: {role: values}} with the optimizer states of each trained parameter.

        The roles are first_moment and second_moment for AdamW, and momentum for SGD.
        """
        found: dict[str, dict[str, np.ndarray]] = {}
        for parameter in self.artifact.parameters:
            states = {role: self._read(parameter, index) for index, role in enumerate(native.ROLES)
                      if role not in ("parameter", "master")}
            found[parameter.name] = {role: widened(value) for role, value in states.items()
                                     if value is not None}
        return found

    def load_state_dict(self, values: Mapping[str, Any] | Any, strict: bool = True) -> None:
        """Sets parameters in all ranks from arrays by name or from a torch module.

        If a parameter has several names (tied weights), their values must be equal. The buffers of
        a module are ignored. If ``strict`` is false, ``values`` may omit parameters whose values
        the artifact contains. Raises BadInputError before any parameter is set.
        """
        model = getattr(self.artifact, "model", None)
        arrays = checked_values(self.artifact, named_arrays(values), model, strict)
        for parameter in self.artifact.parameters:
            array = arrays.get(parameter.name)
            if array is None:
                continue
            self._library.session_write_param(self._open(), parameter.index, 0, 0, array.size,
                                              array.ctypes.data, dtype_number(array))

    def export(self, path: str | os.PathLike) -> None:
        """Writes all parameters to a .safetensors file, like ``fsdp-run --export``."""
        values = dict(self.parameters())
        if self.is_root:
            safetensors.write(path, values, {"format": "pt"})

    def save(self, folder: str | os.PathLike, keep: int = 0, *, wait: bool = True) -> pathlib.Path:
        """Saves the complete state of the run. A run that is resumed from the save computes the
        same results bit for bit.

        Writes folder/step-NNNNNNNN, which is complete or does not exist. Keeps the newest ``keep``
        saves, or all saves if ``keep`` is 0. Returns the path of the save. Raises BadInputError if
        the folder contains saves of another run.

        With ``wait=False``, the method returns as soon as the states are copied. A thread then
        writes the copy while steps run. This needs an artifact that was compiled with
        async_save=True. If the thread fails, the next call of ``step``, ``save`` or
        ``wait_for_saves`` raises RuntimeFailure. Earlier saves remain. While a save is being
        written, ``save`` and ``close`` first wait for the end of this save. All processes of a run
        must call ``save``, ``step`` and ``wait_for_saves`` in the same order.
        """
        if not wait and not self.artifact._info.snapshot_bytes:
            refuse(f"wait=False: {self.artifact.path} has no memory for a copy of the state; "
                    "compile with async_save=True")
        key = os.path.abspath(folder)
        if key not in self._savers:
            handle = ctypes.c_void_p()
            resumed = None
            if self._resumed is not None and os.path.abspath(os.path.dirname(
                    self._resumed.folder.decode())) == key:
                resumed = ctypes.byref(self._resumed)
            self._library.saver_open(self.artifact._handle, self._open(), key.encode(), resumed,
                                     keep, ctypes.byref(handle))
            self._savers[key] = handle
        self.wait_for_saves()
        if wait:
            self._library.saver_save(self._savers[key], self._open(), self.steps, self._seed)
        else:
            self._library.saver_start(self._savers[key], self._open(), self.steps, self._seed)
            self._saving = self._savers[key]
        return pathlib.Path(folder) / f"step-{self.steps:08d}"

    def wait_for_saves(self) -> None:
        """Waits until the last ``save(wait=False)`` has ended.

        Raises RuntimeFailure if that save has failed.
        """
        saver, self._saving = self._saving, None
        if saver is not None:
            self._library.saver_wait(saver, self._open())

    def _poll_save(self) -> None:
        saver, self._saving = self._saving, None
        if saver is None:
            return
        busy = ctypes.c_int32()
        self._library.saver_poll(saver, self._open(), ctypes.byref(busy))
        if busy.value:
            self._saving = saver

    def close(self) -> None:
        """Waits for a save that is being written, ends the run, and frees the memory of the run.

        The context manager calls this method.
        """
        if self._session is not None:
            try:
                self.wait_for_saves()
            except RuntimeFailure as error:
                self._end(error)
                raise
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        session, self._session = self._session, None
        launch, self._launch_left = self._launch, True
        self._failed = self._failed or error is not None
        status = getattr(error, "status", native.FAILED) if error is not None else native.OK
        if session is not None:
            for saver in self._savers.values():
                self._library.saver_close(saver)
            self._savers.clear()
            try:
                if error is None:
                    self._library.session_leave(session)
                else:
                    self._library.session_fail(session, status)
            except RuntimeFailure:
                if error is None:
                    raise
            finally:
                self._library.session_destroy(session)
        if launch is not None:
            self._launch = None
            launch.leave(status, "" if error is None else str(error))

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if error is None:
            self.close()
        elif self._session is not None:
            self._end(error)

    def __del__(self):
        if getattr(self, "_session", None) is not None:
            try:
                self._end(None)
            except Exception:  # at exit, objects that _end() needs may already be freed
                pass
