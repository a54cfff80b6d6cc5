# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads values of parameters from a module, a mapping or a file, and checks them."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Mapping

import numpy as np

from . import native, safetensors
from .arrays import Bf16, to_numpy
from .artifact import Artifact
from .model import Model
from .native import refuse


def named_arrays(values: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of a mapping, a torch module or a file, by name."""
    if isinstance(values, (str, os.PathLike)):
        return safetensors.read(values)
    if hasattr(values, "state_dict") and callable(values.state_dict):
        values = {**{name: value for name, value in values.state_dict().items()}}
    if not isinstance(values, Mapping):
        refuse("weights: expected a module, a mapping of arrays by name, or the path of a "
                f".safetensors file, found {type(values).__name__}")
    return {name: to_numpy(value) for name, value in values.items()}


def digest(values: Mapping[str, np.ndarray]) -> str:
    """Returns the SHA-256 of all names and values, in hexadecimal digits."""
    result = hashlib.sha256()
    for name in sorted(values):
        result.update(name.encode())
        result.update(np.ascontiguousarray(values[name]).view(np.uint8))
    return result.hexdigest()


def initial_values(artifact: Artifact, weights: Any) -> dict[str, np.ndarray] | None:
    """Returns the arrays that ``weights`` selects. Returns None if the run uses the values of the
    artifact or, if there are none, random values.

    ``weights`` is the argument ``weights`` of Run. Raises BadInputError.
    """
    model: Model | None = getattr(artifact, "model", None)
    if weights is None or isinstance(weights, str) and weights == "model":
        if model is None or model.weights is None:
            if weights == "model":
                refuse("weights=\"model\": the model was exported without values")
            return None
        weights = model.weights()
    return checked_values(artifact, named_arrays(weights), model, strict=False)


def checked_values(artifact: Artifact, arrays: dict[str, np.ndarray], model: Model | None,
                    strict: bool) -> dict[str, np.ndarray]:
    """Checks arrays, and returns the array of each parameter by the parameter's name. Raises
    BadInputError if no parameter has the name of an array, if an array does not fit its parameter,
    or if an array is missing for a parameter that needs one."""
    aliases = model.aliases if model is not None else {}
    buffers = model.buffers if model is not None else frozenset()
    known = {parameter.name: parameter for parameter in artifact.parameters}
    chosen: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        owner = aliases.get(name, name)
        if owner not in known:
            if name in buffers:
                continue
            refuse(f"weights: the model has no parameter '{name}'{_nearest(name, known)}")
        if owner in chosen and not np.array_equal(chosen[owner], array):
            refuse(f"weights: '{name}' and '{owner}' are one parameter of the model, and their "
                    "values differ; tie them again, or export the module untied")
        chosen[owner] = array
    for name, parameter in known.items():
        if name not in chosen:
            if strict or not parameter.has_values:
                refuse(f"weights: no value for the parameter '{name}'")
            continue
        array = chosen[name]
        if array.shape != parameter.shape:
            refuse(f"weights: '{name}': expected the shape {list(parameter.shape)}, found "
                    f"{list(array.shape)}")
        is_float = parameter.dtype <= native.BF16
        if is_float != (isinstance(array, Bf16) or array.dtype.kind == "f"):
            refuse(f"weights: '{name}': expected {native.DTYPES[parameter.dtype]}, found "
                    f"{array.dtype}")
    return chosen


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def dtype_number(array: np.ndarray) -> int:
    """Returns the fsdprt_dtype of an array's element type. Raises BadInputError."""
    if isinstance(array, Bf16):
        return native.BF16
    for number in range(len(native.DTYPES)):
        if number != native.BF16 and native.numpy_dtype(number) == array.dtype:
            return number
    refuse(f"expected an array of floats, integers or booleans, found {array.dtype}")
