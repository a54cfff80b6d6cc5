"""The memory-bound kernels of a step of Llama with torchtitan, beside matrix products and attention, with the bytes that
they read and write.

Derived from the sources of torchtitan 9dec370 and PyTorch 2.6 (the release next to the nightly of 2024-12-23 that the
tables name), not measured. A kernel reads and writes each of its tensors once, unless its source says otherwise. If a
source leaves the extent of fusion open, the lower number of bytes counts.
"""
from collections import namedtuple


class Model(namedtuple("Model", "T D K F V LAYERS recomputes")):
    """T tokens of a rank, D hidden, K width of keys, F intermediate, V vocabulary; whether the backward recomputes layers."""

    @property
    def layer(self):
        """Parameters of a layer."""
        return 2 * self.D * self.D + 2 * self.K * self.D + 3 * self.F * self.D + 2 * self.D

    @property
    def root(self):
        """All other parameters."""
        return 2 * self.V * self.D + self.D


LLAMA_8B = Model(2 * 8192, 4096, 1024, 14336, 128256, 32, True)

# TFLOP/s of FlashAttention-2 on an H100 with 8,192 tokens and heads of 128 dimensions, forward and backward: with a causal mask, and without
# (Dao-AILab/flash-attention, pull request 1791).
CAUSAL, WHOLE = (284.1, 287.1), (369.9, 290.6)
# The part of this rate that PyTorch's scaled_dot_product_attention has, which torchtitan calls: 287.7 TFLOP/s forward, without a mask, in launches of
# 122 ms (pytorch/benchmark, pull request 2296). In launches of up to 6.6 ms it has 335 (pull request 2443). A step keeps the GPU at its power limit.
SDPA = 287.7 / WHOLE[0]

# runs: kernels of the kind in a step; bytes: of all of these kernels.
Kernel = namedtuple("Kernel", "group what source runs bytes")


def attention(m, length, forwards, parts=1, context=1):
    """Returns the seconds of attention at these rates, for one of `parts` ranks that divide the heads, and of `context` ranks that
    divide sequences of `length` tokens. Each rank computes the causal half of its own block. Of each other block, it computes half of the queries,
    or half of the keys (torch/distributed/tensor/experimental/_attention.py)."""
    half = 4 * m.T * (length / context) * (m.D / parts) / 2
    seconds = [half * (forwards / forward + 2.5 / backward) / 1e12 for forward, backward in (CAUSAL, WHOLE)]
    return m.LAYERS * (seconds[0] + (context - 1) * seconds[1]) / SDPA


