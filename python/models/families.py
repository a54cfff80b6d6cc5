# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models of many families. Each model has two layers of width 64 and batches of 2 x 32 tokens.

A family is a function that returns (module, example batch of one rank, loss). The batches that are used for training have the shapes of this example.
The integers in these batches are at most the largest integer of the example. The floats are normally distributed.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, SEQUENCE, BATCH, WIDTH, HEADS, LAYERS = 256, 32, 2, 64, 4, 2
FAMILIES: dict[str, tuple[str, object]] = {}
# Additional arguments of export_torch for some families. Bloom's GeLUFunction is a torch.autograd.Function whose backward is the derivative of its
# forward.
OPTIONS: dict[str, dict] = {"Bloom": {"custom_gradients": "differentiate"}}


def family(kind: str, name: str | None = None):
    """Registers a function as a family. ``kind`` is a group of families, such as "decoder"."""

    def register(function):
        FAMILIES[name or function.__name__] = (kind, function)
        return function

    return register


def tokens(limit: int = VOCABULARY, *shape: int) -> torch.Tensor:
    """Returns an example of ids. Its largest element is limit - 1."""
    example = torch.zeros(shape or (BATCH, SEQUENCE), dtype=torch.int64)
    example.view(-1)[0] = limit - 1
    return example


