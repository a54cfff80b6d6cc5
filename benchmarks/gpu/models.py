"""The models that are trained: their shapes, the options of the tools for them, and the FLOPs of a training step.

An entry is a dict: name, family (gpt2, llama), layers, hidden, heads, kv_heads, intermediate, vocab, seq, batch (sequences per step over all ranks),
ranks (a list: the model is compiled for each of these numbers of ranks), gemm (a list: for one rank, the model is compiled with each of these values
of --gemm), steps, lr.
"""


def gpt2(name, layers, hidden, heads, vocab, seq, batch, **others):
    return {"name": name, "family": "gpt2", "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": heads, "intermediate": 4 * hidden,
            "vocab": vocab, "seq": seq, "batch": batch, **others}


def llama(name, layers, hidden, heads, kv_heads, intermediate, vocab, seq, batch, **others):
    return {"name": name, "family": "llama", "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "intermediate": intermediate,
            "vocab": vocab, "seq": seq, "batch": batch, **others}


BOTH = ["nvptx", "cublaslt"]


def tiny():
    """Yields models that are small enough for an emulator and for compute-sanitizer."""
    plan = {"ranks": [1, 2, 4], "gemm": BOTH, "steps": 3, "lr": 1e-2}
    yield gpt2("gpt2-tiny", 1, 32, 2, 256, 16, 4, **plan)
    yield llama("llama-tiny", 1, 32, 2, 1, 64, 256, 16, 4, **plan)


def checked():
    """Yields models that a CPU can train for 50 steps. Each of their attention heads has 64 columns, so these models use the same kernels as large
    models. The learning rate is low, because training steps amplify rounding differences. On CPUs, the losses of one rank and of four ranks differ by
    9e-5 at a learning rate of 3e-4, but by 2e-2 at 1e-3."""
    plan = {"ranks": [1, 2, 4], "gemm": BOTH, "steps": 50, "lr": 3e-4}
    yield gpt2("gpt2-small", 4, 256, 4, 256, 256, 4, **plan)
    yield llama("llama-small", 4, 256, 4, 2, 768, 256, 256, 4, **plan)


def timed():
    plan = {"ranks": [1], "gemm": BOTH, "steps": 0, "lr": 3e-4}
    yield gpt2("gpt2-124m", 12, 768, 12, 50257, 2048, 8, **plan)
    yield llama("llama-1b", 22, 2048, 32, 4, 5632, 32000, 2048, 4, **plan)


def generator_options(model, ranks):
    """Returns options of fsdp-modelgen that generate the model with the batch of one rank."""
    options = [model["family"], f"--layers={model['layers']}", f"--hidden={model['hidden']}", f"--heads={model['heads']}",
               f"--intermediate={model['intermediate']}", f"--vocab={model['vocab']}", f"--seq={model['seq']}", f"--batch={model['batch'] // ranks}"]
    return options + ([f"--kv-heads={model['kv_heads']}"] if model["family"] == "llama" else [])


def compiler_options(ranks):
    """Returns the options of fsdp-compile. The parameters are bf16 with f32 masters. The gathered parameters are kept from forward to backward, as in
    the PyTorch run."""
    return [f"--mesh=shard={ranks}", "--param-dtype=bf16", "--overlap", "--reshard-after-forward=false"]


TOKENS = "tokens.txt"  # file whose bytes are the training tokens


def train_options(model, tokens):
    """Returns options of fsdp-run, which are the same for CPU and GPU."""
    return [f"--text={tokens}", "--val-batches=0", f"--steps={model['steps']}", f"--lr={model['lr']}"]


def variants(model):
    """Returns a pair (number of ranks, value of --gemm) for each artifact of the model."""
    return [(ranks, gemm) for ranks in model["ranks"] for gemm in (model["gemm"] if ranks == 1 else model["gemm"][:1])]


def artifact_name(model, ranks, gemm):
    return f"{model['name']}.{ranks}.{gemm}.fsdp"


def product_parameters(model):
    """Returns the number of elements of all parameters that are operands of matrix products. The embedding table counts as such a parameter, because
    it is also the weight of the output head."""
    d, kv = model["hidden"], model["hidden"] // model["heads"] * model["kv_heads"]
    layer = 2 * d * d + 2 * d * kv + (2 if model["family"] == "gpt2" else 3) * d * model["intermediate"]
    return model["layers"] * layer + model["vocab"] * d


FLOPS_RULE = ("FLOPs of a token: 6 N + 6 L S D, with N the parameters of matrix products (lookups and positions are none), L layers, S tokens of a sequence, "
              "D columns; attention is counted as causal, half of all pairs; what is computed again counts once")


def flops_per_token(model):
    return 6 * product_parameters(model) + 6 * model["layers"] * model["seq"] * model["hidden"]


def tokens_per_step(model):
    return model["batch"] * model["seq"]
