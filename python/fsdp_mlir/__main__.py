# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m fsdp_mlir: exports models to files for the command-line tools, converts checkpoints."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pathlib
import sys

from .checkpoint import command as checkpoint
from .errors import FsdpError

_EXPORT = """\
Writes OUT.mlir, which fsdp-compile reads, and OUT.safetensors with the weights, which
fsdp-run --init reads. Parameters have the names of the framework.

examples:
  python -m fsdp_mlir export --hf config.json --batch 2 --seq 128 -o llama.mlir
  python -m fsdp_mlir export --hf ./my-model --batch 2 --seq 128 -o llama.mlir
  python -m fsdp_mlir export my_model.py:make -o mine.mlir

MODULE:FUNCTION is the path of a Python file or the name of a Python module, and the name
of a function in it. The function returns the arguments of fsdp_mlir.export_torch,
(module, example_batch) or (module, example_batch, loss), or those of
fsdp_mlir.export_jax, (loss, params, *batch).
"""


def _load(spec: str):
    """Returns the function that FILE.py:NAME or MODULE:NAME names. Raises FsdpError."""
    where, separator, name = spec.rpartition(":")
    if not separator:
        raise FsdpError(f"{spec}: expected MODULE:FUNCTION")
    try:
        if where.endswith(".py"):
            found = importlib.util.spec_from_file_location("fsdp_mlir_user_model", where)
            module = importlib.util.module_from_spec(found)
            sys.modules[found.name] = module
            found.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
        return getattr(module, name)
    except (ImportError, FileNotFoundError, AttributeError) as error:
        raise FsdpError(f"{spec}: {error}") from error


def _from_hugging_face(path: str, batch: int, sequence: int, attention: str, weights: str):
    """Returns (module, example_batch) for a causal language model of the package transformers."""
    import torch
    import transformers

    place = pathlib.Path(path)
    folder = place.parent if place.is_file() else place
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = attention
    config.use_cache = False
    has_values = any(folder.glob("*.safetensors"))
    if weights == "file" and not has_values:
        raise FsdpError(f"{folder}: expected .safetensors files of weights beside the config")
    if weights == "file" or weights == "auto" and has_values:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation=attention, dtype=torch.float32)
    elif weights == "none":
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.config.use_cache = False
    tokens = torch.zeros((batch, sequence), dtype=torch.int64)
    return model.train(), (tokens, tokens), causal_loss


def causal_loss(model, tokens, targets):
    """Returns the mean cross-entropy of each position's target. Targets of -100 do not count."""
    import torch

    logits = model(input_ids=tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(),
                                             ignore_index=-100)


def _export(options: argparse.Namespace) -> int:
    from . import export_jax, export_torch

    if bool(options.hf) == bool(options.model):
        raise FsdpError("expected MODULE:FUNCTION or --hf, and not both")
    if options.hf:
        arguments = _from_hugging_face(options.hf, options.batch, options.seq, options.attention,
                                       options.weights)
    else:
        arguments = _load(options.model)()
        if not isinstance(arguments, tuple) or len(arguments) < 2:
            raise FsdpError(f"{options.model}: expected a tuple of the arguments of export_torch "
                            f"or export_jax, found {type(arguments).__name__}")
    is_jax = callable(arguments[0]) and not hasattr(arguments[0], "named_parameters")
    model = export_jax(*arguments) if is_jax else export_torch(*arguments)
    for path in model.save(options.output):
        print(f"wrote {path}")
    print(model)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns the exit code: 0 on success, and 2 for bad usage or for a model that
    cannot be exported.

    For the command ``ckpt``, returns the exit code of fsdp-ckpt.
    """
    parser = argparse.ArgumentParser(prog="python -m fsdp_mlir", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = commands.add_parser("export", help="write a model of PyTorch or JAX as MLIR",
                                 description=_EXPORT,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    export.add_argument("model", nargs="?", metavar="MODULE:FUNCTION")
    export.add_argument("--hf", metavar="PATH", help="config.json or folder of a transformers model")
    export.add_argument("--batch", type=int, default=1, metavar="N",
                        help="with --hf: examples per rank (default 1)")
    export.add_argument("--seq", type=int, default=128, metavar="N",
                        help="with --hf: tokens per example (default 128)")
    export.add_argument("--attention", choices=["eager", "sdpa"], default="sdpa",
                        help="with --hf: implementation that is traced (default sdpa)")
    export.add_argument("--weights", choices=["auto", "file", "random", "none"], default="auto",
                        help="with --hf: values from the folder, drawn, or none (default: the "
                             "folder's, else drawn)")
    export.add_argument("-o", "--output", required=True, metavar="OUT.mlir")
    export.set_defaults(run=_export)
    checkpoint.add_commands(commands.add_parser(
        "ckpt", help="inspect, verify and convert checkpoints (fsdp-ckpt)"))
    options = parser.parse_args(arguments)
    if options.run is not _export:
        return checkpoint.run(options)
    try:
        return options.run(options)
    except (FsdpError, TypeError, ValueError) as error:
        print(f"python -m fsdp_mlir: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