def fsdp(m, ranks, size=2):
    """Returns the copies into and out of FSDP2's buffers, with layers of `size` bytes a parameter. All layers but the last are gathered twice
    (parallelize_llama.py), the rest once (root: _fsdp_state.py)."""
    groups, layers = 2 * m.LAYERS - 1 + 1, (2 * m.LAYERS - 1) * m.layer
    gathered = size * layers + 2 * m.root
    source = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: "
    return [
        Kernel("FSDP2", "shard f32 to bf16", source + "_get_param_all_gather_inputs", groups, (4 * (layers + m.root) + gathered) // ranks),
        Kernel("FSDP2", "into the gather's buffer", source + "all_gather_copy_in", groups, 2 * gathered // ranks),
        Kernel("FSDP2", "out of the gather's buffer", source + "split_with_sizes_copy", groups, 2 * gathered),
        Kernel("FSDP2", "gradients bf16 to f32, into the reduction's buffer", source + "chunk_cat", m.LAYERS + 1,
               (2 + 4) * (m.LAYERS * m.layer + m.root)),
    ]


def update(m, ranks, is_fused):
    """Returns the kernels of clip_grad_norm_ and AdamW with fused=True or foreach=True, outside of torch.compile."""
    shard = (m.LAYERS * m.layer + m.root) // ranks
    clip, adam = "torch/nn/utils/clip_grad.py: ", "torch/optim/adamw.py: _multi_tensor_adamw: "
    passes = [("mul_ parameters", 2), ("lerp_ first moments", 3), ("mul_ second moments", 2), ("addcmul_ second moments", 3),
              ("sqrt", 2), ("div_", 2), ("add_", 2), ("addcdiv_ parameters", 4)]
    if is_fused:
        passes, adam = [("adamw_ all tensors", 7)], "torch/optim/adamw.py: _fused_adamw: "
    prefix = "_fused_" if is_fused else "_foreach_"
    return [Kernel("clip", "norm of gradients", clip + "_foreach_norm", 1, 4 * shard),
            Kernel("clip", "scale gradients", clip + "_foreach_mul_", 1, 8 * shard)] + [
        Kernel("AdamW", name, adam + prefix + name.split(" ")[0], 1, 4 * tensors * shard) for name, tensors in passes]


def loss(m):
    """Returns the kernels of loss_fn in train.py, which is not compiled. A row of logits exceeds shared memory, the rows of all blocks L2."""
    logits, softmax = m.T * m.V, "aten/src/ATen/native/cuda/SoftMax.cu: "
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


def ends(m):
    """Returns the kernels of the embedding and the last norm, which are not compiled (parallelize_llama.py compiles layers)."""
    return [
        Kernel("ends", "embedding", "model.py: tok_embeddings", 1, (2 + 2) * m.T * m.D),
        Kernel("ends", "gradient of the embedding: zeros, sums", "aten/src/ATen/native/cuda/Embedding.cu", 2, 2 * m.V * m.D + (2 + 2) * m.T * m.D),
    ] + [Kernel("ends", "last norm: " + name, "norms.py: RMSNorm", 1, size * m.T * m.D) for name, size in NORM_FORWARD + NORM_BACKWARD]


def eager_layers(m):
    """Returns the kernels of a layer of model.py without torch.compile: one per operation, for forward, recomputation and backward. The
    recomputation covers saved tensors, so not the last residual."""
    rows, again = [], int(m.recomputes)

    def add(what, source, runs, size):
        rows.append(Kernel("layers", what, source, runs * m.LAYERS, runs * size * m.LAYERS))

    for name, size in NORM_FORWARD:
        add("norm: " + name, "norms.py: RMSNorm", 2 * (1 + again), size * m.T * m.D)
    for name, size in NORM_BACKWARD:
        add("norm, backward: " + name, "norms.py: RMSNorm", 2, size * m.T * m.D)
    for name, size in (("float", 6), ("complex product", 8), ("type_as", 6)):
        for width in (m.D, m.K):
            add(f"rotary embedding of {width}: {name}", "model.py: apply_rotary_emb", 2 + again, size * m.T * width)
    add("repeat keys, values", "model.py: repeat_kv", 2 * (1 + again), 2 * m.T * (m.K + m.D))
    add("repeat, backward: sum", "model.py: repeat_kv", 2, 2 * m.T * (m.K + m.D))
    add("silu", "model.py: FeedForward", 1 + again, 4 * m.T * m.F)
    add("gate * up", "model.py: FeedForward", 1 + again, 6 * m.T * m.F)
    add("gate * up, backward", "model.py: FeedForward", 2, 6 * m.T * m.F)
    add("silu, backward", "model.py: FeedForward", 1, 6 * m.T * m.F)
    add("residual", "model.py: TransformerBlock", 2 + again, 6 * m.T * m.D)
    add("sum of gradients of what several read", "model.py: two residuals, inputs of wq, wk, wv, of w1, w3", 2 + 2 + 1, 6 * m.T * m.D)
    return rows


def compiled_layers(m, gradients=(3, 2)):
    """Returns the kernels of a compiled layer, whose norms read these numbers of gradients. Operations between products and attention are fused as far
    as the order permits: a kernel reads its inputs once, and writes only tensors that products, attention or the backward read."""
    rows, again = [], int(m.recomputes)

    def add(what, runs, size):
        rows.append(Kernel("layers", what, "parallelize_llama.py: apply_compile", runs * m.LAYERS, runs * size * m.LAYERS))

    add("norm", 1 + again, 4 * m.T * m.D)
    # torch/_inductor/lowering.py compiles no op of complex numbers, so that model.py's products of them are kernels between those of casts.
    add("rotary embedding of queries: f32, complex product, bf16", 2 + again, (6 + 8 + 6) * m.T * m.D)
    add("rotary embedding of keys: f32, complex product", 2 + again, (6 + 8 + 2) * m.T * m.K)
    add("rotary embedding of keys, repeated; values, repeated", 2 * (1 + again), 2 * m.T * (m.K + m.D))
    add("repeat, backward: sum, rotary embedding", 2, 2 * m.T * (m.K + m.D))
    add("residual, norm", 1 + again, (2 + 2 + 2 + 2) * m.T * m.D)
    add("silu, gate * up", 1, 6 * m.T * m.F)
    add("silu, gate * up: backward", 1, (3 * 2 + 3 * 2) * m.T * m.F)
    add("residual", 1, 6 * m.T * m.D)
    add("norm of attention, backward: input", 1, (gradients[0] * 2 + 2 + 2 + 2) * m.T * m.D)
    add("norm of attention, backward: weight", 1, (gradients[0] * 2 + 2) * m.T * m.D)
    add("norm of the rest, backward: input", 1, (gradients[1] * 2 + 2 + 2 + 2) * m.T * m.D)
    add("norm of the rest, backward: weight", 1, (gradients[1] * 2 + 2) * m.T * m.D)
    return rows


def compiled_loss(m):
    """Returns the kernels of the loss with torch.compile (components/loss.py at 820504e): maxima, sums and gradient read bf16 logits."""
    return [Kernel("loss", "maxima, sums, gradient", "components/loss.py: build_cross_entropy_loss", 3, (2 + 2 + 2 + 2) * m.T * m.V)]


def gathered_rows(m, parts, is_full):
    """Returns the kernels of one of `parts` ranks of the axis tensor on all T rows. Collectives join or divide dimension 0, so that a copy follows
    each gather along the sequence, and precedes each scatter; before a scatter of gradients, it adds those of several products. The recomputation
    gathers again and, with full checkpointing, scatters attention again (parallelize_llama.py saves scatters)."""
    rows, size = [], m.T * m.D
    collectives, lookup = "torch/distributed/_functional_collectives.py: ", "aten/src/ATen/native/cuda/Embedding.cu"

    def add(what, source, runs, each):
        rows.append(Kernel("axis tensor", what, source, runs, runs * each * size))

    add("rows in order after a gather: forward, again, gradients of scatters", collectives + "all_gather_tensor", 6 * m.LAYERS, 2 + 2)
    add("rows in order for a scatter", collectives + "reduce_scatter_tensor", (2 + int(is_full)) * m.LAYERS, 2 + 2)
    add("gradients by wq, wk, wv, in order for a scatter", collectives + "reduce_scatter_tensor", m.LAYERS, 3 * 2 + 2)
    add("gradients by w1, w3, in order for a scatter", collectives + "reduce_scatter_tensor", m.LAYERS, 2 * 2 + 2)
    add("rows in order after a gather: head, gradient of the embedding", collectives + "all_gather_tensor", 2, 2 + 2)
    add("rows in order for a scatter: embedding, gradient of the head", collectives + "reduce_scatter_tensor", 2, 2 + 2)
    add("embedding, its gradient", lookup, 2, 2 + 2)
    add("embedding: rows of other ranks are zero", "torch/distributed/tensor/_ops/_embedding_ops.py: _apply_mask", 1, 2 * (parts - 1) / parts)
    return rows


def tensor_kernels(m, ranks, parts, is_full):
    """Returns the kernels of a rank of the mesh shard=ranks, tensor=parts. Norms, residuals, the loss and the update have 1/parts of the bytes."""
    split = fsdp(m, ranks) + update(m, ranks, True) + compiled_loss(m) + ends(m)[2:] + compiled_layers(m, (1, 1))
    return [kernel._replace(bytes=kernel.bytes / parts) for kernel in split] + gathered_rows(m, parts, is_full)


def float8(m, ranks, is_gathered, is_full):
    """Returns the kernels of Float8Linear in all products of layers (torchtitan/float8.py), besides products. A cast reads bf16, writes f8 in the
    orders of rows and of columns, and reads f8 again; largest values of inputs and gradients are found by the kernels before (torchao eab345c:
    torchao/float8/roofline_utils.py). The forward needs no columns if the backward casts again. If shards are cast before they are gathered, the
    backward copies weights into the order of columns (float8_ops.py: preprocess_addmm)."""
    source, weights = "torchao/float8: ", m.LAYERS * m.layer
    inputs, gradients = m.LAYERS * m.T * (3 * m.D + m.F), m.LAYERS * m.T * (3 * m.D + 2 * m.K + 2 * m.F)
    # The product of w2 is not computed again, so that its input is cast by columns only.
    again = 5 * inputs - 2 * m.LAYERS * m.T * m.F if is_full else 5 * inputs
    rows = [Kernel("Float8", "inputs to f8: forward", source + "hp_tensor_to_float8_dynamic", 4 * m.LAYERS, (2 + 1) * inputs),
            Kernel("Float8", "inputs to f8: again", source + "hp_tensor_to_float8_dynamic", 4 * m.LAYERS, again),
            Kernel("Float8", "gradients to f8", source + "hp_tensor_to_float8_dynamic", 7 * m.LAYERS, 5 * gradients)]
    if is_gathered:
        return rows + [Kernel("Float8", "largest values of shards", source + "precompute_float8_dynamic_scale_for_fsdp", 1, 4 * weights // ranks),
                       Kernel("Float8", "weights by columns", source + "preprocess_addmm", 7 * m.LAYERS, (1 + 1) * weights)]
    return rows + [Kernel("Float8", "weights to f8: forward", source + "hp_tensor_to_float8_dynamic", 14 * m.LAYERS, (2 + 2 + 1) * weights),
                   Kernel("Float8", "weights to f8: backward", source + "hp_tensor_to_float8_dynamic", 14 * m.LAYERS, (2 + 5) * weights)]


def ring(m, context, rank):
    """Returns the kernels of a rank beside the attention of blocks, for forward, recomputation and backward. In the forward, keys and values are
    gathered, and a kernel merges each block into f32 sums. In the backward, gradients of keys and values travel in f32. A kernel adds each block, and
    another one copies the sums into the buffer to send, as in the code that PyTorch 2.6.0 compiles for each rank. Blocks of ranks before this one have
    half of the keys, others half of the queries. The first sum reads bf16, the last one writes it."""
    rows, size, source = [], m.LAYERS * m.T * m.D, "torch/distributed/tensor/experimental/_attention.py: "

    def add(what, name, runs, each):
        rows.append(Kernel("axis context", what, source + name, runs * m.LAYERS, each * size))

    sums = 0
    for block in range(1, context):
        sums += (2 if block == 1 else 4) + (2 if block <= rank else 1) + (2 if block == context - 1 else 4)
    add("keys and values into one buffer: forward, again", "_templated_ring_attention", 2, 2 * (4 + 4))
    add("merge a block: forward, again", "_SDPAMerger", 2 * (context - 1), 2 * sums)
    add("add a block's gradients of queries", "_templated_ring_attention_backward", context - 1, sums)
    add("own gradients of keys and values", "_templated_ring_attention_backward", 1, 4 + 8)
    add("add a block's gradients of keys and values", "_templated_ring_attention_backward", context - 1,
        rank * (8 + 2 + 8) + (context - 1 - rank) * (8 + 4 + 8))
    add("sums of gradients of keys and values into the buffer to send", "_templated_ring_attention_backward", context - 1, (context - 1) * (8 + 8))
    add("gradients of keys and values in f32, not bf16, where heads are summed", "_templated_ring_attention_backward", 0, 8 - 4)
    return rows


def context_kernels(m, ranks, context):
    """Returns the kernels of a rank of the mesh shard=ranks/context, context=context, with Float8 and all layers computed again. Shards are cast to f8
    before they are gathered only if the axis shard exists (torchtitan/float8.py). All ranks wait for the one whose kernels move most bytes."""
    is_gathered = context < ranks
    moved = [ring(m, context, rank) for rank in range(context)] if context > 1 else [[]]
    return (fsdp(m, ranks, 1 if is_gathered else 2) + update(m, ranks, False) + loss(m) + ends(m) + compiled_layers(m)
            + float8(m, ranks, is_gathered, True) + max(moved, key=lambda rows: sum(row.bytes for row in rows)))


def kernels(m, ranks, is_compiled, is_fused=False, is_float8=False):
    return (fsdp(m, ranks, 1 if is_float8 else 2) + update(m, ranks, is_fused) + loss(m) + ends(m)
            + (compiled_layers(m) if is_compiled else eager_layers(m)) + (float8(m, ranks, True, False) if is_float8 else []))
