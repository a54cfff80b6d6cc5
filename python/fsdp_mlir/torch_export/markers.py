# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps ops that the lowering to MLIR would remove or change: ops that stop gradients, and dropout.

torch-mlir removes ``detach``, and lowers ``dropout`` to random numbers that depend only on a global
seed. Therefore the exporter replaces both ops in torch's graph by marker ops of this package. In
MLIR, it replaces each marker op by a call of a function without a body. The compiler's stage Import
replaces these calls by ops:

=================================  =====================================================
torch                              MLIR
=================================  =====================================================
``x.detach()``, ``torch.no_grad``  ``call @fsdp.stop_gradient.N(%x)``
``F.dropout(x, p)``                ``call @fsdp.dropout.N(%x)``; the declaration has
                                   ``fsdp.dropout = p``
``padding_idx`` of an embedding    a select of ``call @fsdp.stop_gradient.N`` of its rows
=================================  =====================================================
"""

from __future__ import annotations

import operator

import torch

from ..errors import ExportError
from . import recurrent
from .nodes import given
from .source import place

aten = torch.ops.aten
_library = torch.library.Library("fsdp_mlir", "DEF")
_library.define("stop_gradient(Tensor x) -> Tensor")
_library.define("dropout(Tensor x, float p) -> Tensor")


def _same(x, *_):
    return x.clone()


for _name in ("stop_gradient", "dropout"):
    _library.impl(_name, _same, "CompositeExplicitAutograd")
    torch.library.register_fake(f"fsdp_mlir::{_name}", lambda x, *_: torch.empty_like(x),
                                lib=_library)

STOP = torch.ops.fsdp_mlir.stop_gradient.default
DROPOUT = torch.ops.fsdp_mlir.dropout.default
_DETACHES = tuple(getattr(aten, name).default for name in ("detach", "detach_", "alias")
                  if hasattr(aten, name) and name != "alias")


def _has_gradient(value) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _is_float(node) -> bool:
    return _has_gradient(node.meta.get("val"))


def _insert_stop(graph, node) -> None:
    """Inserts a stop marker after ``node``. All users of ``node`` then use the marker."""
    with graph.inserting_after(node):
        marker = graph.call_function(STOP, (node,))
    marker.meta = dict(node.meta)
    node.replace_all_uses_with(marker, delete_user_cb=lambda user: user is not marker)


def mark_stops(program, trained: set[str]) -> int:
    """Marks each value at which the gradient of the parameters ``trained`` stops.

    ``trained`` contains names of placeholders. A region of ``torch.no_grad`` is inlined, and all
    its float results are marked. Returns the number of markers.

    Raises ExportError if a region of ``torch.no_grad`` enables gradients again.
    """
    module, graph = program.graph_module, program.graph_module.graph
    depends: set = set()
    count = 0
    for node in list(graph.nodes):
        if node.op == "placeholder":
            if node.name in trained:
                depends.add(node)
            continue
        if not any(source in depends for source in node.all_input_nodes):
            continue
        if "set_grad_enabled" in str(node.target):
            count += _inline_region(module, graph, node, depends)
            continue
        if node.target in _DETACHES and _is_float(node):
            _insert_stop(graph, node)
            count += 1
            continue  # the gradient stops at this node, so ``depends`` must not contain it
        value = node.meta.get("val")
        values = value if isinstance(value, (tuple, list)) else [value]
        if node.op == "output" or any(map(_has_gradient, values)):
            depends.add(node)
    graph.lint()
    module.recompile()
    return count


def _inline_region(module, graph, node, depends) -> int:
    """Inlines a region of ``torch.set_grad_enabled``. If the region disables gradients, its float
    results are marked."""
    enabled, region = node.args[0], getattr(module, node.args[1].target)
    arguments = iter(node.args[2:])
    copies: dict = {}
    for inner in region.graph.nodes:
        if inner.op == "placeholder":
            copies[inner] = next(arguments)
        elif inner.op == "output":
            results = inner.args[0]
        else:
            if "set_grad_enabled" in str(inner.target):
                raise ExportError("gradients are switched on again inside of torch.no_grad; call "
                                  "the inner part outside of it", *place(inner))
            with graph.inserting_before(node):
                copies[inner] = graph.node_copy(inner, copies.__getitem__)
            if inner.op == "get_attr":
                value = getattr(region, inner.target)
                name = f"{node.args[1].target}_{inner.target}"
                setattr(module, name, value)
                copies[inner].target = name
    outs = results if isinstance(results, (tuple, list)) else (results,)
    count = 0
    made = []
    for out in outs:
        result = copies.get(out, out)
        if not enabled and _is_float(out):
            with graph.inserting_before(node):
                marker = graph.call_function(STOP, (result,))
            marker.meta = dict(out.meta)
            result = marker
            count += 1
        elif _is_float(out):
            depends.add(result)
        made.append(result)
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(made[user.args[1]])
            graph.erase_node(user)
    if node.users:
        node.replace_all_uses_with(made[0])
    graph.erase_node(node)
    return count


def mark_padding(program) -> int:
    """Stops the gradient of the row ``padding_idx`` in the table of each embedding.

    torch reads this row in the forward, but computes no gradient for this row. The lowering to MLIR
    would ignore ``padding_idx``. Returns the number of embeddings that were changed. Raises
    ExportError if an embedding scales its gradient by frequency.
    """
    module, graph = program.graph_module, program.graph_module.graph
    count = 0
    for node in list(graph.nodes):
        if node.target is not aten.embedding.default:
            continue
        named = given(node)
        if named.get("scale_grad_by_freq"):
            raise ExportError("an embedding scales its gradient by frequency, which is not "
                              "compiled; pass scale_grad_by_freq=False", *place(node))
        padding, indices = named.get("padding_idx", -1), named["indices"]
        if padding is None or padding < 0:
            continue
        with graph.inserting_after(node):
            hit = graph.call_function(aten.eq.Scalar, (indices, padding))
        with graph.inserting_after(hit):
            wide = graph.call_function(aten.unsqueeze.default, (hit, -1))
        with graph.inserting_after(wide):
            stopped = graph.call_function(STOP, (node,))
        with graph.inserting_after(stopped):
            chosen = graph.call_function(aten.where.self, (wide, stopped, node))
        ids = indices.meta["val"]
        trace = {key: node.meta[key] for key in ("stack_trace",) if key in node.meta}
        hit.meta = {**trace, "val": ids == padding}
        wide.meta = {**trace, "val": (ids == padding).unsqueeze(-1)}
        stopped.meta, chosen.meta = dict(node.meta), dict(node.meta)
        node.replace_all_uses_with(chosen, delete_user_cb=lambda u: u not in (stopped, chosen))
        count += 1
    graph.lint()
    module.recompile()
    return count


def _drops_nothing(node) -> bool:
    """Returns true for a recurrent op without dropout between its layers."""
    if node.target.overloadpacket not in (aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
        return False
    named = given(node)
    return not (named.get("train") and named.get("dropout")) or named["num_layers"] == 1


def mark_dropout(program) -> int:
    """Replaces each active dropout by the dropout marker. Returns the number of markers.

    A dropout that is inactive is replaced by its input. Raises ExportError for other random ops.
    """
    module, graph = program.graph_module, program.graph_module.graph
    count = 0
    for node in list(graph.nodes):
        if node.target in (aten.dropout.default, aten.native_dropout.default):
            x, p = node.args[0], node.args[1]
            train = node.args[2] if len(node.args) > 2 else True
            pair = node.target is aten.native_dropout.default
            result = x
            if train and p > 0:
                with graph.inserting_before(node):
                    result = graph.call_function(DROPOUT, (x, float(p)))
                result.meta = {**node.meta, "val": x.meta["val"]}
                count += 1
            users = list(node.users) if pair else [node]
            for user in users:
                if pair and user.args[1] != 0 and user.users:
                    raise ExportError("the mask of native_dropout is used; use F.dropout",
                                      *place(node))
                user.replace_all_uses_with(result)
                if pair:
                    graph.erase_node(user)
            graph.erase_node(node)
        elif recurrent.drops_between_layers(node):
            count += recurrent.divide(node, DROPOUT)
        elif (isinstance(node.target, torch._ops.OpOverload) and not _drops_nothing(node)
              and torch.Tag.nondeterministic_seeded in node.target.tags
              and node.target is not DROPOUT
              and node.target is not aten.scaled_dot_product_attention.default
              and node.target.namespace == "aten"):
            raise ExportError(f"'{node.target}' draws random numbers in the step; only dropout is "
                              "supported: draw them outside and pass them as a batch input",
                              *place(node))
    graph.lint()
    module.recompile()
    return count


def to_calls(context, module) -> int:
    """Replaces the marker ops in an MLIR module by calls. Returns the number of stop markers."""
    from iree.compiler import ir

    declarations: dict[tuple, str] = {}
    stops = 0
    with context, ir.Location.unknown():
        body = module.regions[0].blocks[0]
        found = []

        def visit(op):
            if op.name == "torch.operator":
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.walk(visit)
        for op in found:
            name = ir.StringAttr(op.attributes["name"]).value
            if not name.startswith("torch.fsdp_mlir."):
                continue
            kind = name.removeprefix("torch.fsdp_mlir.")
            probability = None
            if kind.startswith("dropout"):
                probability = ir.FloatAttr(op.operands[1].owner.attributes["value"]).value
            else:
                stops += 1
            type_ = op.operands[0].type
            key = (kind, str(type_), probability)
            if key not in declarations:
                short = "dropout" if probability is not None else "stop_gradient"
                declarations[key] = symbol = f"fsdp.{short}.{len(declarations)}"
                with ir.InsertionPoint.at_block_begin(body):
                    attributes = {"sym_name": ir.StringAttr.get(symbol),
                                  "function_type": ir.TypeAttr.get(
                                      ir.FunctionType.get([type_], [type_])),
                                  "sym_visibility": ir.StringAttr.get("private")}
                    if probability is not None:
                        attributes["fsdp.dropout"] = ir.FloatAttr.get_f64(probability)
                    ir.Operation.create("func.func", attributes=attributes, regions=1)
            with ir.InsertionPoint(op), op.location:
                call = ir.Operation.create(
                    "func.call", results=[type_], operands=[op.operands[0]],
                    attributes={"callee": ir.FlatSymbolRefAttr.get(declarations[key])})
            result = call.results[0]
            if op.results[0].type != type_:
                with ir.InsertionPoint(op), op.location:
                    result = ir.Operation.create("torch.tensor_static_info_cast",
                                                 results=[op.results[0].type],
                                                 operands=[result]).results[0]
            op.results[0].replace_all_uses_with(result)
            op.erase()
    return stops
