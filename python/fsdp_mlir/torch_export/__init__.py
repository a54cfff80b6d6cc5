# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the loss of a PyTorch module as MLIR.

1. Names, aliases and ``requires_grad`` of parameters are read from the module before tracing.
2. ``torch.export`` traces the call loss(module, *batch). The module is called through
   ``functional_call``, so that its parameters become inputs of the graph.
3. Ops that stop gradients, and dropout, are replaced by marker ops (markers.py).
4. Some ops are decomposed into other ops (decompositions.py, windows.py, routing.py). Complex
   values are replaced by pairs of real values (complex_numbers.py). Values that depend on no input
   are computed in advance (fold.py).
5. The importer and the pipelines of torch-mlir (package iree-base-compiler) lower to linalg.
6. The marker ops are replaced by calls. The arguments of the function get the attributes
   ``fsdp.param``, ``fsdp.frozen`` and ``fsdp.batch``.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import warnings
from typing import Any, Callable, Mapping, Sequence

import torch

from ..errors import ExportError
from ..model import BatchInput, Model, Parameter, check_names
from . import complex_numbers, decompositions, fold, markers
from .source import place

_TYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16",
          torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32", torch.int16: "i16",
          torch.int8: "i8", torch.bool: "i1"}

_PIPELINE = ("builtin.module(torchdynamo-export-to-torch-backend-pipeline,"
             "torch-backend-to-linalg-on-tensors-backend-pipeline)")
_CONTRACT = "torch-verify-linalg-on-tensors-backend-contract"

_MUTATES = ("the module changes its buffer or input in the forward, {}; call module.eval(), or keep "
            "running statistics out of the loss")

Loss = Callable[..., torch.Tensor]


class _Traced(torch.nn.Module):
    """A module whose ``forward`` makes the call loss(module, *batch). ``forward`` takes the
    parameters of the module as arguments."""

    def __init__(self, module: torch.nn.Module, loss: Loss, names: Sequence[str] | None):
        super().__init__()
        # The module must not be registered as a submodule, because torch would then treat its
        # parameters as constants.
        object.__setattr__(self, "held", module)
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "names", names)

    def forward(self, parameters, *batch):
        bound = _Bound(self.held, parameters)
        if self.names is not None:
            return self.loss(bound, **dict(zip(self.names, batch)))
        return self.loss(bound, *batch)


class _Bound:
    """Calls a module with given parameters in place of the module's own parameters. The call uses
    all other attributes of the module."""

    def __init__(self, module, parameters):
        self.__dict__.update(_module=module, _parameters=parameters)

    def __call__(self, *args, **kwargs):
        return torch.func.functional_call(self._module, self._parameters, args, kwargs)

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, torch.nn.Module):
            raise AttributeError(
                f"the loss calls '{name}' of the module; call the module itself, or export a "
                "module whose forward does that")
        return value


def _default_loss(model, *batch, **named):
    """Returns the loss that the module itself computes, for example from ``labels``."""
    result = model(*batch, **named)
    return getattr(result, "loss", result)


def _batch(example: Any, loss: Loss) -> tuple[list[torch.Tensor], list[str], bool]:
    """Returns the tensors of the example and their names. Also returns true if the loss takes the
    tensors by name."""
    if isinstance(example, torch.Tensor):
        example = (example,)
    if isinstance(example, Mapping):
        tensors, names, by_name = list(example.values()), list(example), True
    elif isinstance(example, (tuple, list)):
        tensors, names, by_name = list(example), _argument_names(loss, len(example)), False
    else:
        raise TypeError("example_batch: expected a tensor, a tuple of tensors or a mapping by name, "
                        f"found {type(example).__name__}")
    for name, tensor in zip(names, tensors):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"example_batch: '{name}': expected a tensor, found "
                            f"{type(tensor).__name__}; other arguments belong into the loss")
        if tensor.dtype not in _TYPES:
            raise ExportError(f"batch input '{name}': unknown type {tensor.dtype}; expected "
                              f"{', '.join(map(str, _TYPES))}")
    return tensors, names, by_name


def _argument_names(loss: Loss, number: int) -> list[str]:
    """Returns names for batch inputs that are passed by position. They are the names of the
    parameters of ``loss``."""
    if loss is _default_loss:
        defaults = ["tokens", "targets"]
        return defaults[:number] if number <= 2 else [f"input{i}" for i in range(number)]
    try:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in inspect.signature(loss).parameters.values()
                 if p.kind in kinds][1:number + 1]
    except (TypeError, ValueError):
        names = []
    return names + [f"input{i}" for i in range(len(names), number)]


