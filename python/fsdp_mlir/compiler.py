# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a model into a training step: ``fsdp-compile`` with typed options."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import warnings
from typing import Any, Mapping, Sequence

from . import tools
from .artifact import Artifact
from .errors import CompileError, CompileWarning, parse_diagnostics
from .model import Model


@dataclasses.dataclass(frozen=True)
class AdamW:
    """AdamW. The decoupled weight decay applies to parameters of rank 2 or more.

    ``lr`` is the learning rate of a step for which the caller sets none. ``state_dtype`` is the
    type of the moments, f32 or bf16. ``clip_grad_norm`` limits the global gradient norm; 0 means no
    limit.
    """

    lr: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    clip_grad_norm: float = 0.0
    state_dtype: str = "f32"

    def options(self) -> dict[str, Any]:
        return {"optimizer": "adamw", "lr": self.lr, "beta1": self.betas[0],
                "beta2": self.betas[1], "eps": self.eps, "weight_decay": self.weight_decay,
                "clip_grad_norm": self.clip_grad_norm, "optimizer_state_dtype": self.state_dtype}


@dataclasses.dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent. As in torch.optim.SGD, weight decay is added to the gradient.

    The decay applies to parameters of rank 2 or more.
    """

    lr: float = 1e-2
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_grad_norm: float = 0.0
    state_dtype: str = "f32"

    def options(self) -> dict[str, Any]:
        return {"optimizer": "sgd", "lr": self.lr, "momentum": self.momentum,
                "weight_decay": self.weight_decay, "clip_grad_norm": self.clip_grad_norm,
                "optimizer_state_dtype": self.state_dtype}


Optimizer = AdamW | SGD
_REPEATED = {"batch", "buffer"}
_TAKEN = {"o": "use output=", "compile_to": "use fsdp-compile", "emit": "use fsdp-compile",
          "dump_phases_to": "use fsdp-compile", "explain": "use Step.explain()",
          "what_if": "use Step.explain(what_if=...)", "report": "use Step.report()"}


def _word(value: Any) -> str:
    """Returns the text of an option's value for the command line of fsdp-compile."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_word(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(_word, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def command_line(options: Mapping[str, Any]) -> list[str]:
    """Returns keyword options as arguments of fsdp-compile. Omits the options that are None."""
    arguments = []
    for name, value in options.items():
        if name in _TAKEN:
            raise TypeError(f"option '{name}' is not an argument of compile(): {_TAKEN[name]}")
        if value is None:
            continue
        flag = "--" + name.replace("_", "-")
        if name in _REPEATED and isinstance(value, Mapping):
            arguments += [f"{flag}={key}={_word(item)}" for key, item in value.items()]
        else:
            arguments.append(f"{flag}={_word(value)}")
    return arguments


