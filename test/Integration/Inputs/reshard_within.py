"""Compares --reshard-after-forward=N with the unsharded reference and with closed forms.

For a layer of P gathered bytes and S shards, the forward sends (S - 1)/S P bytes, the backward (N - 1)/N P, and P/N are
kept in between. N = S is `true`, N = 1 is `false`.

usage: reshard_within.py FOLDER
"""
import json, pathlib, subprocess, sys

MODELS = {
    "gpt2": ["--layers=3", "--hidden=48", "--heads=3", "--vocab=131", "--seq=13", "--batch=2"],
    "llama": ["--layers=2", "--hidden=48", "--heads=4", "--kv-heads=2", "--intermediate=80", "--vocab=97", "--seq=11",
              "--batch=2"],
}
PARTS = {"gpt2": "h.1.attn", "llama": "model.layers.1.self_attn"}
# (mesh, S, ranks, N, other options)
CELLS = [
    ("shard=4", 4, 4, 2, []),
    ("shard=2x2", 4, 4, 2, ["--reshard-root=forward", "--param-dtype=bf16", "--grad-accum=2"]),
    ("shard=6", 6, 6, 3, ["--grad-accum=2", "--grad-sync=last", "--freeze=PART"]),
    ("replicate=2,shard=4", 4, 8, 2, ["--sharding-strategy=hfsdp", "--param-dtype=bf16", "--param-storage=both"]),
]


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{command}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def find_bytes(report, axis):
    rows = [r for r in report["communication"] if r["kind"] == "all_gather" and r["axis"] == axis and not r["control"]]
    return sum(r["bytes"] for r in rows), sum(r["wire_bytes"] for r in rows)


def check(model, folder, mesh, shards, ranks, within, options):
    artifact, metrics = folder / "model.fsdp", folder / "steps.jsonl"
    report = json.loads(call("fsdp-compile", model, f"--mesh={mesh}", f"--reshard-after-forward={within}", *options,
                             "--explain=json", "-o", artifact))
    again = [u for u in report["units"] if u["reshard"] == f"gathered again among {within} ranks in the backward"]
    micro = 2 if "--grad-accum=2" in options else 1
    payload = micro * sum(u["gathered_bytes"] for u in again)
    assert again and all(u["kept_bytes"] * within == u["gathered_bytes"] for u in again), report["units"]
    assert find_bytes(report, f"shard:{within}") == (payload, payload * (within - 1) // within), (mesh, report)
    whole, wire = find_bytes(report, "shard")
    other = sum(u["gathered_bytes"] * (1 if u["reshard"] == "gathered once per step" else micro)
                for u in report["units"] if u not in again)
    assert whole == payload + other and wire == whole * (shards - 1) // shards, (mesh, whole, payload, other)
    call("fsdp-run", artifact, f"--ranks={ranks}", "--steps=4", "--check-against=unsharded", "--assert-no-allocations",
         f"--metrics={metrics}")
    for line in open(metrics):
        step = json.loads(line)
        assert step["peak_bytes"] == step["planned_bytes"] == report["memory"]["peak"], (mesh, step)
        gathered = sum(r["bytes"] for r in report["communication"] if r["kind"] == "all_gather")
        assert step["all_gather_bytes"] == gathered, (mesh, step, gathered)


def compile_to(model, folder, phase, *options):
    return call("fsdp-compile", model, *options, f"--compile-to={phase}", "-o", "-")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family, sizes in MODELS.items():
        model = folder / f"{family}.mlir"
        call("fsdp-modelgen", family, *sizes, "-o", model)
        for mesh, shards, ranks, within, options in CELLS:
            check(model, folder, mesh, shards, ranks, within, [o.replace("PART", PARTS[family]) for o in options])
        for mesh, number, flag in [("replicate=2,shard=2", 2, "true"), ("shard=4", 4, "true"), ("shard=4", 1, "false")]:
            plans = [compile_to(model, folder, "shard", f"--mesh={mesh}", f"--reshard-after-forward={value}")
                     for value in (number, flag)]
            assert plans[0] == plans[1], f"{mesh}: {number} is not {flag}"
    print(f"{len(MODELS) * len(CELLS)} runs: bit for bit, bytes as planned")


if __name__ == "__main__":
    main()