def _roles(names: Sequence[str]) -> list[str]:
    """Returns the names, in which ``input_ids`` is replaced by ``tokens`` and ``labels`` by
    ``targets``."""
    known = {"input_ids": "tokens", "labels": "targets"}
    renamed = [known.get(name, name) for name in names]
    return renamed if len(set(renamed)) == len(renamed) else list(names)


@contextlib.contextmanager
def _refuse_custom_gradients():
    """Refuses torch.autograd.Function during tracing, because the trace has no custom backward.

    Replacing ``apply`` is not enough, because a module may have stored ``MyFunction.apply`` before.
    Each call also creates an instance of BackwardCFunction, and the creation of such an instance is
    refused too.
    """
    original = torch.autograd.Function.__dict__.get("apply")
    context = torch.autograd.function.BackwardCFunction

    def apply(cls, *args, **kwargs):
        file = inspect.getsourcefile(cls)
        try:
            line = inspect.getsourcelines(cls)[1]
        except OSError:
            line = None
        raise ExportError(
            f"'{cls.__name__}' is a torch.autograd.Function with a gradient of its own, which the "
            "export would replace by the derivative of its forward; write it with torch ops and "
            "detach, or pass custom_gradients=\"differentiate\" if the two are equal", file, line)

    def create(self, *args, **kwargs):
        apply(type(self)._forward_cls)

    torch.autograd.Function.apply = classmethod(apply)
    context.__init__ = create
    try:
        yield
    finally:
        del context.__init__
        if original is not None:
            torch.autograd.Function.apply = original
        else:
            del torch.autograd.Function.apply


def _fake_parameters(parameters: dict, tensors: list) -> tuple[dict, list]:
    """Returns fake tensors without memory, for the parameters of a module on the meta device."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        make = lambda t: torch.empty(t.shape, dtype=t.dtype, device="cpu")
        return {name: make(p) for name, p in parameters.items()}, [make(t) for t in tensors]


def _trace(module, loss, tensors, names, by_name, parameters, custom_gradients):
    traced = _Traced(module, loss, names if by_name else None)
    guard = (contextlib.nullcontext() if custom_gradients == "differentiate"
             else _refuse_custom_gradients())
    try:
        with guard:
            return torch.export.export(traced, (parameters, *tensors), strict=False)
    except ExportError:
        raise
    except Exception as error:
        raise _located(error) from error


def _located(error: Exception) -> ExportError:
    """Returns an ExportError located at the innermost frame outside torch and this package."""
    file, line, trace = None, None, error.__traceback__
    while trace:
        name = trace.tb_frame.f_code.co_filename
        if ("/torch/" not in name and "/fsdp_mlir/" not in name and not name.startswith("<")
                and os.path.exists(name)):
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    text = str(error).strip().split("\n")[0] or type(error).__name__
    kind = type(error).__name__
    advice = ""
    if "DataDependent" in kind or "UserError" in kind or "data-dependent" in str(error):
        advice = ("; control flow that depends on values of tensors cannot be compiled: use "
                  "torch.where, or decide it before the export")
    if "positional argument" in text and "forward()" in text:
        advice = ("; the module is called with the arrays of the batch and must return the loss: pass "
                  "loss= if it needs one")
    if "is mutated in the forward" in text:
        return ExportError(_MUTATES.format("such as running statistics"), file, line)
    return ExportError(f"torch.export failed: {kind}: {text}{advice}", file, line)


def _check(program, names: Sequence[str]) -> None:
    """Checks that a program returns one float scalar and has static shapes. Raises ExportError."""
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        changed = next(iter((signature.buffers_to_mutate or
                             signature.user_inputs_to_mutate).values()))
        raise ExportError(_MUTATES.format(f"'{changed}'"))
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for one in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(one, torch.Tensor) and any(not isinstance(n, int) for n in one.shape):
                raise ExportError(f"the shape of '{node.name}' depends on values of tensors: "
                                  f"{list(one.shape)}; only static shapes are compiled",
                                  *place(node))
    outputs = [node for node in program.graph.nodes if node.op == "output"][0].args[0]
    if len(outputs) != 1 or not isinstance(outputs[0].meta.get("val"), torch.Tensor):
        raise ExportError(f"the loss returns {len(outputs)} values; expected one float scalar")
    value = outputs[0].meta["val"]
    if value.dim() != 0 or not value.is_floating_point():
        raise ExportError(f"the loss returns {value.dtype} of shape {list(value.shape)}; expected "
                          "one float scalar: take the mean, or pass loss=")


def _unused(program, names: Sequence[str]) -> set[str]:
    """Returns the names of all arguments that have no effect on the loss."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return {name for name, target in zip(names, program.graph_signature.user_inputs)
            if target in nodes and not nodes[target].users}


