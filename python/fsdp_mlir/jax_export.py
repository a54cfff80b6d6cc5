# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a JAX function that computes a loss, as MLIR.

1. JAX traces the loss to a jaxpr. Differentiation rules that are not JAX's own (``custom_vjp``,
   ``custom_jvp``) are refused, because the compiler differentiates the forward and ignores them.
2. ``stop_gradient`` is lowered to a call of a bodiless function, which the stage Import replaces.
3. The arguments of the function get the attribute ``fsdp.param`` or ``fsdp.batch``. A parameter's
   name is its path in the tree.

The exported text is StableHLO, which the compiler's pass fsdp-lower-stablehlo lowers.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Sequence

import numpy as np

from .arrays import dtype_name, to_numpy
from .errors import ExportError
from .model import BatchInput, Model, Parameter, check_names

_MARKER = "fsdp.stop_gradient"


def _path_name(path) -> str:
    """Returns the name of a leaf of the tree. The name consists of the keys, indices and attributes
    of the leaf's path, joined by dots."""
    parts = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))) for key in path)
    return ".".join(str(part) for part in parts) or "parameter"


def _type_name(leaf) -> str:
    name = {"bfloat16": "bf16"}.get(np.dtype(leaf.dtype).name)
    return name or dtype_name(np.empty(0, leaf.dtype))


def _place(equation) -> tuple[str | None, int | None]:
    """Returns the file and the line of the user's code at which JAX traced an equation."""
    try:
        from jax._src import source_info_util

        frame = source_info_util.user_frame(equation.source_info.traceback)
        return (frame.file_name, frame.start_line) if frame else (None, None)
    except Exception:
        return None, None


def _inner_jaxprs(equation):
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else [value]:
            if hasattr(one, "eqns"):
                yield one
            elif hasattr(one, "jaxpr") and hasattr(one.jaxpr, "eqns"):
                yield one.jaxpr


def _is_own(equation) -> bool:
    """Returns true for a custom rule of JAX itself. Such a rule equals the derivative of the
    forward computation."""
    function = equation.params.get("jvp_jaxpr_fun") or equation.params.get("jvp_jaxpr_thunk")
    file, _ = _place(equation)
    name = str(equation.params.get("name", ""))
    jvp = getattr(function, "f", function)
    module = getattr(inspect.unwrap(jvp), "__module__", "") if callable(jvp) else ""
    return module.startswith("jax") or name.startswith(("relu", "silu", "softmax", "logsumexp"))


def _check(jaxpr, custom_gradients: str) -> None:
    """Checks that a jaxpr has only operations that the compiler supports. Raises ExportError."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        custom = name.startswith(("custom_vjp", "custom_lin")) or (
            name.startswith("custom_jvp") and not _is_own(equation))
        if custom and custom_gradients == "refuse":
            raise ExportError(
                f"a rule of differentiation of its own ({name}), which the export would replace by "
                "the derivative of the forward; write it with stop_gradient, or pass "
                "custom_gradients=\"differentiate\" if the two are equal", *_place(equation))
        if name in ("while", "cond", "scan"):
            advice = {"scan": "pass unroll=True to lax.scan, or write the loop in Python",
                      "while": "write a loop with a fixed number of turns in Python",
                      "cond": "use jnp.where"}[name]
            if not (name == "scan" and equation.params.get("unroll", 1) >=
                    equation.params["length"]):
                raise ExportError(f"'{name}' is control flow, which is not compiled: {advice}",
                                  *_place(equation))
        if name.startswith(("random_", "threefry")):
            raise ExportError(f"'{name}' draws random numbers in the step: draw them outside and "
                              "pass them as a batch input", *_place(equation))
        for inner in _inner_jaxprs(equation):
            _check(inner, custom_gradients)


@contextlib.contextmanager
def _stops_as_calls(count: list[int]):
    """Makes JAX lower each stop_gradient to a call of a function without a body. ``count`` contains
    the number of these functions so far, which is part of the name of the next function."""
    from jax._src import ad_util, config
    from jax._src.interpreters import mlir

    def lower(ctx, x):
        ir = mlir.ir
        symbol = f"{_MARKER}.{count[0]}"
        count[0] += 1
        with ir.InsertionPoint.at_block_begin(ctx.module_context.module.body):
            function = mlir.func_dialect.FuncOp(symbol, ir.FunctionType.get([x.type], [x.type]))
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        call = mlir.func_dialect.CallOp([x.type], ir.FlatSymbolRefAttr.get(symbol), [x])
        return [call.result]

    table = mlir._lowerings
    key = ad_util.stop_gradient_p
    before = table.get(key)
    mlir.register_lowering(key, lower)
    try:
        # At the end of JAX's lowering, a pass of Shardy crashes on functions without a body. Shardy
        # is turned off, because the compiler does not use its shardings.
        with config.use_shardy_partitioner(False):
            yield
    finally:
        if before is None:
            table.pop(key, None)
        else:
            table[key] = before


def _count_stops(ir, module) -> int:
    """Returns the number of calls in a module that mark a stopped gradient."""
    count = 0

    def visit(op):
        nonlocal count
        if op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            count += callee.startswith(_MARKER + ".")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count


def _mark_arguments(text: str, arguments: Sequence[dict]) -> str:
    """Sets the attributes of the public function's arguments, and stores the number of markers."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        for function in module.body.operations:
            if function.operation.name != "func.func" or not len(function.regions[0].blocks):
                continue
            visibility = function.attributes.get("sym_visibility")
            if visibility is None or ir.StringAttr(visibility).value == "public":
                function.attributes["arg_attrs"] = ir.ArrayAttr.get([
                    ir.DictAttr.get({name: ir.StringAttr.get(value) if isinstance(value, str)
                                     else ir.UnitAttr.get() for name, value in one.items()})
                    for one in arguments])
        module.operation.attributes["fsdp.num_stop_gradients"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), _count_stops(ir, module))
        return module.operation.get_asm(enable_debug_info=True)


