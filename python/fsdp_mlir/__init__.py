# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fully sharded training, compiled ahead of time, for models of PyTorch and JAX.

    import fsdp_mlir as fm

    model = fm.export_torch(module, example_batch, loss=loss_fn)
    step = fm.compile(model, mesh="shard=2", param_dtype="bf16", optimizer=fm.AdamW(lr=3e-4))
    print(step.explain())
    with step.train(ranks=2, weights=module) as run:
        for batch in loader:
            metrics = run.step(batch)
        run.save("run1")
        module.load_state_dict(run.state_dict())

Importing this package imports only NumPy. A call of ``export_torch`` imports torch and
iree-base-compiler, and a call of ``export_jax`` imports jax.
"""

from __future__ import annotations

from typing import Any

from .compiler import SGD, AdamW, Step, compile
from .errors import (BadInputError, CompileError, CompileWarning, Diagnostic, ExportError,
                     FsdpError, LookupRangeError, NonFiniteError, RankHungError, RankLostError,
                     RuntimeFailure, ToolNotFoundError)
from .model import BatchInput, Model, Parameter
from .run import Metrics, Run

__version__ = "0.1.0"

__all__ = ["AdamW", "BadInputError", "BatchInput", "CompileError", "CompileWarning", "Diagnostic",
           "ExportError", "FsdpError", "LookupRangeError", "Metrics", "Model", "NonFiniteError",
           "Parameter", "RankHungError", "RankLostError", "Run", "RuntimeFailure", "SGD", "Step",
           "ToolNotFoundError", "compile", "export_jax", "export_torch"]


def export_torch(module: Any, example_batch: Any, loss: Any = None, **options: Any) -> Model:
    """Exports the loss of a PyTorch module; see ``fsdp_mlir.torch_export.export_torch``."""
    from .torch_export import export_torch as export

    return export(module, example_batch, loss, **options)


def export_jax(loss: Any, params: Any, *example_batch: Any, **options: Any) -> Model:
    """Exports a JAX function that computes a loss; see ``fsdp_mlir.jax_export.export_jax``."""
    from .jax_export import export_jax as export

    return export(loss, params, *example_batch, **options)
