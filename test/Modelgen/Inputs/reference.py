"""The models of fsdp-modelgen in plain Python, written from the papers' formulas.

Numbers are Python floats (f64), tensors nested lists; nothing is shared with
the generator. Weights are looked up under their Hugging Face names.
"""

import math


def matmul(x, w):
    """x [n, k] times w [k, o]."""
    columns = list(zip(*w))
    return [[math.fsum(a * b for a, b in zip(row, col)) for col in columns] for row in x]


def transpose(w):
    return [list(col) for col in zip(*w)]


def add(x, y):
    return [[a + b for a, b in zip(r, s)] for r, s in zip(x, y)]


def add_bias(x, b):
    return [[a + c for a, c in zip(row, b)] for row in x]


def softmax(row):
    top = max(row)
    e = [math.exp(v - top) for v in row]
    total = math.fsum(e)
    return [v / total for v in e]


def cross_entropy(logits, targets):
    loss = 0.0
    for row, t in zip(logits, targets):
        top = max(row)
        loss += top + math.log(math.fsum(math.exp(v - top) for v in row)) - row[t]
    return loss / len(targets)


def attend(q, k, v, scale):
    """One head: q, k, v [t, d]."""
    out = []
    for t, query in enumerate(q):
        weights = softmax([scale * math.fsum(a * b for a, b in zip(query, k[s])) for s in range(t + 1)])
        out.append([math.fsum(w * v[s][d] for s, w in enumerate(weights)) for d in range(len(query))])
    return out


def attention(q, k, v, heads, kv_heads, scale):
    """q [t, heads·d], k and v [t, kv_heads·d], one sequence."""
    dim = len(q[0]) // heads
    cut = lambda x, h: [row[h * dim : (h + 1) * dim] for row in x]
    parts = [attend(cut(q, h), cut(k, h * kv_heads // heads), cut(v, h * kv_heads // heads), scale) for h in range(heads)]
    return [sum((part[t] for part in parts), []) for t in range(len(q))]


ACTIVATIONS = {
    "gelu_new": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
}


def layer_norm(x, w, b, eps):
    out = []
    for row in x:
        mean = math.fsum(row) / len(row)
        var = math.fsum((v - mean) ** 2 for v in row) / len(row)
        out.append([(v - mean) / math.sqrt(var + eps) * g + c for v, g, c in zip(row, w, b)])
    return out


def rms_norm(x, w, eps):
    out = []
    for row in x:
        rms = math.sqrt(math.fsum(v * v for v in row) / len(row) + eps)
        out.append([v / rms * g for v, g in zip(row, w)])
    return out


def gpt2(c, p, tokens):
    """Logits of one sequence."""
    act = ACTIVATIONS[c.get("activation_function", "gelu_new")]
    eps = c["layer_norm_epsilon"]
    conv = lambda x, name: add_bias(matmul(x, p[name + ".weight"]), p[name + ".bias"])
    norm = lambda x, name: layer_norm(x, p[name + ".weight"], p[name + ".bias"], eps)
    n = c["n_embd"]
    x = [[a + b for a, b in zip(p["wte.weight"][t], p["wpe.weight"][i])] for i, t in enumerate(tokens)]
    for layer in range(c["n_layer"]):
        h = f"h.{layer}."
        scale = 1 / math.sqrt(n // c["n_head"]) if c.get("scale_attn_weights", True) else 1.0
        if c.get("scale_attn_by_inverse_layer_idx"):
            scale /= layer + 1
        qkv = conv(norm(x, h + "ln_1"), h + "attn.c_attn")
        q, k, v = ([row[i * n : (i + 1) * n] for row in qkv] for i in range(3))
        x = add(x, conv(attention(q, k, v, c["n_head"], c["n_head"], scale), h + "attn.c_proj"))
        inner = [[act(v) for v in row] for row in conv(norm(x, h + "ln_2"), h + "mlp.c_fc")]
        x = add(x, conv(inner, h + "mlp.c_proj"))
    head = p["wte.weight"] if c.get("tie_word_embeddings", True) else p["lm_head.weight"]
    return matmul(norm(x, "ln_f"), transpose(head))


def frequencies(c, dim):
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    theta = rope.get("rope_theta", c.get("rope_theta", 10000.0))
    kind = rope.get("rope_type", rope.get("type", "default"))
    out = []
    for i in range(0, dim, 2):
        f = 1 / theta ** (i / dim)
        if kind == "linear":
            f /= rope["factor"]
        elif kind == "llama3":
            old, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
            wave = 2 * math.pi / f
            if wave > old / low:
                f /= rope["factor"]
            elif wave >= old / high:
                smooth = (old / wave - low) / (high - low)
                f = (1 - smooth) * f / rope["factor"] + smooth * f
        out.append(f)
    return out


def rotate(x, heads, freqs):
    """q·cos + rotate_half(q)·sin, per head."""
    dim = len(x[0]) // heads
    out = []
    for t, row in enumerate(x):
        new = []
        for h in range(heads):
            head = row[h * dim : (h + 1) * dim]
            half = [-v for v in head[dim // 2 :]] + head[: dim // 2]
            angle = [t * f for f in freqs + freqs]
            new += [v * math.cos(a) + r * math.sin(a) for v, r, a in zip(head, half, angle)]
        out.append(new)
    return out


def llama(c, p, tokens):
    """Logits of one sequence."""
    act = ACTIVATIONS[c.get("hidden_act", "silu")]
    heads, eps = c["num_attention_heads"], c["rms_norm_eps"]
    kv_heads = c.get("num_key_value_heads") or heads
    dim = c.get("head_dim") or c["hidden_size"] // heads
    freqs = frequencies(c, dim)

    def linear(x, name):
        y = matmul(x, transpose(p[name + ".weight"]))
        return add_bias(y, p[name + ".bias"]) if name + ".bias" in p else y

    x = [p["model.embed_tokens.weight"][t] for t in tokens]
    for layer in range(c["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        y = rms_norm(x, p[name + "input_layernorm.weight"], eps)
        q = rotate(linear(y, name + "self_attn.q_proj"), heads, freqs)
        k = rotate(linear(y, name + "self_attn.k_proj"), kv_heads, freqs)
        mixed = attention(q, k, linear(y, name + "self_attn.v_proj"), heads, kv_heads, 1 / math.sqrt(dim))
        x = add(x, linear(mixed, name + "self_attn.o_proj"))
        y = rms_norm(x, p[name + "post_attention_layernorm.weight"], eps)
        gate, up = linear(y, name + "mlp.gate_proj"), linear(y, name + "mlp.up_proj")
        gated = [[act(g) * u for g, u in zip(r, s)] for r, s in zip(gate, up)]
        x = add(x, linear(gated, name + "mlp.down_proj"))
    head = p["model.embed_tokens.weight"] if c.get("tie_word_embeddings") else p["lm_head.weight"]
    return matmul(rms_norm(x, p["model.norm.weight"], eps), transpose(head))


def loss(config, params, tokens, targets):
    model = gpt2 if config["model_type"] == "gpt2" else llama
    logits = sum((model(config, params, row) for row in tokens), [])
    return cross_entropy(logits, sum(targets, []))
