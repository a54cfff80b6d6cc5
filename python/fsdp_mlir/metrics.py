# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Metrics of a step, and the limit for steps whose loss or gradient norm is not finite."""

from __future__ import annotations

import dataclasses

from .native import refuse

_WITH_LOSS_SCALE = 50  # a dynamic loss scale may need up to 50 steps to become small enough


@dataclasses.dataclass(frozen=True)
class Metrics:
    """Metrics of one step of all ranks.

    ``loss`` is the mean loss, ``grad_norm`` is the global gradient norm before clipping, ``lr`` is
    the learning rate, and ``tokens`` is the number of tokens. ``finite`` is False if the loss or
    ``grad_norm`` is not finite. Such a step does not change any state. ``loss_scale`` is the loss
    scale of the next step, or 0 if the model has none.
    """

    step: int
    loss: float
    grad_norm: float
    lr: float
    tokens: int
    finite: bool
    loss_scale: float

    def __float__(self) -> float:
        return self.loss


class NonFiniteLimit:
    """Counts consecutive non-finite steps. ``given`` is the argument ``on_nonfinite`` of Run."""

    def __init__(self, given: str | int | None):
        self._in_a_row = 0
        self._most: int | None = None
        if given == "raise":
            self._most = 1
        elif given == "skip":
            self._most = 1 << 62
        elif isinstance(given, int) and not isinstance(given, bool) and given > 0:
            self._most = given
        elif given is not None:
            refuse("on_nonfinite: expected \"raise\", \"skip\" or a number above 0, found "
                   f"{given!r}")

    def is_reached(self, finite: bool, adapts: bool) -> bool:
        """Counts a step. Returns true if NonFiniteError must be raised after this step. ``adapts``
        states whether the model has a dynamic loss scale."""
        self._in_a_row = 0 if finite else self._in_a_row + 1
        most = self._most if self._most is not None else (_WITH_LOSS_SCALE if adapts else 1)
        return self._in_a_row >= most
