"""The memory-bound kernels of torchtitan's step of Llama 3.1 8B, beside matrix products and attention, with the bytes that
they read and write.

Derived from the sources of torchtitan 9dec370 and PyTorch 2.6 (the release next to the nightly of 2024-12-23 that the
tables name), not measured. A kernel reads and writes each of its tensors once, unless its source says otherwise. If a
source leaves the extent of fusion open, the lower number of bytes counts. Letters: T tokens of a rank, D hidden, K width of
keys, F intermediate, V vocabulary.
"""
from collections import namedtuple

T, D, K, F, V, LAYERS = 2 * 8192, 4096, 1024, 14336, 128256, 32
LAYER = 2 * D * D + 2 * K * D + 3 * F * D + 2 * D  # parameters
ROOT = 2 * V * D + D

# runs: kernels of the kind in a step; bytes: of all of these kernels.
Kernel = namedtuple("Kernel", "group what source runs bytes")


def fsdp(ranks):
    """Returns the copies into and out of FSDP2's buffers. All layers but the last are gathered twice (parallelize_llama.py), the rest once
    (root: _fsdp_state.py)."""
    groups = 2 * LAYERS - 1 + 1
    gathered = (2 * LAYERS - 1) * LAYER + ROOT
    source = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: "
    return [
        Kernel("FSDP2", "shard f32 to bf16", source + "_get_param_all_gather_inputs", groups, (4 + 2) * gathered // ranks),
        Kernel("FSDP2", "into the gather's buffer", source + "all_gather_copy_in", groups, (2 + 2) * gathered // ranks),
        Kernel("FSDP2", "out of the gather's buffer", source + "split_with_sizes_copy", groups, (2 + 2) * gathered),
        Kernel("FSDP2", "gradients bf16 to f32, into the reduction's buffer", source + "chunk_cat", LAYERS + 1,
               (2 + 4) * (LAYERS * LAYER + ROOT)),
    ]


def update(ranks):
    """Returns the kernels of clip_grad_norm_ and AdamW with foreach=True, outside of torch.compile."""
    shard = (LAYERS * LAYER + ROOT) // ranks
    clip, adam = "torch/nn/utils/clip_grad.py: ", "torch/optim/adamw.py: _multi_tensor_adamw: "
    passes = [("mul_ parameters", 2), ("lerp_ first moments", 3), ("mul_ second moments", 2), ("addcmul_ second moments", 3),
              ("sqrt", 2), ("div_", 2), ("add_", 2), ("addcdiv_ parameters", 4)]
    return [Kernel("clip", "norm of gradients", clip + "_foreach_norm", 1, 4 * shard),
            Kernel("clip", "scale gradients", clip + "_foreach_mul_", 1, 8 * shard)] + [
        Kernel("AdamW", name, adam + "_foreach_" + name.split(" ")[0], 1, 4 * tensors * shard) for name, tensors in passes]


def loss():
    """Returns the kernels of loss_fn in train.py, which is not compiled. A row of logits exceeds shared memory, the rows of all blocks L2."""
    logits, softmax = T * V, "aten/src/ATen/native/cuda/SoftMax.cu: "
    return [
        Kernel("loss", "logits to f32", "train.py: pred.float()", 1, (2 + 4) * logits),
        Kernel("loss", "log_softmax: maximum, sum, result", softmax + "cunn_SoftMaxForward", 1, (3 * 4 + 4) * logits),
        Kernel("loss", "nll_loss backward: zeros", "aten/src/ATen/native/cuda/Loss.cu", 1, 4 * logits),
        Kernel("loss", "log_softmax backward: sum, result", softmax + "cunn_SoftMaxBackward", 1, (4 + 4 + 4 + 4) * logits),
        Kernel("loss", "gradient to bf16", "train.py: pred.float()", 1, (4 + 2) * logits),
    ]


# Bytes per element of T x D for RMSNorm of torchtitan/models/norms.py, by operation.
NORM_FORWARD = [("float", 6), ("pow", 8), ("mean", 4), ("mul", 8), ("type_as", 6), ("mul weight", 4)]
NORM_BACKWARD = [("mul weight: input", 4), ("mul weight: weight", 6), ("sum over tokens", 2), ("type_as", 6), ("mul: input", 8),
                 ("mul: factor", 12), ("sum over hidden", 4), ("mean", 4), ("pow: pow", 8), ("pow: mul", 8), ("pow: mul", 12),
                 ("sum of both", 12), ("float", 6)]


def ends():
    """Returns the kernels of the embedding and the last norm, which are not compiled (parallelize_llama.py compiles layers)."""
    return [
        Kernel("ends", "embedding", "model.py: tok_embeddings", 1, (2 + 2) * T * D),
        Kernel("ends", "gradient of the embedding: zeros, sums", "aten/src/ATen/native/cuda/Embedding.cu", 2, 2 * V * D + (2 + 2) * T * D),
    ] + [Kernel("ends", "last norm: " + name, "norms.py: RMSNorm", 1, size * T * D) for name, size in NORM_FORWARD + NORM_BACKWARD]


def eager_layers():
    """Returns the kernels of a layer of model.py without torch.compile: one per operation, for forward, recomputation and backward. The
    recomputation covers saved tensors, so not the last residual."""
    rows = []

    def add(what, source, runs, size):
        rows.append(Kernel("layers", what, source, runs * LAYERS, runs * size * LAYERS))

    for name, size in NORM_FORWARD:
        add("norm: " + name, "norms.py: RMSNorm", 2 * 2, size * T * D)
    for name, size in NORM_BACKWARD:
        add("norm, backward: " + name, "norms.py: RMSNorm", 2, size * T * D)
    for name, size in (("float", 6), ("complex product", 8), ("type_as", 6)):
        for width in (D, K):
            add(f"rotary embedding of {width}: {name}", "model.py: apply_rotary_emb", 3, size * T * width)
    add("repeat keys, values", "model.py: repeat_kv", 2 * 2, 2 * T * (K + D))
    add("repeat, backward: sum", "model.py: repeat_kv", 2, 2 * T * (K + D))
    add("silu", "model.py: FeedForward", 2, 4 * T * F)
    add("gate * up", "model.py: FeedForward", 2, 6 * T * F)
    add("gate * up, backward", "model.py: FeedForward", 2, 6 * T * F)
    add("silu, backward", "model.py: FeedForward", 1, 6 * T * F)
    add("residual", "model.py: TransformerBlock", 3, 6 * T * D)
    add("sum of gradients of what several read", "model.py: two residuals, inputs of wq, wk, wv, of w1, w3", 2 + 2 + 1, 6 * T * D)
    return rows


def compiled_layers():
    """Returns the kernels of a compiled layer. Operations between products and attention are fused as far as the order permits: a kernel
    reads its inputs once, and writes only tensors that products, attention or the backward read."""
    rows = []

    def add(what, runs, size):
        rows.append(Kernel("layers", what, "parallelize_llama.py: apply_compile", runs * LAYERS, runs * size * LAYERS))

    add("norm", 2, 4 * T * D)
    add("rotary embedding of queries", 3, 4 * T * D)
    add("rotary embedding of keys, repeated; values, repeated", 2 * 2, 2 * T * (K + D))
    add("repeat, backward: sum, rotary embedding", 2, 2 * T * (K + D))
    add("residual, norm", 2, (2 + 2 + 2 + 2) * T * D)
    add("silu, gate * up", 1, 6 * T * F)
    add("silu, gate * up: again, backward", 1, (3 * 2 + 3 * 2) * T * F)
    add("residual", 1, 6 * T * D)
    add("norm of attention, backward: input", 1, (3 * 2 + 2 + 2 + 2) * T * D)
    add("norm of attention, backward: weight", 1, (3 * 2 + 2) * T * D)
    add("norm of the rest, backward: input", 1, (2 * 2 + 2 + 2 + 2) * T * D)
    add("norm of the rest, backward: weight", 1, (2 * 2 + 2) * T * D)
    return rows


def kernels(ranks, is_compiled):
    return fsdp(ranks) + update(ranks) + loss() + ends() + (compiled_layers() if is_compiled else eager_layers())
