"""Runs the stages one after the other by fsdp-opt, each with its options, and compares the IR after each with that of
fsdp-compile --compile-to. usage: stages.py MODEL FOLDER

The stages up to one run in one process: text between them gives the same computation, but the parser writes the body of
a linalg.contract in bf16 with its casts in another order, and kernels are named by the hash of all that is in them.
"""
import subprocess
import sys

STAGES = ["import", "shard", "differentiate", "update", "fuse", "plan"]
# Options per stage. An option that several stages read is listed for each of them.
SETS = [
    {"shard": {"mesh": "shard=2"}},
    {"shard": {"mesh": "shard=2", "param-dtype": "bf16", "grad-accum": "2", "grad-sync": "last"},
     "differentiate": {"reduce-dtype": "bf16"}, "update": {"reduce-dtype": "bf16", "clip-grad-norm": "1"},
     "plan": {"overlap": "true", "prefetch": "forward=2,backward=auto,copy=auto"}},
    {"shard": {"mesh": "replicate=2,shard=2", "sharding-strategy": "hybrid_shard"},
     "update": {"optimizer": "sgd", "momentum": "0.9"},
     "plan": {"activation-checkpointing": "full", "offload": "optimizer"}},
    {"shard": {"mesh": "shard=2", "reshard-after-forward": "false", "param-dtype": "f16"},
     "differentiate": {"loss-scale": "dynamic"}, "update": {"loss-scale": "dynamic", "loss-scale-init": "1024"},
     "fuse": {"max-chunk-bytes": "4096"}, "plan": {"reshard-after-forward": "false"}},
    {"shard": {"mesh": "shard=2", "freeze": "*.bias"}, "differentiate": {"grad-divide": "tokens"},
     "update": {"grad-divide": "tokens", "beta2": "0.95"},
     "fuse": {"target": "sm_90a"}, "plan": {"target": "sm_90a", "offload": "parameters+activations", "offload-min-bytes": "1"}},
]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def main(model, folder):
    for number, stages in enumerate(SETS):
        options = {name: value for values in stages.values() for name, value in values.items()}
        flags = [f"--{name}={value}" for name, value in options.items()]
        pipeline = []
        for stage in STAGES:
            expected = run("fsdp-compile", model, *flags, f"--compile-to={stage}", "-o", "-")
            own = " ".join(f"{name}={value}" for name, value in stages.get(stage, {}).items())
            pipeline.append(f"fsdp-{stage}{{{own}}}")
            found = run("fsdp-opt", model, f"--pass-pipeline=builtin.module({','.join(pipeline)})")
            if found.rstrip() != expected.rstrip():
                sys.exit(f"set {number}, {stage}: the IR of fsdp-opt is not that of fsdp-compile")
        with open(f"{folder}/plan.mlir", "w") as file:
            file.write(found)
        step = " ".join(f"{name}={value}" for name, value in options.items())
        if run("fsdp-opt", model, f"--fsdp-step={step}").rstrip() != expected.rstrip():
            sys.exit(f"set {number}: the IR of --fsdp-step is not that of fsdp-compile --compile-to=plan")
        if options.get("target", "cpu") == "cpu":
            kernels = run("fsdp-compile", model, *flags, "--compile-to=codegen", "-o", "-")
            if run("fsdp-opt", f"{folder}/plan.mlir", "--fsdp-codegen").rstrip() != kernels.rstrip():
                sys.exit(f"set {number}: the kernels of fsdp-opt are not those of fsdp-compile")
    print(f"{len(SETS)} sets of options, {len(STAGES) + 1} stages each: the same")


main(*sys.argv[1:])
