"""Trains a Llama model of the package transformers on two ranks, loads the trained values into the
module, and generates text.

    python examples/torch_finetune.py [--steps N] [--text FILE]

Needs fsdp-mlir[hf]. This program takes about a minute on two cores. The model is a byte-level Llama
with random weights. `AutoModelForCausalLM.from_pretrained` would load a checkpoint instead.
"""

import argparse
import math
import pathlib

import torch
import transformers

import fsdp_mlir as fm

RANKS, BATCH, SEQUENCE = 2, 4, 64


class Windows(torch.utils.data.Dataset):
    """A dataset of windows of a text. A sample contains the bytes of one window and, for each byte,
    the byte that follows it."""

    def __init__(self, path):
        self.bytes = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8)

    def __len__(self):
        return len(self.bytes) - SEQUENCE

    def __getitem__(self, at):
        window = self.bytes[at:at + SEQUENCE + 1].long()
        return window[:-1], window[1:]


def loss_fn(model, tokens, targets):
    logits = model(input_ids=tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--text", default=pathlib.Path(__file__).parents[1] / "README.md")
    options = parser.parse_args()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, use_cache=False)
    module = transformers.LlamaForCausalLM(config)

    # An example of a batch of one rank. Only the shapes and types of its tensors are used.
    example = torch.zeros((BATCH, SEQUENCE), dtype=torch.long)
    model = fm.export_torch(module, (example, example), loss=loss_fn)
    step = fm.compile(model, mesh=f"shard={RANKS}",
                      optimizer=fm.AdamW(lr=3e-3, weight_decay=0.1, clip_grad_norm=1.0))
    print(model)
    print(f"memory of a step: {step.arena_bytes / 2**20:.1f} MiB per rank")

    loader = torch.utils.data.DataLoader(Windows(options.text), batch_size=RANKS * BATCH,
                                         shuffle=True, drop_last=True)
    with step.train(ranks=RANKS, weights=module) as run:
        batches = iter(loader)
        for number in range(1, options.steps + 1):
            rate = 3e-3 * min(1, number / 20) * 0.5 * (1 + math.cos(math.pi * number / options.steps))
            metrics = run.step(next(batches), lr=rate)
            if number % 25 == 0 or number == 1:
                print(f"step {number:4}  loss {metrics.loss:.3f}  norm {metrics.grad_norm:.2f}")
        module.load_state_dict(run.state_dict())

    module.eval()
    module.config.use_cache = True
    prompt = torch.tensor([list(b"The compiler ")])
    with torch.no_grad():
        written = module.generate(prompt, max_new_tokens=60, do_sample=False, pad_token_id=0)
    print(repr(bytes(written[0].tolist()).decode(errors="replace")))


if __name__ == "__main__":
    main()