def _lower(program, name: str):
    """Lowers to linalg on tensors. Returns (MLIR context, module, number of stop markers)."""
    try:
        from iree.compiler import ir
        from iree.compiler.extras.fx_importer import FxImporter
        from iree.compiler.passmanager import PassManager
    except ImportError as error:
        raise ExportError("the export needs the package iree-base-compiler: pip install "
                          f"\"fsdp-mlir[torch]\" ({error})") from error
    context = ir.Context()
    context.allow_unregistered_dialects = True
    messages: list[str] = []

    def keep(diagnostic):
        messages.append(f"{diagnostic.location}: {diagnostic.message}")
        return True

    handler = context.attach_diagnostic_handler(keep)
    try:
        importer = FxImporter(context=context)
        importer.import_frozen_program(program, func_name=name)
        stops = markers.to_calls(context, importer.module_op)
        with context:
            # The pipeline's last pass is omitted, because it refuses calls, which represent the
            # markers.
            passes = str(PassManager.parse(_PIPELINE)).replace("," + _CONTRACT, "")
            PassManager.parse(passes).run(importer.module_op)
    except (ir.MLIRError, RuntimeError, NotImplementedError, KeyError) as error:
        raise _lowering_error(error, messages, program) from error
    finally:
        handler.detach()
    _refuse_scans(importer.module_op)
    return context, importer.module_op, stops


def _own_place(text: str) -> tuple[str | None, int | None]:
    """Returns the first file and line in an MLIR location outside torch and this package."""
    own = [place for place in re.findall(r'"([^"]+\.py)":(\d+)', text)
           if "/torch/" not in place[0] and "/fsdp_mlir/" not in place[0]]
    return (own[0][0], int(own[0][1])) if own else (None, None)


def _refuse_scans(module) -> None:
    """Refuses ops of torch-mlir's dialects, which the compiler does not have."""
    from iree.compiler import ir

    found = []

    def visit(op):
        if op.name.startswith("tm_tensor.") and op.name != "tm_tensor.yield":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    if found:
        raise ExportError(
            f"torch-mlir lowers an op to '{found[0].name}', which is not compiled; expected ops without "
            "sorts, scans and scatters: write it with comparisons of positions, or add a decomposition "
            "with decompositions_={overload: function}", *_own_place(str(found[0].location)))


def _lowering_error(error: Exception, messages: list[str], program) -> ExportError:
    """Returns an ExportError with the pipeline's first message and that message's location."""
    lines = [*messages, *(line for line in str(error).splitlines() if "error:" in line),
             str(error).split("\n")[0]]
    text = lines[0]
    file, line = _own_place(text)
    op = re.search(r"torch\.(?:aten|prims)\.[\w.]+|'[a-z_]+\.[a-z_.]+'", text)
    if op and not file:
        wanted = op[0].strip("'").removeprefix("torch.")
        file, line = next((place(node) for node in program.graph.nodes
                           if str(node.target).startswith(wanted)), (None, None))
    reason = re.sub(r".*?error: ", "", re.sub(r"^.*\)\): ", "", text))
    reason = re.sub(r"^callsite\(.*\): ", "", reason)
    what = op[0].strip("'") if op else "an op"
    if what == "torch.operator" and file:
        # In torch-mlir's message, every op that cannot be lowered is named torch.operator. All core
        # ops can be lowered, so the op must be one of the other ops of the same source line.
        at = {str(node.target) for node in program.graph.nodes
              if "::" in str(getattr(node.target, "_name", "")) and place(node) == (file, line)
              and torch.Tag.core not in node.target.tags}
        what = ", ".join(sorted(at)[:4]) or what
    return ExportError(f"torch-mlir cannot lower '{what}': {reason[:300]}; write it with other ops, "
                       "or add a decomposition with decompositions_={overload: function}",
                       file, line)


def _mark(context, module, arguments: Sequence[Mapping[str, Any]], stops: int) -> None:
    """Sets the attributes of the function's arguments, and stores the number of stop markers."""
    from iree.compiler import ir

    function = next(op for op in module.regions[0].blocks[0].operations
                    if op.operation.name == "func.func" and len(op.regions[0].blocks))
    with context:
        write = lambda v: ir.UnitAttr.get() if v is True else ir.StringAttr.get(v)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({key: write(value) for key, value in one.items()})
             for one in arguments])
        if stops:
            module.attributes["fsdp.num_stop_gradients"] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64), stops)