def export_jax(loss: Callable, params: Any, *example_batch: Any,
               batch_names: Sequence[str] | None = None, frozen: Callable[[str], bool] | None = None,
               custom_gradients: str = "refuse", name: str | None = None) -> Model:
    """Exports the function ``loss(params, *batch)``, which returns a float scalar, as a Model.

    ``params``: a tree of arrays. The name of a parameter is the path of its leaf, such as "h.0.w".
    ``example_batch``: the arrays of one rank's batch. A dict of arrays by name is also possible; it
    is passed to ``loss`` as one argument. ``batch_names``: names of the inputs; by default the
    dict's names, or "tokens" and "targets" for two arrays of integers. ``frozen`` selects the
    parameters that are not trained. ``custom_gradients``: "refuse" (default) refuses the user's own
    differentiation rules; "differentiate" ignores them and differentiates the forward computation.

    Raises ExportError, with a location in the user's source if JAX gives one.
    """
    import jax

    if custom_gradients not in ("refuse", "differentiate"):
        raise ValueError("custom_gradients: expected \"refuse\" or \"differentiate\", found "
                         f"{custom_gradients!r}")
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    names = [_path_name(path) for path, _ in leaves]
    if len(set(names)) != len(names):
        raise ExportError("two parameters have one name: "
                          + next(n for n in names if names.count(n) > 1))
    batch_leaves = jax.tree_util.tree_flatten_with_path(tuple(example_batch))[0]
    inputs = _batch_names(batch_leaves, batch_names)
    check_names(names, inputs, "pass batch_names=")
    try:
        jaxpr = jax.make_jaxpr(loss)(params, *example_batch)
    except Exception as error:
        raise ExportError(f"tracing failed: {type(error).__name__}: "
                          + str(error).strip().split("\n")[0]) from error
    _check_result(jaxpr)
    _check(jaxpr.jaxpr, custom_gradients)
    count = [0]
    # The caches are cleared, because JAX may have cached lowerings of the loss without markers.
    jax.clear_caches()
    with _stops_as_calls(count):
        lowered = jax.jit(loss, keep_unused=True).lower(params, *example_batch)
        text = str(lowered.compiler_ir(dialect="stablehlo"))
    jax.clear_caches()
    is_frozen = lambda n, leaf: frozen is not None and frozen(n) or not _is_float(leaf.dtype)
    arguments = [{"fsdp.param": n, **({"fsdp.frozen": True} if is_frozen(n, leaf) else {})}
                 for n, (_, leaf) in zip(names, leaves)]
    arguments += [{"fsdp.batch": n} for n in inputs]
    return Model(
        _mark_arguments(text, arguments),
        [Parameter(n, tuple(leaf.shape), _type_name(leaf), is_frozen(n, leaf))
         for n, (_, leaf) in zip(names, leaves)],
        [BatchInput(n, tuple(leaf.shape), _type_name(leaf))
         for n, (_, leaf) in zip(inputs, batch_leaves)],
        _weights(names, leaves), source=name or getattr(loss, "__name__", "loss"))


def _is_float(dtype) -> bool:
    return np.issubdtype(dtype, np.floating) or np.dtype(dtype).name == "bfloat16"


def _weights(names, leaves):
    if any(not hasattr(leaf, "__array__") for _, leaf in leaves):  # jax.ShapeDtypeStruct
        return None
    return lambda: {n: to_numpy(leaf) for n, (_, leaf) in zip(names, leaves)}


def _batch_names(leaves, given: Sequence[str] | None) -> list[str]:
    if given is not None:
        if len(given) != len(leaves):
            raise ValueError(f"batch_names: expected {len(leaves)}, found {len(given)}")
        return list(given)
    found = [_path_name(path[1:]) if len(path) > 1 else None for path, _ in leaves]
    if all(found):
        return found
    integers = all(np.issubdtype(leaf.dtype, np.integer) for _, leaf in leaves)
    defaults = ["tokens", "targets"] if integers and len(leaves) <= 2 else []
    return [name or (defaults[i] if i < len(defaults) else f"input{i}")
            for i, name in enumerate(found)]


def _check_result(jaxpr) -> None:
    outs = jaxpr.out_avals
    if len(outs) != 1 or outs[0].shape != () or not _is_float(outs[0].dtype):
        raise ExportError("the loss returns " + ", ".join(map(str, outs))
                          + "; expected one float scalar")
    if outs[0].dtype.itemsize < 4:
        raise ExportError(f"the loss is {outs[0].dtype}; expected float32: convert the logits, or "
                          "the loss, with astype(jnp.float32)")
