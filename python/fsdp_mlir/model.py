# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model: its loss as MLIR, and the names, shapes and values of its parameters and inputs."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any, Callable, Iterable, Mapping

import numpy as np

from . import safetensors
from .arrays import to_numpy
from .errors import ExportError


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of the loss. ``dtype`` is MLIR's name of the element type, such as f32."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    frozen: bool = False


@dataclasses.dataclass(frozen=True)
class BatchInput:
    """A batch input of the loss function. ``shape`` is its shape for the batch of one rank."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def check_names(parameters: Iterable[str], inputs: list[str], advice: str) -> None:
    """Raises ExportError if two of the names are equal. The message contains ``advice``."""
    seen = set(parameters)
    for name in inputs:
        if name in seen:
            raise ExportError(f"'{name}' is the name of a batch input and of another argument; "
                              f"expected different names: {advice}")
        seen.add(name)


@dataclasses.dataclass
class Model:
    """The loss of a model as MLIR text, whose arguments have the attributes of the exporters.

    ``text`` contains everything except the values of the parameters. ``weights`` is a function that
    returns the current values by name. The function is called when a run starts. If ``weights`` is
    None, the runtime draws random values.

    ``aliases`` maps each further name of a shared parameter (tied weights) to the name in
    ``parameters``. ``buffers`` contains all names in the module's state except the names of
    parameters.
    """

    text: str
    parameters: list[Parameter]
    inputs: list[BatchInput]
    weights: Callable[[], Mapping[str, Any]] | None = None
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    buffers: frozenset[str] = frozenset()
    state: Callable[[], Mapping[str, Any]] | None = None
    source: str = "model"

    def to_state(self, values: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Converts trained values to the form in which the framework stores its state.

        If ``state`` (the ``state_dict`` function of a module) is set, returns all entries of this
        state as tensors of unchanged types. The parameters in this state have the trained values.
        Otherwise returns ``values``.
        """
        if self.state is None:
            return dict(values)
        import torch

        found = {}
        for name, value in self.state().items():
            array = values.get(self.aliases.get(name, name))
            found[name] = (value if array is None
                           else torch.from_numpy(np.array(array)).to(value.dtype))
        return found

    def save(self, path: str | pathlib.Path) -> list[pathlib.Path]:
        """Writes ``path`` (.mlir) and, if there are weights, a .safetensors file beside it.

        The command-line tools read these files: ``fsdp-compile PATH`` and ``fsdp-run
        --init=WEIGHTS``. Returns the paths of the files that were written.
        """
        path = pathlib.Path(path)
        path.write_text(self.text)
        written = [path]
        if self.weights is not None:
            values = {name: to_numpy(value) for name, value in self.weights().items()}
            target = path.with_suffix(".safetensors")
            safetensors.write(target, values)
            written.append(target)
        return written

    @staticmethod
    def load(path: str | pathlib.Path) -> Model:
        """Reads a model from MLIR text that ``save``, fsdp-modelgen or another exporter wrote.

        If there is a .safetensors file with the same name beside it, that file has the weights.
        """
        path = pathlib.Path(path)
        text = path.read_text()
        parameters, inputs = read_arguments(text)
        values = path.with_suffix(".safetensors")
        weights = (lambda: safetensors.read(values)) if values.exists() else None
        return Model(text, parameters, inputs, weights, source=path.stem)

    def __repr__(self) -> str:
        trained = sum(int(np.prod(p.shape)) for p in self.parameters if not p.frozen)
        inputs = ", ".join(f"{i.name}: {i.dtype}[{', '.join(map(str, i.shape))}]"
                           for i in self.inputs)
        return (f"<fsdp_mlir.Model {self.source!r}: {len(self.parameters)} parameters, "
                f"{trained:,} trained elements; batch ({inputs})>")


_ARGUMENT = re.compile(
    r'%[\w.$-]+: tensor<(?P<type>[^>]*)>\s*(?:\{(?P<attributes>(?:[^{}"]|"(?:[^"\\]|\\.)*")*)\})?')
_NAME = re.compile(r'fsdp\.(param|batch) = ("(?:[^"\\]|\\.)*")')


def read_arguments(text: str) -> tuple[list[Parameter], list[BatchInput]]:
    """Returns the parameters and the batch inputs of the public function in MLIR text."""
    parameters, inputs = [], []
    for function in re.finditer(r"func\.func (?!private)(?:public )?@", text):
        end = text.find("->", function.end())
        for argument in _ARGUMENT.finditer(text, function.end(), end if end > 0 else len(text)):
            *shape, dtype = argument["type"].split("x")
            shape = tuple(int(n) for n in shape)
            found = _NAME.search(argument["attributes"] or "")
            if not found:
                continue
            name = json.loads(found[2])
            if found[1] == "param":
                parameters.append(Parameter(name, shape, dtype,
                                            "fsdp.frozen" in argument["attributes"]))
            else:
                inputs.append(BatchInput(name, shape, dtype))
        break
    return parameters, inputs
