"""Runs fsdp-compile with options that make no sense: each is refused with what was expected and what to do."""
import pathlib
import subprocess
import sys

CASES = [
    (["--mesh=shard=0"], "mesh 'shard=0': expected the size of axis 'shard' to be a number of at least 1"),
    (["--mesh=data=2"], "mesh 'data=2': expected axes 'replicate' and 'shard' as in 'replicate=2,shard=4', found 'data=2'"),
    (["--mesh="], "--mesh=: expected a value"),
    (["--sharding-strategy=zero4"], "sharding-strategy: expected 'no_shard' or 'zero1' or"),
    (["--sharding-strategy=hybrid_shard", "--mesh=shard=2"], "needs groups of ranks, as in --mesh=replicate=2,shard=4"),
    (["--reshard-after-forward=0"], "--reshard-after-forward=0: expected true, false or a number of ranks of at least 1, found 0"),
    (["--reshard-after-forward=sometimes"], "expected true, false or a number of ranks of at least 1, found sometimes"),
    (["--mesh=shard=6", "--reshard-after-forward=4"], "that divides shard=6 of the mesh: 1 2 3 6; found '4'"),
    (["--mesh=shard=4", "--sharding-strategy=zero2", "--reshard-after-forward=2"], "full_shard, hybrid_shard or hfsdp; found 'zero2'"),
    (["--reshard-root=never"], "reshard-root: expected 'forward'"),
    (["--auto-wrap-policy=lambda"], "auto-wrap-policy: expected 'transformer' (a unit per layer), 'size'"),
    (["--auto-wrap-policy=manual"], "auto-wrap-policy 'manual' needs a list of units: give wrap=FILE.json"),
    (["--auto-wrap-policy=none", "--transformer-layer=h.*"], "transformer-layer needs auto-wrap-policy 'transformer', found 'none'"),
    (["--auto-wrap-policy=size", "--wrap=units.json"], "wrap needs auto-wrap-policy 'manual', found 'size'"),
    (["--auto-wrap-policy=none", "--min-num-params=4"], "min-num-params needs auto-wrap-policy 'size' or 'transformer', found 'none'"),
    (["--min-num-params=-1"], "min-num-params: expected at least 0, found -1"),
    (["--min-num-params=many"], "'many' value invalid for"),
    (["--transformer-layer=blocks.*"], "matches no parameter; names look like 'wte.weight' and 'ln_f.bias'"),
    (["--transformer-layer=h.["], "cannot be read: invalid glob pattern"),
    (["--wrap=missing.json"], "wrap: 'missing.json' cannot be read: No such file or directory"),
    (["--freeze=h.7"], "freeze: pattern 'h.7' matches no parameter; names look like"),
    (["--freeze=*"], "all 28 parameters are frozen: there is nothing to train"),
    (["--freeze=h.[0"], "freeze: pattern 'h.[0' cannot be read: invalid glob pattern"),
    (["--ignore-params=lm_head"], "ignore-params: pattern 'lm_head' matches no parameter"),
    (["--grad-divide=0"], "grad-divide: expected 'average'"),
    (["--grad-divide=token"], "grad-divide: expected 'average' (over ranks and micro-batches), 'tokens' (that count"),
    (["--grad-divide=world"], "grad-divide: expected 'average'"),
    (["--grad-sync=never"], "grad-sync: expected 'each'"),
    (["--grad-accum=0"], "--grad-accum=0: expected 1 to 65536"),
    (["--param-storage=both-of-them"], "param-storage"),
    (["--optimizer=lion"], "--optimizer=lion: expected adamw or sgd"),
    (["--optimizer-state-dtype=f16"], "optimizer-state-dtype: expected f32 or bf16, found 'f16'"),
    (["--optimizer-state-rounding=up", "--optimizer-state-dtype=bf16"], "optimizer-state-rounding: expected stochastic or nearest"),
    (["--optimizer-state-rounding=nearest"], "optimizer-state-rounding is of optimizer-state-dtype 'bf16', found 'f32'"),
    (["--optimizer-state-dtype=bf16", "--optimizer=sgd"], "optimizer-state-dtype: sgd without momentum has no state"),
    (["--clip-grad-norm=-1"], "clip"),
    (["--weight-decay=-1"], "decay"),
    (["--beta1=1.5"], "beta1"),
    (["--target=tpu"], "--target=tpu: expected cpu or reference"),
    (["--threads-per-rank=0"], "--threads-per-rank=0: expected 1 to 1024"),
    (["--explain=yaml"], "--explain=yaml: expected text, json or dtypes"),
    (["--config=missing.json"], "missing.json: error: cannot be read: No such file or directory"),
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
model = folder / "model.mlir"
subprocess.run(["fsdp-modelgen", "gpt2", "--layers=2", "--hidden=48", "--heads=3", "--vocab=131", "--seq=13", "--batch=2",
                "-o", model], check=True, capture_output=True)
for options, expected in CASES:
    done = subprocess.run(["fsdp-compile", model, *options, "-o", folder / "out.fsdp"], capture_output=True, text=True,
                          timeout=60, cwd=folder)
    located = "error: " in done.stderr or done.stderr.startswith("fsdp-compile: ")
    if done.returncode not in (1, 2) or expected not in done.stderr or not located or (folder / "out.fsdp").exists():
        sys.exit(f"{options}: exit code {done.returncode}, expected\n  {expected}\nfound\n{done.stderr}")
print(len(CASES), "refused")
