# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints: .safetensors files, Hugging Face indices, PyTorch DCP, and saves of fsdp-run.

    from fsdp_mlir import checkpoint

    source = checkpoint.open_checkpoint("run1")
    for name, entry in source.entries.items():
        print(name, entry.dtype, entry.shape)
    checkpoint.convert(source, "model.safetensors", dtype="bf16")

The command fsdp-ckpt calls these functions. They need no PyTorch, and never execute a pickle.
"""

from .command import main
from .conversion import convert
from .formats import Source, open_checkpoint
from .tensors import CheckpointError, Entry

__all__ = ["CheckpointError", "Entry", "Source", "convert", "main", "open_checkpoint"]
