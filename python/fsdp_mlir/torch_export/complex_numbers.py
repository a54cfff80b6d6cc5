# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites complex numbers of an exported graph as pairs of real tensors.

==============================  =====================================================
op                              parts
==============================  =====================================================
view_as_complex(x)              x[..., 0] and x[..., 1]
complex(a, b), polar(r, t)      a and b; r cos t and r sin t
views, sums, negation           the op of each part, with the same arguments
products                        a c - b d and a d + b c
view_as_real(z)                 both parts side by side
==============================  =====================================================

The two parts of a complex tensor are its real and its imaginary tensor. Each part has the shape of
the complex tensor, so the numbers of dims do not change. Rotary embeddings become products with
sine and cosine. An op that the table does not contain is an error.
"""

from __future__ import annotations

import operator

import torch

from ..errors import ExportError
from .markers import STOP
from .nodes import insert
from .source import place

aten = torch.ops.aten
_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32,
         torch.complex128: torch.float64}
# Ops that are applied separately to the real and to the imaginary part. Real tensors among the
# operands of such an op are indices.
_OF_EACH_PART = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default,
    aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default,
    aten.permute.default, aten.transpose.int, aten.slice.Tensor, aten.select.int,
    aten.index.Tensor, aten.index_select.default, aten.gather.default, aten.clone.default,
    aten.alias.default, aten.detach.default, aten.split_with_sizes.default, aten.split.Tensor,
    aten.unbind.int, aten.repeat.default, aten.flip.default, aten.sum.dim_IntList,
    aten.sum.default, aten.mean.dim, aten.mean.default, aten.neg.default, operator.getitem, STOP}
_SUMS = {aten.add.Tensor: aten.add.Tensor, aten.add.Scalar: aten.add.Tensor,
         aten.sub.Tensor: aten.sub.Tensor, aten.sub.Scalar: aten.sub.Tensor}
_PRODUCTS = {aten.mul.Tensor: aten.mul.Tensor, aten.mul.Scalar: aten.mul.Tensor,
             aten.mm.default: aten.mm.default, aten.bmm.default: aten.bmm.default}
_QUOTIENTS = {aten.div.Tensor, aten.div.Scalar}
_CONJUGATES = {aten._conj.default, aten.conj_physical.default}
_FILLED = {aten.full.default: 1, aten.full_like.default: 1, aten.scalar_tensor.default: 0}


def _values(node) -> list:
    value = node.meta.get("val")
    return [v for v in (value if isinstance(value, (tuple, list)) else [value])
            if isinstance(v, torch.Tensor)]


def is_complex(node) -> bool:
    """Returns true if a node of a graph has complex values."""
    return any(value.is_complex() for value in _values(node))


class _Rewriter:
    """Creates the two parts of each complex node, in the order of the graph."""

    def __init__(self, program):
        self.program, self.module = program, program.graph_module
        self.graph = self.module.graph
        self.parts: dict = {}
        self.node = None

    def call(self, target, *arguments, **keywords):
        return insert(self.node, target, *arguments, **keywords)

    def full(self, number: float):
        """Returns a part of the current node whose elements are all ``number``."""
        value = _values(self.node)[0]
        dtype = _REAL[value.dtype]
        with self.graph.inserting_before(self.node):
            made = self.graph.call_function(
                aten.full.default, (list(value.shape), number),
                {"dtype": dtype, "device": value.device, "pin_memory": False})
        made.meta = {"val": value.new_empty(value.shape, dtype=dtype)}
        return made

    def pair(self, x):
        """Returns the pair (real, imaginary) of an operand. A part that is zero is None."""
        if isinstance(x, torch.fx.Node):
            return self.parts.get(x, (x, None))
        return (x.real or None, x.imag or None) if isinstance(x, complex) else (x, None)

    def refuse(self):
        return ExportError(
            f"'{self.node.target}' computes with complex numbers; expected view_as_complex, polar, "
            "products, sums and views of them: write it with real and imaginary parts",
            *place(self.node))

    def add(self, op, a, b):
        if a is None or b is None:
            if a is None and b is not None and op is aten.sub.Tensor:
                return -b if isinstance(b, (int, float)) else self.call(aten.neg.default, b)
            return b if a is None else a
        return self.call(op, a, b)

    def multiply(self, op, a, b):
        """Returns the product of two pairs. A part that is zero is None."""
        times = lambda x, y: None if x is None or y is None else self.call(op, x, y)
        return (self.add(aten.sub.Tensor, times(a[0], b[0]), times(a[1], b[1])),
                self.add(aten.add.Tensor, times(a[0], b[1]), times(a[1], b[0])))

    def square(self, pair):
        """Returns the squared absolute value of a pair."""
        squares = [self.call(aten.mul.Tensor, x, x) for x in pair if x is not None]
        return squares[0] if len(squares) == 1 else self.call(aten.add.Tensor, *squares)

    def divide(self, a, b):
        if not isinstance(self.node.args[1], torch.fx.Node):
            inverse = 1 / complex(self.node.args[1])
            return self.multiply(aten.mul.Tensor, a, self.pair(inverse))
        if b[1] is None:
            return tuple(None if x is None else self.call(aten.div.Tensor, x, b[0]) for x in a)
        conjugate = (b[0], self.call(aten.neg.default, b[1]))
        product, square = self.multiply(aten.mul.Tensor, a, conjugate), self.square(b)
        return tuple(self.call(aten.div.Tensor, x, square) for x in product)

    def wave(self, size, angle):
        """Returns the parts of ``size`` e^(i ``angle``), where a ``size`` of None means 1."""
        cosine, sine = self.call(aten.cos.default, angle), self.call(aten.sin.default, angle)
        if size is None:
            return cosine, sine
        return tuple(self.call(aten.mul.Tensor, size, x) for x in (cosine, sine))

    def absolute(self, pair):
        """Returns the absolute value of a pair. As in torch, the derivative of the absolute value
        at zero is zero."""
        square = self.square(pair)
        is_zero = self.call(aten.eq.Scalar, square, 0.0)
        one = self.call(aten.full_like.default, square, 1.0, pin_memory=False)
        root = self.call(aten.sqrt.default, self.call(aten.where.self, is_zero, one, square))
        return self.call(aten.where.self, is_zero, square, root)

    def constant(self):
        """Returns the parts of the current node, which is a complex constant or buffer."""
        signature, name = self.program.graph_signature, self.node.name
        path = (signature.inputs_to_lifted_tensor_constants.get(name) or
                signature.inputs_to_buffers.get(name))
        value = self.program.constants.get(path, self.program.state_dict.get(path))
        if value is None:
            raise ExportError(f"'{path or name}' is a complex parameter or input; expected real ones: "
                              "pass real and imaginary parts", *place(self.node))
        found = []
        first = next(node for node in self.graph.nodes if node.op != "placeholder")
        value = value.detach().resolve_conj()
        for part, values in (("real", value.real), ("imaginary", value.imag)):
            self.module.register_buffer(f"_{part}_{name}", values.contiguous().clone())
            with self.graph.inserting_before(first):
                constant = self.graph.get_attr(f"_{part}_{name}")
                # FxImporter accepts a get_attr only if the clone is its only user.
                clone = self.graph.call_function(aten.clone.default, (constant,))
            made = self.node.meta["val"]
            constant.meta = {"val": made.new_empty(made.shape, dtype=_REAL[made.dtype])}
            clone.meta = dict(constant.meta)
            found.append(clone)
        return tuple(found)

    def of_each_part(self):
        found = []
        for i in (0, 1):
            take = lambda n: self.parts[n][i] if n in self.parts else n
            found.append(self.call(self.node.target, *torch.fx.node.map_arg(self.node.args, take),
                                   **torch.fx.node.map_arg(self.node.kwargs, take)))
        return tuple(found)

    def mixed(self, operands: list, make):
        """Returns the two parts of an op such as cat, some of whose operands may be real."""
        pairs = [self.pair(x) for x in operands]
        zero = lambda like: self.call(aten.full_like.default, like, 0.0, pin_memory=False)
        return tuple(make([zero(p[0]) if p[i] is None else p[i] for p in pairs]) for i in (0, 1))

    def filled(self):
        """Returns the parts of the current node, an op that fills a tensor with one number."""
        value = complex(self.node.args[_FILLED[self.node.target]])
        return (value.real or None, value.imag or None)

    def convert(self):
        """Returns the parts of the current node, a conversion to another complex type."""
        dtype = _REAL[self.node.kwargs.get("dtype") or self.node.meta["val"].dtype]
        keywords = {**self.node.kwargs, "dtype": dtype}
        real, imaginary = self.pair(self.node.args[0])
        return tuple(None if x is None else self.call(aten._to_copy.default, x, **keywords)
                     for x in (real, imaginary))

    def make(self):
        """Returns the parts of the current node, which is complex."""
        node, target = self.node, self.node.target
        if node.op == "placeholder":
            return self.constant()
        pairs = [self.pair(x) for x in node.args[:2]]
        if target is aten.view_as_complex.default:
            return tuple(self.call(aten.select.int, node.args[0], -1, i) for i in (0, 1))
        if target is aten.complex.default:
            return tuple(node.args)
        if target is aten.polar.default:
            return self.wave(*node.args)
        if target is aten.exp.default:
            real, imaginary = pairs[0]
            return self.wave(self.call(aten.exp.default, real), imaginary)
        if target in _SUMS and "alpha" not in node.kwargs and len(node.args) == 2:
            return tuple(self.add(_SUMS[target], a, b) for a, b in zip(*pairs))
        if target in _PRODUCTS:
            return self.multiply(_PRODUCTS[target], *pairs)
        if target in _QUOTIENTS and len(node.args) == 2 and not node.kwargs:
            return self.divide(*pairs)
        if target in _CONJUGATES:
            return pairs[0][0], self.call(aten.neg.default, pairs[0][1])
        if target is aten.where.self:
            return self.mixed(node.args[1:], lambda x: self.call(target, node.args[0], *x))
        if target is aten.cat.default:
            return self.mixed(node.args[0], lambda x: self.call(target, x, *node.args[1:]))
        if target is aten._to_copy.default:
            return self.convert()
        if target in _FILLED:
            return self.filled()
        if target in _OF_EACH_PART:
            return self.of_each_part()
        raise self.refuse()

    def complete(self, found):
        """Returns the parts ``found`` as nodes with the shape and precision of the current node."""
        wanted = [(v.shape, _REAL[v.dtype]) for v in _values(self.node)]
        made = []
        for part in found:
            if not isinstance(part, torch.fx.Node):
                part = self.full(part or 0.0)
            values = _values(part)
            if len(values) == 1 and values[0].shape != wanted[0][0]:
                part = self.call(aten.expand.default, part, list(wanted[0][0]))
            if len(values) == 1 and values[0].dtype != wanted[0][1]:
                part = self.call(aten._to_copy.default, part, dtype=wanted[0][1])
            if [(v.shape, v.dtype) for v in _values(part)] != wanted:
                raise self.refuse()
            made.append(part)
        return tuple(made)

    def read(self):
        """Returns the replacement of the current node, which has complex operands and a real
        result."""
        node, source = self.node, self.node.args[0]
        pair = self.parts.get(source) if isinstance(source, torch.fx.Node) else None
        if pair is None:
            raise self.refuse()
        if node.target is aten.view_as_real.default:
            wide = [self.call(aten.unsqueeze.default, x, -1) for x in pair]
            return self.call(aten.cat.default, wide, -1)
        if node.target in (aten.real.default, aten.imag.default):
            return pair[node.target is aten.imag.default]
        if node.target is aten.abs.default:
            return self.absolute(pair)
        raise self.refuse()

    def run(self) -> None:
        for node in list(self.graph.nodes):
            self.node = node
            if is_complex(node):
                self.parts[node] = self.complete(self.make())
            elif any(is_complex(source) for source in node.all_input_nodes):
                if "_assert_tensor_metadata" in str(node.target):
                    self.graph.erase_node(node)
                    continue
                node.replace_all_uses_with(self.read())
        if self.parts:
            self.graph.eliminate_dead_code()


def to_pairs(program) -> int:
    """Replaces the complex nodes of a program. Returns the number of complex nodes. Raises
    ExportError."""
    rewriter = _Rewriter(program)
    rewriter.run()
    rewriter.graph.lint()
    rewriter.module.recompile()
    return len(rewriter.parts)
