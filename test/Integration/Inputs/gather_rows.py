"""Trains with lookups that fetch rows from other ranks, and compares with the unsharded reference and with gathered tables."""
import json
import math
import random
import struct
import subprocess

random.seed(1)
# A few ids, also at the borders of shards, so that ids repeat within and between ranks.
ids = [random.choice([0, 1, 7, 7, 7, 75, 76, 149, 150, 151, 210]) for _ in range(20000)]
with open("ids.bin", "wb") as file:
    file.write(struct.pack(f"<{len(ids)}H", *ids))

cases = """
gpt 2 --mesh=shard=2
gpt 2 --mesh=shard=2 --overlap
gpt 3 --mesh=shard=3 --clip-grad-norm=0.1
gpt 5 --mesh=shard=5
gpt 2 --mesh=shard=2 --param-dtype=bf16
gpt 2 --mesh=shard=2 --param-dtype=bf16 --reduce-dtype=bf16 --grad-accum=3
gpt 2 --mesh=shard=2 --param-dtype=bf16 --param-storage=both
gpt 2 --mesh=shard=2 --param-dtype=f16 --loss-scale=dynamic
gpt 2 --mesh=shard=2 --grad-accum=2 --grad-sync=each --overlap
gpt 2 --mesh=shard=2 --grad-accum=2 --grad-sync=last
gpt 4 --mesh=replicate=2,shard=2 --grad-accum=2
gpt 4 --mesh=replicate=2,shard=2 --sharding-strategy=hfsdp
gpt 4 --mesh=shard=2x2
gpt 2 --mesh=shard=2 --reshard-root=forward
gpt 2 --mesh=shard=2 --reshard-root=step --grad-accum=2
gpt 2 --mesh=shard=2 --sharding-strategy=shard_grad_op
gpt 2 --mesh=shard=2 --sharding-strategy=zero1
gpt 4 --mesh=shard=4 --reshard-after-forward=2 --reshard-root=forward
gpt 2 --mesh=shard=2 --grad-predivide=2
gpt 2 --mesh=shard=2 --freeze=wte.weight
gpt 2 --mesh=shard=2 --activation-checkpointing=full
gpt 2 --mesh=shard=2 --offload=parameters+gradients+optimizer+activations --offload-min-bytes=1
gpt 2 --mesh=shard=2 --optimizer-state-dtype=bf16
llama 2 --mesh=shard=2
llama 3 --mesh=shard=3 --param-dtype=bf16
llama 2 --mesh=shard=2 --auto-wrap-policy=none --optimizer=sgd
llama 2 --mesh=shard=2 --auto-wrap-policy=size --min-num-params=1000
llama 4 --mesh=shard=4 --activation-checkpointing=full
odd 3 --mesh=shard=3
odd 2 --mesh=shard=2 --grad-divide=tokens
"""


def compile_model(model, options, output):
    done = subprocess.run(["fsdp-compile", f"{model}.mlir", *options, "-o", output], capture_output=True, text=True)
    if done.returncode:
        print(f"failed: {model} {options}: {done.stderr}")
    return done.returncode == 0


trained = 0
for line in cases.split("\n"):
    if not line:
        continue
    model, ranks, *options = line.split()
    if not compile_model(model, [*options, "--gather-rows=always"], "m.fsdp"):
        continue
    done = subprocess.run(["fsdp-run", "m.fsdp", f"--ranks={ranks}", "--steps=3", "--overfit", "--data=ids.bin",
                           "--assert-no-allocations", "--check-against=unsharded"], capture_output=True, text=True)
    if done.returncode == 0 and "bit for bit" in done.stdout:
        trained += 1
    else:
        print(f"failed: {line}: {done.stdout[-300:]} {done.stderr[-300:]}")
print(f"{trained} trainings with rows of tables, bit for bit")

losses = {}
for rows in "never", "always":
    compile_model("gpt", ["--mesh=shard=2", f"--gather-rows={rows}", "--lr=1e-3"], "m.fsdp")
    subprocess.run(["fsdp-run", "m.fsdp", "--ranks=2", "--steps=20", "--data=ids.bin", "--seed=3", "--metrics=m.jsonl"],
                   capture_output=True, check=True)
    with open("m.jsonl") as file:
        losses[rows] = [row["loss"] for row in map(json.loads, file) if "loss" in row]
assert all(map(math.isfinite, losses["never"] + losses["always"])), losses
apart = max(abs(a - b) for a, b in zip(losses["never"], losses["always"]))
equal = losses["never"][0] == losses["always"][0] and len(losses["never"]) == len(losses["always"]) == 20
print(f"gathered or by rows: {'the same' if equal else 'failed: another'} first loss, and losses of 20 steps "
      f"{'within 1e-5' if apart <= 1e-5 else f'failed: {apart} apart'}")