def language_loss(model, tokens, targets):
    logits = model(input_ids=tokens).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def masked_loss(model, tokens, targets):
    """Returns the loss of a masked language model. Targets that are not below a quarter of the vocabulary are replaced by -100 and do not count."""
    return language_loss(model, tokens, torch.where(targets < VOCABULARY // 4, targets, -100))


def sequence_loss(model, source, tokens, targets):
    logits = model(input_ids=source, decoder_input_ids=tokens).logits
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def class_loss(model, images, labels):
    return F.cross_entropy(model(images).logits, labels)


def _transformers(name: str, config: dict, head: str, attention: str = "sdpa"):
    """Returns a model of transformers that uses the implementation ``attention``, or "eager" if the model does not support it."""
    import transformers

    made = getattr(transformers, name + "Config")(**config)
    made._attn_implementation = attention
    made.use_cache = False
    for key in vars(made):
        if "dropout" in key or key.endswith("_pdrop") or key.endswith("_drop"):
            if isinstance(getattr(made, key), float):
                setattr(made, key, 0.0)
    torch.manual_seed(0)
    try:
        return getattr(transformers, name + head)(made).train()
    except ValueError:  # The model supports only the implementation "eager".
        made._attn_implementation = "eager"
        return getattr(transformers, name + head)(made).train()


_PLAIN = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
              num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
              max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
_GROUPED = dict(_PLAIN, num_key_value_heads=2)


def _decoder(name: str, attention: str = "sdpa", head: str = "ForCausalLM", kind="decoder",
             drop: tuple = (), **config):
    def make():
        base = {k: v for k, v in {**_GROUPED, **config}.items() if k not in drop}
        return _transformers(name, base, head, attention), (tokens(), tokens()), language_loss

    FAMILIES[name] = (kind, make)


_NO_GROUPS = ("num_key_value_heads",)
_GPT2_NAMES = dict(n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=64, n_inner=2 * WIDTH)
_decoder("GPT2", head="LMHeadModel", drop=(
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "num_key_value_heads"), **_GPT2_NAMES)
_decoder("GPTBigCode", drop=(
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "num_key_value_heads"), **_GPT2_NAMES)
_decoder("Llama")
_decoder("Mistral", sliding_window=8)
_decoder("Qwen2")
_decoder("Qwen3", head_dim=16)
_decoder("Phi")
_decoder("Phi3")
_decoder("GPTNeoX", drop=_NO_GROUPS)
_decoder("OPT", drop=_NO_GROUPS, ffn_dim=128, word_embed_proj_dim=WIDTH)
_decoder("Bloom", drop=_NO_GROUPS, n_layer=LAYERS, n_head=HEADS)
_decoder("Falcon", drop=_NO_GROUPS)
_decoder("Gemma", head_dim=16)
_decoder("Gemma2", head_dim=16, query_pre_attn_scalar=16, sliding_window=8)
_decoder("GPTJ", drop=("hidden_size", "num_hidden_layers", "num_attention_heads",
                       "intermediate_size", "max_position_embeddings", "num_key_value_heads"),
         rotary_dim=8, **_GPT2_NAMES)
_decoder("CodeGen", drop=("hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "max_position_embeddings", "num_key_value_heads"),
         rotary_dim=8, **_GPT2_NAMES)
_decoder("StableLm")
_decoder("Olmo")
_decoder("Olmo2")
_decoder("Starcoder2")
_decoder("Cohere")
_decoder("Granite")
_decoder("SmolLM3")
_decoder("Mpt", drop=tuple(k for k in _GROUPED if k not in ("vocab_size",)), d_model=WIDTH,
         n_heads=HEADS, n_layers=LAYERS, max_seq_len=64)
_decoder("GPTNeo", drop=_NO_GROUPS + ("num_attention_heads", "num_hidden_layers"),
         num_layers=LAYERS, num_heads=HEADS, attention_types=[[["global", "local"], 1]],
         window_size=8)
_decoder("XGLM", drop=_NO_GROUPS + ("hidden_size", "num_attention_heads", "num_hidden_layers",
                                    "intermediate_size"),
         d_model=WIDTH, num_layers=LAYERS, attention_heads=HEADS, ffn_dim=128)
_decoder("BioGpt", drop=_NO_GROUPS)
_decoder("Glm", head_dim=16)
_decoder("Nemotron")
_decoder("Mixtral", kind="mixture of experts", num_local_experts=4,
         experts_implementation="batched_mm")
_decoder("Qwen2Moe", kind="mixture of experts", num_experts=4, num_experts_per_tok=2,
         moe_intermediate_size=32, shared_expert_intermediate_size=64)
# DeepseekV2 uses complex numbers to compute rotary embeddings.
_decoder("DeepseekV2", kind="mixture of experts", num_key_value_heads=HEADS, q_lora_rank=16,
         kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=4,
         num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1, n_group=1,
         topk_group=1, n_shared_experts=1)


def _encoder(name: str, head: str = "ForMaskedLM", attention: str = "sdpa", drop: tuple = (),
             **config):
    def make():
        base = {k: v for k, v in {**_PLAIN, **config}.items() if k not in drop}
        module = _transformers(name, base, head, attention)
        return module, (tokens(VOCABULARY), tokens()), masked_loss

    FAMILIES[name] = ("encoder", make)


_encoder("Bert")
_encoder("Roberta", pad_token_id=1)
_encoder("DistilBert", dim=WIDTH, hidden_dim=2 * WIDTH, n_layers=LAYERS, n_heads=HEADS)
_encoder("Electra", embedding_size=WIDTH)
_encoder("Albert", embedding_size=32)
_encoder("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16)
_encoder("MPNet")
_encoder("ModernBert", global_attn_every_n_layers=2, local_attention=8, reference_compile=False)


def _sequence(name: str, **config):
    def make():
        module = _transformers(name, dict(vocab_size=VOCABULARY, pad_token_id=0, **config),
                               "ForConditionalGeneration" if name != "Marian" else "MTModel")
        return module, (tokens(), tokens(), tokens()), sequence_loss

    FAMILIES[name] = ("encoder-decoder", make)


_D = dict(d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS,
          encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=128,
          decoder_ffn_dim=128, max_position_embeddings=64, decoder_start_token_id=1,
          bos_token_id=1, eos_token_id=2)
_sequence("T5", d_model=WIDTH, d_kv=16, d_ff=128, num_layers=LAYERS, num_heads=HEADS,
          decoder_start_token_id=0)
_sequence("Bart", **_D)
_sequence("Pegasus", **_D)
_sequence("Marian", **_D, decoder_vocab_size=VOCABULARY)


def _vision(name: str, inference: bool = False, **config):
    """Returns a family. If ``inference`` is set, batch norms use their running statistics."""

    def make():
        module = _transformers(name, dict(image_size=32, num_channels=3, num_labels=10, **config),
                               "ForImageClassification")
        module.train(not inference)
        return (module, (torch.zeros(BATCH, 3, 32, 32), tokens(10, BATCH)), class_loss)

    FAMILIES[name] = ("vision", make)


_V = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
          intermediate_size=128, patch_size=8)
_vision("ViT", **_V)
_vision("DeiT", **_V)
_vision("Swin", embed_dim=32, depths=[1, 1], num_heads=[2, 4], window_size=4, patch_size=4,
        drop_path_rate=0.0)
_vision("ConvNext", hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], drop_path_rate=0.0)
_vision("Beit", **_V, use_relative_position_bias=True, drop_path_rate=0.0)
_vision("ResNet", embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1],
        layer_type="basic", inference=True)


@family("speech")
def Wav2Vec2():
    import transformers

    config = transformers.Wav2Vec2Config(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=128, conv_dim=(32, 32), conv_stride=(5, 2), conv_kernel=(10, 3),
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, vocab_size=32,
        hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0,
        final_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0, apply_spec_augment=False,
        attn_implementation="eager")
    torch.manual_seed(0)
    module = transformers.Wav2Vec2ForSequenceClassification(config)

    def loss(model, signal, labels):
        return F.cross_entropy(model(signal).logits, labels)

    return module.train(), (torch.zeros(BATCH, 400), tokens(2, BATCH)), loss


@family("speech", "Whisper encoder")
def whisper():
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        d_model=WIDTH, encoder_layers=LAYERS, encoder_attention_heads=HEADS, encoder_ffn_dim=128,
        num_mel_bins=16, max_source_positions=SEQUENCE, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, encoder_layerdrop=0.0)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = WhisperEncoder(config)
            self.head = nn.Linear(WIDTH, 10)

        def forward(self, features):
            return self.head(self.encoder(features).last_hidden_state.mean(1))

    def loss(model, features, labels):
        return F.cross_entropy(model(features), labels)

    torch.manual_seed(0)
    return Model(), (torch.zeros(BATCH, 16, 2 * SEQUENCE), tokens(10, BATCH)), loss


