# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helper functions for nodes of exported graphs."""

from __future__ import annotations

import torch


def insert(before, target, *arguments, **keywords):
    """Inserts an op before a node, with the node's source location, and computes the op's result on
    fake tensors."""
    value = lambda x: torch.fx.node.map_arg(x, lambda n: n.meta["val"])
    with before.graph.inserting_before(before):
        made = before.graph.call_function(target, arguments, keywords)
    made.meta = {key: before.meta[key] for key in ("stack_trace",) if key in before.meta}
    made.meta["val"] = target(*value(arguments), **value(keywords))
    return made


def given(node) -> dict:
    """Returns {name: argument} for all arguments of the op of a node."""
    names = [argument.name for argument in node.target._schema.arguments]
    return {**dict(zip(names, node.args)), **node.kwargs}