def run_compiler(arguments: Sequence[str], source: str, quiet: bool = False) -> str:
    """Runs fsdp-compile and returns its output. Raises CompileError if fsdp-compile fails, and
    issues a CompileWarning for each of its warnings."""
    done = subprocess.run([tools.find_tool("fsdp-compile"), *arguments], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    diagnostics = parse_diagnostics(done.stderr)
    if done.returncode:
        wrong = [d for d in diagnostics if d.severity in ("error", "note")]
        text = "\n".join(map(str, wrong)) or done.stderr.strip() or "fsdp-compile failed"
        if done.returncode < 0:
            text += f"\nfsdp-compile ended by signal {-done.returncode}"
        raise CompileError(f"{source}: {text}", diagnostics)
    for one in diagnostics if not quiet else ():
        if one.severity == "warning":
            warnings.warn(str(one), CompileWarning, stacklevel=4)
    return done.stdout


class Step(Artifact):
    """A compiled training step, which ``compile`` or ``Step.load`` returns.

    ``path`` is the .fsdp file. If the file is temporary, it is removed with this object.
    """

    def __init__(self, path: str | pathlib.Path, model: Model | None = None,
                 arguments: Sequence[str] | None = None,
                 folder: tempfile.TemporaryDirectory | None = None, plan: str = ""):
        self._folder, self._plan = folder, plan
        self.model = model
        self._arguments = list(arguments) if arguments is not None else None
        super().__init__(path)

    @staticmethod
    def load(path: str | pathlib.Path, model: Model | None = None) -> Step:
        """Opens an artifact that fsdp-compile or ``Step.save`` wrote."""
        return Step(path, model)

    def save(self, path: str | pathlib.Path) -> None:
        """Copies the artifact to ``path``."""
        shutil.copyfile(self.path, path)

    def explain(self, form: str = "text", what_if: str | None = None) -> str:
        """Returns the output of --explain, which describes memory, units and communication.
        ``form`` is text, json or dtypes.

        ``what_if`` compares the plan with plans for other options, such as "mesh=shard=8". Raises
        CompileError if options contradict each other. Raises ValueError if the step was loaded.
        """
        if form == "text" and what_if is None and self._plan:
            return self._plan
        if what_if is not None:
            return self._recompile([f"--what-if={what_if}"], writes=False)
        return self._recompile([f"--explain={form}"])

    def report(self, path: str | pathlib.Path) -> None:
        """Writes an HTML page with the plan to ``path``, as --report does."""
        self._recompile([f"--report={os.fspath(path)}"])

    def _recompile(self, extra: Sequence[str], writes: bool = True) -> str:
        if self._arguments is None:
            raise ValueError(f"{self.path}: a step that was loaded has no model to plan; compile it")
        with tempfile.TemporaryDirectory() as folder:
            output = ["--no-code", "-o", os.path.join(folder, "plan.fsdp")] if writes else []
            return run_compiler([*self._arguments, *output, *extra], self._source(), quiet=True)

    def _source(self) -> str:
        return self.model.source if self.model else str(self.path)

    def train(self, ranks: int | None = None, weights: Any = None, **options: Any):
        """Starts a run for a ``with`` statement. ``fsdp_mlir.Run`` describes the arguments."""
        from .run import Run

        return Run(self, ranks=ranks, weights=weights, **options)


def compile(model: Model | str | os.PathLike, mesh: str | Mapping[str, int] | None = None,
            param_dtype: str | None = None, optimizer: Optimizer | None = None,
            output: str | os.PathLike | None = None, **options: Any) -> Step:
    """Compiles the sharded training step of ``model`` and returns it.

    ``mesh``: ranks per axis, such as "shard=2" or {"shard": 4, "tensor": 2}. ``param_dtype``:
    f32, bf16 or f16. ``output``: path of the .fsdp file. By default, the file is temporary.
    ``options``: any other options of fsdp-compile, whose names are written with underscores, for
    example ``grad_accum=4``, ``activation_checkpointing="full"``, ``config="fsdp.json"``.
    docs/reference/options.md lists all options.

    Raises CompileError with the compiler's diagnostics. If the exporter recorded locations, the
    diagnostics refer to the module's own source. Issues CompileWarning for warnings.
    """
    folder = None
    if isinstance(model, Model):
        folder = tempfile.TemporaryDirectory(prefix="fsdp-mlir-")
        source = os.path.join(folder.name, re.sub(r"[^\w.-]", "_", model.source) + ".mlir")
        pathlib.Path(source).write_text(model.text)
    else:
        source = os.fspath(model)
        if not os.path.isfile(source):
            raise FileNotFoundError(f"{source}: no such file; expected a Model or a path of MLIR")
        model = Model.load(source) if source.endswith(".mlir") else None
        if output is None:
            folder = tempfile.TemporaryDirectory(prefix="fsdp-mlir-")
    chosen = optimizer.options() if optimizer else {}
    if clash := sorted(set(chosen) & set(options)):
        raise TypeError(f"option '{clash[0]}' is given twice: by optimizer= and by name")
    arguments = [source, *command_line({"mesh": mesh, "param_dtype": param_dtype,
                                        **chosen, **options})]
    path = os.fspath(output) if output is not None else os.path.join(folder.name, "step.fsdp")
    plan = run_compiler([*arguments, "-o", path, "--explain"],
                        model.source if model else source)
    return Step(path, model, arguments, folder, plan)
