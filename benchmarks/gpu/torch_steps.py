"""Times a model's training step in PyTorch, either eager or compiled. The step uses fully_shard over one rank, fused AdamW, and bf16 parameters with
f32 masters.

    python3 torch_steps.py MODEL.json --how=compile|eager [--device=cuda] [--steps=10] [--turns=3]

MODEL.json contains one of the models of models.py, which is a dict. The last line of output is a JSON object. It is {"ms": list of the mean
milliseconds of a step in each turn, "loss", "peak_bytes"}, or {"missing": reason} if the steps cannot be run. The host waits for the GPU only at the
end of each turn. With --how=compile, each block is compiled as a function of its own, as in torchtitan. The last norm, the head and the loss are
compiled together as another function.
"""
import argparse
import json
import math
import os
import sys
import time

try:
    import torch
    from torch import nn
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.nn import functional as F
except ImportError as error:
    print(json.dumps({"missing": f"no PyTorch with fully_shard: {error}"}))
    sys.exit(0)


class Attention(nn.Module):
    def __init__(self, model, bias):
        super().__init__()
        d, self.heads, self.kv_heads = model["hidden"], model["heads"], model["kv_heads"]
        self.size = d // self.heads
        self.qkv = nn.Linear(d, (self.heads + 2 * self.kv_heads) * self.size, bias=bias)
        self.out = nn.Linear(d, d, bias=bias)

    def forward(self, x, rotary):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, -1, self.size).transpose(1, 2).split((self.heads, self.kv_heads, self.kv_heads), 1)
        if rotary is not None:
            q, k = rotate(q, rotary), rotate(k, rotary)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return self.out(o.transpose(1, 2).reshape(b, s, d))


def rotate(x, rotary):
    """Applies rotary embeddings to x: rotates the pairs of columns (i, i + half), as the weights of Hugging Face's Llama require."""
    cosine, sine = rotary[0].to(x.dtype), rotary[1].to(x.dtype)
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat((-high, low), -1) * sine


class Gpt2Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        d = model["hidden"]
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d), Attention(model, True), nn.LayerNorm(d)
        self.fc, self.proj = nn.Linear(d, model["intermediate"]), nn.Linear(model["intermediate"], d)

    def forward(self, x, rotary):
        x = x + self.attn(self.ln_1(x), rotary)
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, model):
        super().__init__()
        d, inner = model["hidden"], model["intermediate"]
        self.norm_1, self.attn, self.norm_2 = nn.RMSNorm(d, eps=1e-6), Attention(model, False), nn.RMSNorm(d, eps=1e-6)
        self.gate, self.up, self.down = nn.Linear(d, inner, bias=False), nn.Linear(d, inner, bias=False), nn.Linear(inner, d, bias=False)

    def forward(self, x, rotary):
        x = x + self.attn(self.norm_1(x), rotary)
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def tail_gpt2(x, targets, table, weight, bias):
    x = F.layer_norm(x, x.shape[-1:], weight, bias)
    return F.cross_entropy(F.linear(x, table).float().flatten(0, 1), targets.flatten())


def tail_llama(x, targets, table, weight, _):
    x = F.rms_norm(x, x.shape[-1:], weight, 1e-6)
    return F.cross_entropy(F.linear(x, table).float().flatten(0, 1), targets.flatten())


class Transformer(nn.Module):
    def __init__(self, model, compiled):
        super().__init__()
        self.is_gpt2, d = model["family"] == "gpt2", model["hidden"]
        self.table = nn.Embedding(model["vocab"], d)
        self.positions = nn.Embedding(model["seq"], d) if self.is_gpt2 else None
        self.blocks = nn.ModuleList((Gpt2Block if self.is_gpt2 else LlamaBlock)(model) for _ in range(model["layers"]))
        self.norm = nn.LayerNorm(d) if self.is_gpt2 else nn.RMSNorm(d)
        self.head = None if self.is_gpt2 else nn.Linear(d, model["vocab"], bias=False)
        tail = tail_gpt2 if self.is_gpt2 else tail_llama
        self.tail = torch.compile(tail) if compiled else tail
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def rotary(self, seq, size, device):
        if self.is_gpt2:
            return None
        angles = torch.arange(seq, device=device)[:, None] * 10000.0 ** (-torch.arange(0, size, 2, device=device) / size)
        angles = torch.cat((angles, angles), -1)
        return torch.stack((angles.cos(), angles.sin()))

    def forward(self, tokens, targets, rotary):
        x = self.table(tokens)
        if self.is_gpt2:
            x = x + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, rotary)
        head = self.table.weight if self.is_gpt2 else self.head.weight
        return self.tail(x, targets, head, self.norm.weight, self.norm.bias if self.is_gpt2 else None)


def build(model, compiled, device):
    torch.manual_seed(0)
    with torch.device(device):
        transformer = Transformer(model, compiled)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in transformer.blocks:
        if compiled:
            block.compile()
        fully_shard(block, mp_policy=policy, reshard_after_forward=False)
    fully_shard(transformer, mp_policy=policy, reshard_after_forward=False)
    return transformer, torch.optim.AdamW(transformer.parameters(), lr=model["lr"], weight_decay=0.01, fused=True)


def measure(model, how, device, steps, turns):
    transformer, optimizer = build(model, how == "compile", device)
    rotary = transformer.rotary(model["seq"], model["hidden"] // model["heads"], device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step():
        tokens, targets = (torch.randint(model["vocab"], (model["batch"], model["seq"])).to(device, non_blocking=True) for _ in range(2))
        loss = transformer(tokens, targets, rotary)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    first = step().item()
    for _ in range(2):
        last = step()
    wait()
    times = []
    for _ in range(turns):
        began = time.perf_counter()
        for _ in range(steps):
            last = step()
        wait()
        times.append((time.perf_counter() - began) * 1e3 / steps)
    if not math.isfinite(last.item()):
        raise SystemExit(f"the loss is {last.item()}")
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return {"ms": times, "loss": [first, last.item()], "peak_bytes": peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--how", choices=["compile", "eager"], required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"missing": f"PyTorch {torch.__version__} finds no GPU"}))
        return
    with open(arguments.model) as file:
        model = json.load(file)
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0")):
        os.environ[name] = value
    torch.distributed.init_process_group("nccl" if arguments.device == "cuda" else "gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    found = measure(model, arguments.how, arguments.device, arguments.steps, arguments.turns)
    torch.distributed.destroy_process_group()
    print(json.dumps({**found, "software": f"PyTorch {torch.__version__}"}))


if __name__ == "__main__":
    main()
