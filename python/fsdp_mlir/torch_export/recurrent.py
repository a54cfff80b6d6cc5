# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces a recurrent op with dropout between its layers by one op for each layer.

    lstm(x, 3 layers, dropout=p)  ->  lstm(dropout(lstm(dropout(lstm(x), p)), p))

If the original op is bidirectional, the op for a layer also computes both directions. The final
states of all layers are concatenated in the order of the layers.
"""

from __future__ import annotations

import operator

import torch

from .nodes import given, insert

aten = torch.ops.aten
_KINDS = (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input)


def drops_between_layers(node) -> bool:
    if node.target not in _KINDS:
        return False
    named = given(node)
    return bool(named["train"] and named["dropout"] > 0 and named["num_layers"] > 1)


def divide(node, dropout) -> int:
    """Replaces ``node`` by one op per layer, with a dropout marker between consecutive layers.

    ``dropout`` is the marker op. The first dim of its operand must count samples (markers.py).
    Returns the number of markers.
    """
    named = given(node)
    layers, directions = named["num_layers"], 2 if named["bidirectional"] else 1
    is_lstm = node.target is aten.lstm.input
    states = list(named["hx"]) if is_lstm else [named["hx"]]
    weights = named["params"]
    count = len(weights) // layers
    x, after = named["input"], []
    for layer in range(layers):
        if layer > 0:
            x = _drop(node, dropout, x, named["dropout"], named["batch_first"])
        own = [insert(node, aten.slice.Tensor, state, 0, layer * directions, (layer + 1) * directions)
               for state in states]
        made = insert(node, node.target, x, own if is_lstm else own[0],
                      list(weights[layer * count:(layer + 1) * count]), named["has_biases"], 1, 0.0,
                      named["train"], named["bidirectional"], named["batch_first"])
        x = insert(node, operator.getitem, made, 0)
        after.append([insert(node, operator.getitem, made, i + 1) for i in range(len(states))])
    results = [x] + [insert(node, aten.cat.default, list(one)) for one in zip(*after)]
    for user in list(node.users):
        user.replace_all_uses_with(results[user.args[1]])
        node.graph.erase_node(user)
    node.graph.erase_node(node)
    return layers - 1


def _drop(node, dropout, x, probability, batch_first):
    turn = lambda y: y if batch_first else insert(node, aten.transpose.int, y, 0, 1)
    return turn(insert(node, dropout, turn(x), float(probability)))
