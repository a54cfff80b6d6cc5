# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes the values of an exported graph that depend on no input.

========================  ==========================================================
value                     becomes
========================  ==========================================================
equal elements            ``full``
integers of a lookup      ``arange`` if they count along one dimension, else a
                          constant (tables of indices, buckets)
computed by sin or cos    a constant (rotary and sinusoidal tables), never trained
any other value           unchanged: masks stay comparisons of positions, from which
                          the compiler raises attention and skips blocks
========================  ==========================================================
"""

from __future__ import annotations

import operator

import torch
import torch.utils._pytree as pytree

aten = torch.ops.aten
_LOOKUPS = (aten.embedding.default, aten.index.Tensor, aten.index_select.default,
            aten.gather.default)
_WAVES = (aten.sin.default, aten.cos.default)
_MOST_BYTES = 64 << 20


def _count_along(value: torch.Tensor) -> tuple[int, int, int] | None:
    """Checks whether the integers are start + step * position along one dim. If they are, returns
    (dim, start, step). Otherwise returns None."""
    if value.dtype != torch.int64:
        return None
    for dim in range(value.dim()):
        row = value.select(dim, 0)
        start = int(row.flatten()[0])
        if value.shape[dim] < 2 or not bool((row == start).all()):
            continue
        step = int(value.select(dim, 1).flatten()[0]) - start
        want = start + step * torch.arange(value.shape[dim])
        shape = [-1 if d == dim else 1 for d in range(value.dim())]
        if step and bool((value == want.view(shape)).all()):
            return dim, start, step
    return None


def _like(node, value) -> dict:
    """Returns the metadata of a node that replaces ``node`` and whose result is ``value``."""
    return {"val": value, **{key: node.meta[key] for key in ("stack_trace",) if key in node.meta}}


class _Folder:
    def __init__(self, program):
        self.module = program.graph_module
        self.graph = self.module.graph
        self.known: dict = {}
        self.waves: set = set()
        self.count = 0

    def evaluate(self) -> None:
        """Evaluates all nodes that depend on no input."""
        for node in self.graph.nodes:
            if node.target is operator.getitem and node.args[0] in self.known:
                self.known[node] = self.known[node.args[0]][node.args[1]]
                continue
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            if node.target._schema.is_mutable or not self._is_small(node):
                continue
            if node.target.namespace == "fsdp_mlir":
                continue
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                continue
            if all(n in self.known for n in node.all_input_nodes):
                args, kwargs = pytree.tree_map_only(torch.fx.Node, self.known.__getitem__,
                                                    (node.args, node.kwargs))
                self.known[node] = node.target(*args, **kwargs)
                if node.target in _WAVES or any(n in self.waves for n in node.all_input_nodes):
                    self.waves.add(node)

    @staticmethod
    def _is_small(node) -> bool:
        value = node.meta.get("val")
        return (not isinstance(value, torch.Tensor)
                or value.numel() * value.element_size() <= _MOST_BYTES)

    def _as_full(self, node, value) -> None:
        with self.graph.inserting_before(node):
            full = self.graph.call_function(
                aten.full.default, (list(value.shape), value.flatten()[0].item()),
                {"dtype": value.dtype, "device": value.device, "pin_memory": False})
        full.meta = _like(node, node.meta["val"].contiguous())
        node.replace_all_uses_with(full)

    def _as_count(self, node, value, users, dim, start, step) -> None:
        n, graph = value.shape[dim], self.graph
        shape = [n if d == dim else 1 for d in range(value.dim())]
        with graph.inserting_before(node):
            at = graph.call_function(
                aten.arange.start_step, (start, start + n * step, step),
                {"dtype": value.dtype, "device": value.device, "pin_memory": False})
            shaped = graph.call_function(aten.view.default, (at, shape))
            spread = graph.call_function(aten.expand.default, (shaped, list(value.shape)))
        at.meta = _like(node, node.meta["val"].new_empty(n))
        shaped.meta = _like(node, at.meta["val"].view(shape))
        spread.meta = _like(node, shaped.meta["val"].expand(value.shape))
        for user in users:
            user.replace_input_with(node, spread)

    def _as_constant(self, node, value, users) -> None:
        name = f"_folded_{self.count}"
        self.count += 1
        self.module.register_buffer(name, value.contiguous().clone())
        with self.graph.inserting_before(node):
            constant = self.graph.get_attr(name)
            # FxImporter accepts a get_attr only if the clone is its only user.
            clone = self.graph.call_function(aten.clone.default, (constant,))
        constant.meta = _like(node, node.meta["val"].contiguous())
        clone.meta = dict(constant.meta)
        for user in users:
            user.replace_input_with(node, clone)

    def rewrite(self) -> None:
        for node, value in self.known.items():
            users = [user for user in node.users if user not in self.known]
            if (not isinstance(value, torch.Tensor) or value.numel() == 0
                    or node.target == aten.full.default):
                continue
            # Equal integers, such as document ids, are folded even if all users of the node are
            # folded themselves.
            if ((users or not value.is_floating_point())
                    and bool((value == value.flatten()[0]).all())):
                self._as_full(node, value)
            elif not users:
                continue
            elif value.dtype == torch.int64 and any(user.target in _LOOKUPS for user in users):
                line = _count_along(value)
                if line:
                    self._as_count(node, value, users, *line)
                else:
                    self._as_constant(node, value, users)
            elif node in self.waves and value.is_floating_point():
                self._as_constant(node, value, users)
        self.graph.eliminate_dead_code()
        self.module.recompile()


def _clone_in_lists(graph) -> None:
    """In operand lists, such as lists of indices, replaces constants and inputs by clones.

    This is necessary because FxImporter accepts only results of ops as elements of operand lists.
    """
    for node in list(graph.nodes):
        for argument in node.args:
            if not isinstance(argument, (list, tuple)):
                continue
            for one in argument:
                if isinstance(one, torch.fx.Node) and one.op in ("placeholder", "get_attr"):
                    if not isinstance(one.meta.get("val"), torch.Tensor) or node.op == "output":
                        continue
                    with graph.inserting_before(node):
                        clone = graph.call_function(aten.clone.default, (one,))
                    clone.meta = _like(node, one.meta["val"])
                    node.replace_input_with(one, clone)


def fold(program) -> int:
    """Folds the graph of an exported program in place. Returns the number of new constants."""
    folder = _Folder(program)
    folder.evaluate()
    folder.rewrite()
    _clone_in_lists(folder.graph)
    folder.module.recompile()
    return folder.count