def export_torch(module: torch.nn.Module, example_batch: Any, loss: Loss | None = None, *,
                 decompositions_: Mapping | None = None, custom_gradients: str = "refuse",
                 name: str | None = None) -> Model:
    """Exports the loss of a module and returns it as a Model.

    ``example_batch``: the batch of one rank (one micro-batch): a tensor, a tuple of tensors, or a
    mapping by name. All batches must have the shapes and types of the example, whose values are not
    used.

    ``loss``: loss(module, *batch), or loss(module, **batch) for a mapping; it returns a float
    scalar. If no ``loss`` is given, the module must return its loss, or an object with the
    attribute ``.loss``, as models of transformers do if they get ``labels``. The name of an input
    is its name in the mapping, or the name of the parameter of ``loss``. The names ``input_ids``
    and ``labels`` become ``tokens`` and ``targets``, which ``fsdp-run --text`` sets.

    All parameters of the module are exported, including tied and frozen ones
    (``requires_grad=False``). Buffers are constants. The step contains dropout if the module is in
    training mode (``module.train()``). Random numbers depend on seed, step and example.

    ``decompositions_`` maps overloads (``torch.ops.aten.x.default``) to functions that decompose
    them, in addition to the decompositions of this package. ``custom_gradients``: "refuse"
    (default) refuses torch.autograd.Function; "differentiate" ignores its backward and
    differentiates its forward.

    Raises ExportError, with a location in the module's source if torch gives one.
    """
    loss = loss or _default_loss
    if custom_gradients not in ("refuse", "differentiate"):
        raise ValueError("custom_gradients: expected \"refuse\" or \"differentiate\", found "
                         f"{custom_gradients!r}")
    tensors, names, by_name = _batch(example_batch, loss)
    batch_names = _roles(names)
    own = dict(module.named_parameters())
    check_names(own, batch_names, "rename the argument of the loss, or pass a mapping")
    owners = {id(p): n for n, p in own.items()}
    aliases = {n: owners[id(p)] for n, p in module.named_parameters(remove_duplicate=False)
               if owners[id(p)] != n}
    buffers = frozenset(n for n, _ in module.named_buffers(remove_duplicate=False))
    trained = {n for n, p in own.items() if p.requires_grad and p.is_floating_point()}
    for n, p in own.items():
        if p.dtype not in _TYPES:
            raise ExportError(f"parameter '{n}': unknown type {p.dtype}; expected "
                              f"{', '.join(map(str, _TYPES))}")
    parameters = {n: p.detach() for n, p in own.items()}
    # The tensors are cloned, because torch would trace one tensor for two inputs as one input.
    tensors = [t.detach().clone() for t in tensors]
    is_meta = any(p.is_meta for p in parameters.values())
    if is_meta:
        parameters, tensors = _fake_parameters(parameters, tensors)
    program = _trace(module, loss, tensors, names, by_name, parameters, custom_gradients)
    _check(program, names)
    targets = list(program.graph_signature.user_inputs)[:len(parameters)]
    markers.mark_stops(program, {t for n, t in zip(parameters, targets) if n in trained})
    markers.mark_padding(program)
    markers.mark_dropout(program)
    table = decompositions.table()
    table.update(decompositions_ or {})
    try:
        program = program.run_decompositions(table)
    except ExportError:
        raise
    except Exception as error:
        raise _located(error) from error
    complex_numbers.to_pairs(program)
    fold.fold(program)
    unused = _unused(program, [*parameters, *(("batch", name) for name in names)])
    for one in names:
        if ("batch", one) in unused:
            warnings.warn(f"the loss does not depend on the batch input '{one}'", stacklevel=3)
    context, lowered, stops = _lower(program, "loss")
    arguments = [{"fsdp.param": n, **({} if n in trained and n not in unused
                                      else {"fsdp.frozen": True})} for n in parameters]
    arguments += [{"fsdp.batch": n} for n in batch_names]
    _mark(context, lowered, arguments, stops)
    text = lowered.get_asm(print_generic_op_form=False, enable_debug_info=True)
    return Model(
        text,
        [Parameter(n, tuple(p.shape), _TYPES[p.dtype], n not in trained or n in unused)
         for n, p in parameters.items()],
        [BatchInput(n, tuple(t.shape), _TYPES[t.dtype]) for n, t in zip(batch_names, tensors)],
        None if is_meta else lambda: {n: p.detach() for n, p in module.named_parameters()},
        aliases, buffers, None if is_meta else module.state_dict,
        name or type(module).__name__)