@family("decoder", "Llama with labels")
def llama_labels():
    """Returns a model that computes its own loss from ``labels``, and the inputs of the model by name."""
    module = FAMILIES["Llama"][1]()[0]
    return module, {"input_ids": tokens(), "labels": tokens()}, None


@family("recurrent")
def LSTM():
    return _recurrent(nn.LSTM)


@family("recurrent")
def GRU():
    return _recurrent(nn.GRU)


def _recurrent(kind):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = kind(WIDTH, WIDTH, num_layers=LAYERS, batch_first=True)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            return self.head(self.layers(self.embed(tokens))[0])

    torch.manual_seed(0)
    return Model(), (tokens(VOCABULARY, BATCH, 8), tokens(VOCABULARY, BATCH, 8)), _plain_loss


def _plain_loss(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


_decoder("Mamba", kind="recurrent", drop=_NO_GROUPS + ("num_attention_heads",
                                                     "max_position_embeddings"),
         state_size=4, conv_kernel=4, time_step_rank=8)


@family("encoder-decoder", "nn.Transformer")
def transformer():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.body = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, 128, dropout=0.0,
                                       batch_first=True)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, source, target):
            mask = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
            return self.head(self.body(self.embed(source), self.embed(target), tgt_mask=mask,
                                       tgt_is_causal=True))

    def loss(model, source, tokens, targets):
        return F.cross_entropy(model(source, tokens).flatten(0, 1), targets.flatten())

    torch.manual_seed(0)
    return Model(), (tokens(), tokens(), tokens()), loss


@family("convolution", "Conv1d")
def convolution():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3) for _ in range(LAYERS))
            self.norm = nn.GroupNorm(4, WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.embed(tokens).transpose(1, 2)
            for layer in self.layers:
                x = x + F.gelu(layer(F.pad(x, (2, 0))), approximate="tanh")
            return self.head(self.norm(x).transpose(1, 2))

    torch.manual_seed(0)
    return Model(), (tokens(), tokens()), _plain_loss
