"""Gives every option about sharding, wrapping, precision, accumulation and option files an invalid value, gives it twice, or
combines it with an option that contradicts it. usage: wrong-options.py FOLDER

An invalid combination is refused with one located message that says what was expected, and no file is written. An option
without effect gets a warning. A documented combination gets no message. A row: the options, and a regular expression.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

REFUSED = [
    # The mesh
    ("--mesh=", "--mesh=: expected a value"),
    ("--mesh=,", "mesh ',': expected sizes of the axes 'replicate', 'shard', 'context' and 'tensor'"),
    ("--mesh=2", "mesh '2': expected sizes of the axes 'replicate', 'shard', 'context' and 'tensor', as in 'replicate=2,shard=4', found '2'"),
    ("--mesh=data=2", "mesh 'data=2': expected sizes of the axes 'replicate', 'shard', 'context' and 'tensor', as in 'replicate=2,shard=4', found 'data=2'"),
    ("--mesh=shard", "mesh 'shard': expected the size of axis 'shard' to be a number of at least 1"),
    ("--mesh=shard=0", "expected the size of axis 'shard' to be a number of at least 1, or factors such as '2x4', found '0'"),
    ("--mesh=shard=-1", "expected the size of axis 'shard' .* found '-1'"),
    ("--mesh=shard=2.5", "expected the size of axis 'shard' .* found '2.5'"),
    ("--mesh=shard=1e400", "expected the size of axis 'shard' .* found '1e400'"),
    ("--mesh=shard=2x0", "expected the size of axis 'shard' .* found '2x0'"),
    ("--mesh=shard=99999999999999999999", "expected the size of axis 'shard' .* found '9+'"),
    ("--mesh=shard=65537", "mesh 'shard=65537': expected at most 65536 ranks"),
    ("--mesh=shard=2,shard=2", "axis 'shard' is given twice"),
    # Strategies
    ("--sharding-strategy=", "--sharding-strategy=: expected a value"),
    ("--sharding-strategy=zero4", "--sharding-strategy=zero4: expected no_shard, zero1, zero2, shard_grad_op"),
    ("--sharding-strategy=FULL_SHARD", "--sharding-strategy=FULL_SHARD: expected no_shard, zero1, zero2"),
    ("--sharding-strategy=hybrid_shard --mesh=shard=2", "needs at least 2 groups of ranks: expected a mesh with replicate of at least 2, as in --mesh=replicate=2,shard=4, found 'shard=2'"),
    ("--sharding-strategy=hybrid_shard_zero2 --mesh=replicate=1,shard=4", "'hybrid_shard_zero2' needs at least 2 groups of ranks"),
    ("--sharding-strategy=hfsdp --mesh=shard=4", "'hfsdp' needs at least 2 groups of ranks"),
    ("--reshard-after-forward=sometimes", "--reshard-after-forward=sometimes: expected true, false or a number of ranks"),
    ("--reshard-after-forward=0", "--reshard-after-forward=0: expected true, false or a number of ranks of at least 1"),
    ("--reshard-after-forward=-1", "--reshard-after-forward=-1: expected true, false or a number"),
    ("--reshard-after-forward=3 --mesh=shard=4", "a number of ranks that divides shard=4 of the mesh .1, 2, 4., found '3'"),
    ("--reshard-after-forward=8 --mesh=shard=4", "divides shard=4 of the mesh .1, 2, 4., found '8'"),
    ("--reshard-after-forward=true --sharding-strategy=shard_grad_op --mesh=shard=2",
     "--reshard-after-forward=true contradicts --sharding-strategy=shard_grad_op, which keeps parameters whole until the backward"),
    ("--reshard-after-forward --sharding-strategy=no_shard --mesh=shard=2", "contradicts --sharding-strategy=no_shard"),
    ("--reshard-after-forward=2 --sharding-strategy=shard_grad_op --mesh=shard=4",
     "--reshard-after-forward=2 contradicts --sharding-strategy=shard_grad_op, .*; use full_shard, hybrid_shard or hfsdp, which gather them again"),
    ("--reshard-after-forward=2 --sharding-strategy=no_shard --mesh=shard=2", "--reshard-after-forward=2 contradicts --sharding-strategy=no_shard"),
    ("--reshard-root=never", "--reshard-root=never: expected forward, backward or step"),
    # Wrapping
    ("--auto-wrap-policy=", "--auto-wrap-policy=: expected a value"),
    ("--auto-wrap-policy=lambda", "--auto-wrap-policy=lambda: expected transformer, size, manual or none"),
    ("--auto-wrap-policy=manual", "auto-wrap-policy 'manual' needs a list of units: give wrap=FILE.json"),
    ("--auto-wrap-policy=none --transformer-layer=h.*", "transformer-layer needs auto-wrap-policy 'transformer', found 'none'"),
    ("--auto-wrap-policy=size --wrap=units.json", "wrap needs auto-wrap-policy 'manual', found 'size'"),
    ("--auto-wrap-policy=transformer --wrap=units.json", "wrap needs auto-wrap-policy 'manual', found 'transformer'"),
    ("--auto-wrap-policy=none --min-num-params=4", "min-num-params needs auto-wrap-policy 'size' or 'transformer', found 'none'"),
    ("--min-num-params=-1", "--min-num-params=-1: expected a number of at least 0"),
    ("--min-num-params=many", "--min-num-params=many: expected an integer"),
    ("--min-num-params=1e400", "--min-num-params=1e400: expected an integer"),
    ("--min-num-params=99999999999999999999", "--min-num-params=9+: expected an integer of at most 64 bits"),
    ("--transformer-layer=", "--transformer-layer=: expected a value"),
    ("--transformer-layer=blocks.*", "matches no parameter; names look like 'wte.weight' and 'ln_f.bias'"),
    ("--transformer-layer=h.[", "cannot be read: invalid glob pattern"),
    ("--wrap=missing.json", "wrap: 'missing.json': cannot be read: No such file or directory"),
    ("--wrap=nobody.json", "nobody.json:1:2: error: wrap: pattern 'blocks.*' matches no parameter; names look like"),
    ("--wrap=half.json", "half.json:1:2: error: wrap: pattern 'wxe' matches no parameter; names look like"),
    ("--wrap=taken.json", "taken.json:1:9: error: wrap: no parameter is left for this unit: every parameter that 'h.0.mlp' matches, such as 'h.0.mlp"),
    ("--wrap=twice.json", "twice.json:1:9: error: wrap: no parameter is left for this unit: every parameter that 'h.*' matches, such as 'h.0."),
    # Frozen, ignored
    ("--freeze=,", "freeze: expected patterns with a comma between them, found an empty pattern in ','"),
    ("--freeze=h.7", "freeze: pattern 'h.7' matches no parameter; names look like"),
    ("--freeze=*", r"no parameter can be trained: all parameters \(40\) are frozen or integers"),
    ("--freeze=h,wte,wpe,ln_f", r"no parameter can be trained: all parameters \(40\) are frozen or integers"),
    ("--freeze=h.[0", r"freeze: pattern 'h.\[0' cannot be read: invalid glob pattern"),
    ("--ignore-params=", "--ignore-params=: expected a value"),
    ("--ignore-params=lm_head", "ignore-params: pattern 'lm_head' matches no parameter"),
    # Precision
    ("--param-dtype=", "--param-dtype=: expected a value"),
    ("--param-dtype=f8", "--param-dtype=f8: expected f32, bf16 or f16"),
    ("--param-dtype=f64", "--param-dtype=f64: expected f32, bf16 or f16"),
    ("--param-dtype=bfloat16", "--param-dtype=bfloat16: expected f32, bf16 or f16"),
    ("--param-dtype=i8", "--param-dtype=i8: expected f32, bf16 or f16"),
    ("bf16 --param-dtype=f16", "param-dtype: expected the type of the model's parameters, 'bf16', found 'f16'"),
    ("bf16 --param-dtype=f32", "param-dtype: expected the type of the model's parameters, 'bf16', found 'f32'"),
    ("f64 --param-dtype=bf16", "param-dtype: expected the type of the model's parameters, 'f64', found 'bf16'"),
    ("--reduce-dtype=f8", "--reduce-dtype=f8: expected f32, f64, bf16 or f16"),
    ("--reduce-dtype=i8", "--reduce-dtype=i8: expected f32, f64, bf16 or f16"),
    ("--output-dtype=x", "--output-dtype=x: expected f32, bf16 or f16"),
    ("--output-dtype=f64", "--output-dtype=f64: expected f32, bf16 or f16"),
    ("--output-dtype=bf16", "output-dtype: expected f32, because no param-dtype is given, found 'bf16'"),
    ("--output-dtype=f16 --param-dtype=bf16", r"output-dtype: expected f32 or the param-dtype \('bf16'\), found 'f16'"),
    ("--param-storage=both-of-them", "--param-storage=both-of-them: expected auto, master or both"),
    ("--param-storage=bf16 --param-dtype=bf16", "--param-storage=bf16: expected auto, master or both"),
    ("--loss-scale=", "--loss-scale=: expected a value"),
    ("--loss-scale=0", "--loss-scale=0: expected dynamic, none or a number from 1e-30 to 1e30"),
    ("--loss-scale=-1", "--loss-scale=-1: expected dynamic, none or a number from 1e-30 to 1e30"),
    ("--loss-scale=1e400", "--loss-scale=1e400: expected dynamic, none or a number from 1e-30 to 1e30"),
    ("--loss-scale=nan", "--loss-scale=nan: expected dynamic, none or a number from 1e-30 to 1e30"),
    ("--loss-scale=much", "--loss-scale=much: expected dynamic, none or a number from 1e-30 to 1e30"),
    ("--loss-scale-init=0", "--loss-scale-init=0: expected a number from 1e-30 to 1e30"),
    ("--loss-scale-init=-5", "--loss-scale-init=-5: expected a number from 1e-30 to 1e30"),
    ("--loss-scale-init=1e400", "--loss-scale-init=1e400: expected a number from 1e-30 to 1e30"),
    ("--loss-scale-init=nan", "--loss-scale-init=nan: expected a number from 1e-30 to 1e30"),
    ("--loss-scale-init=much", "--loss-scale-init=much: expected a number"),
    ("--loss-scale-growth-interval=0", "--loss-scale-growth-interval=0: expected a number from 1 to 16777216"),
    ("--loss-scale-growth-interval=-3", "--loss-scale-growth-interval=-3: expected a number from 1 to 16777216"),
    ("--loss-scale-growth-interval=1.5", "--loss-scale-growth-interval=1.5: expected an integer"),
    # Accumulation, and divisors of gradients
    ("--grad-accum=0", "--grad-accum=0: expected a number from 1 to 65536"),
    ("--grad-accum=-1", "--grad-accum=-1: expected a number from 1 to 65536"),
    ("--grad-accum=65537", "--grad-accum=65537: expected a number from 1 to 65536"),
    ("--grad-accum=99999999999", "--grad-accum=99999999999: expected a number from 1 to 65536"),
    ("--grad-accum=1.5", "--grad-accum=1.5: expected an integer"),
    ("--grad-sync=never", "--grad-sync=never: expected auto, each or last"),
    ("--grad-divide=", "--grad-divide=: expected a value"),
    ("--grad-divide=0", r"--grad-divide=0: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=-1", r"--grad-divide=-1: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=nan", r"--grad-divide=nan: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=1e400", r"--grad-divide=1e400: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=1e-300", r"--grad-divide=1e-300: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=token", r"--grad-divide=token: expected average \(over ranks and micro-batches\)"),
    ("--grad-divide=world", r"--grad-divide=world: expected average \(over ranks and micro-batches\)"),
    ("--grad-predivide=0", "--grad-predivide=0: expected a number from 1e-30 to 1e30"),
    ("--grad-predivide=-2", "--grad-predivide=-2: expected a number from 1e-30 to 1e30"),
    ("--grad-predivide=1e400", "--grad-predivide=1e400: expected a number from 1e-30 to 1e30"),
    ("--grad-predivide=nan", "--grad-predivide=nan: expected a number from 1e-30 to 1e30"),
    # The optimizer
    ("--optimizer=lion", "--optimizer=lion: expected adamw or sgd"),
    ("--momentum=0.9", "--momentum has no effect with --optimizer=adamw: remove it, or give --optimizer=sgd"),
    ("--optimizer=sgd --beta2=0.9", "--beta2 has no effect with --optimizer=sgd: remove it, or give --optimizer=adamw"),
    ("--optimizer=sgd --momentum=1", "--momentum=1: expected a number of at least 0 and below 1"),
    ("--optimizer-state-dtype=f16", "--optimizer-state-dtype=f16: expected f32 or bf16"),
    ("--optimizer-state-rounding=up --optimizer-state-dtype=bf16", "--optimizer-state-rounding=up: expected stochastic or nearest"),
    ("--optimizer-state-rounding=nearest", "optimizer-state-rounding 'nearest' needs optimizer-state-dtype 'bf16', found 'f32'"),
    ("--optimizer-state-dtype=bf16 --optimizer=sgd", "optimizer-state-dtype 'bf16' has no effect: sgd without momentum has no state"),
    ("--clip-grad-norm=-1", "--clip-grad-norm=-1: expected 0 or a number from 1e-30 to 1e30"),
    ("--clip-grad-norm=1e-300", "--clip-grad-norm=1e-300: expected 0 or a number from 1e-30 to 1e30$"),
    ("--weight-decay=-1", "--weight-decay=-1: expected 0 or a number from 1e-30 to 1e30"),
    ("--lr=1e39", "--lr=1e39: expected 0 or a number from 1e-30 to 1e30$"),
    ("--eps=0", "--eps=0: expected a number above 0: AdamW divides 0 by 0 for a parameter whose gradient is always 0"),
    ("--beta1=1.5", "--beta1=1.5: expected a number of at least 0 and below 1"),
    ("--beta1=fast", "--beta1=fast: expected a number"),
    # Schedules and estimates
    ("--prefetch=forward=2 --mesh=shard=2", "--prefetch has no effect without --overlap"),
    ("--prefetch=backward=auto", "--prefetch has no effect without --overlap"),
    ("--prefetch=copy=2 --offload=activations", "--prefetch has no effect without --overlap"),
    ("--prefetch=copy=2 --overlap", "--prefetch=copy=2: a number of copies has no effect without --offload"),
    ("--bucket-bytes=0", "--bucket-bytes has no effect without --overlap"),
    ("--cluster=missing.json --mesh=shard=2", "--cluster has no effect without --overlap, --activation-checkpointing=auto, --report, --what-if, --search, an axis 'context', or --explain for a GPU --target"),
    ("--cluster=missing.json --mesh=shard=2 --explain", "--cluster has no effect without --overlap, --activation-checkpointing=auto, --report, --what-if, --search, an axis 'context', or --explain for a GPU --target"),
    ("--overlap --prefetch=forward=-1", "--prefetch=forward=-1: expected auto or a number of gathers of at least 0"),
    ("--overlap --bucket-bytes=-5", "--bucket-bytes=-5: a number of bytes cannot be negative; expected a number, such as 1048576, 512k, 13.5M or 2G"),
    ("--overlap --bucket-bytes=1.5", "--bucket-bytes=1.5: expected a whole number of bytes, such as 1048576, 512k, 13.5M or 2G, found 1.5 bytes"),
    ("--overlap --bucket-bytes=9223372036854775808", "--bucket-bytes=9223372036854775808: expected a number of bytes of at most 9223372036854775807"),
    ("--offload=activations --offload-min-bytes=0", "--offload-min-bytes=0: expected a number of bytes of at least 1, such as 512k"),
    ("--offload-min-bytes=1", "--offload-min-bytes has no effect without --offload=activations"),
    # The rest
    ("--target=tpu", "--target=tpu: expected cpu, reference, sm_80"),
    ("--target=sm_80 --compile-to=codegen", "--compile-to=codegen contradicts --target=sm_80: it prints kernels for a CPU; to print kernels for a GPU, give --emit=kernel-mlir$"),
    ("--target=sm_80 --threads-per-rank=2", "--threads-per-rank has no effect with --target=sm_80: it applies to CPU kernels"),
    ("--target=sm_90a --target-cpu=x86-64-v3", "--target-cpu has no effect with --target=sm_90a: it applies to CPU kernels"),
    ("--spills=error", "--spills needs GPU kernels: give --target=sm_80, sm_90a or sm_100a"),
    ("--f32-products=tf32", "--f32-products=tf32 needs GPU kernels: give --target=sm_80, sm_90a or sm_100a; CPUs multiply in f32"),
    ("--target=sm_80 --f32-products=half", "--f32-products=half: expected exact or tf32"),
    ("--target=sm_80 --spills=error", "--spills has no effect without machine code: give -o OUT.fsdp or --emit"),
    ("--target=sm_80 --ptxas-timeout=9 --no-code", "--ptxas-timeout has no effect with --no-code, which writes no machine code"),
    ("--target=sm_80 --spills=error --emit=kernel-mlir", "--spills has no effect with --emit=kernel-mlir, which writes no machine code"),
    ("--max-chunk-bytes=-1", r"--max-chunk-bytes=-1: a number of bytes cannot be negative; expected a number, such as 1048576, 512k, 13\.5M or 2G"),
    ("--max-chunk-bytes=1e6", r"--max-chunk-bytes=1e6: expected a number of bytes in digits, such as 1048576, 512k, 13\.5M or 2G"),
    ("--threads-per-rank=0", "--threads-per-rank=0: expected a number from 1 to 1024"),
    ("--threads-per-rank=-1", "--threads-per-rank=-1: expected a number from 1 to 1024"),
    ("--memory-limit=", "--memory-limit=: expected a value"),
    ("--memory-limit=0", "--memory-limit=0: expected a number of bytes of at least 1, such as 512k, 13.5M or 2G"),
    ("--memory-limit=-1G", "--memory-limit=-1G: a number of bytes cannot be negative"),
    ("--memory-limit=-1.5G", "--memory-limit=-1.5G: a number of bytes cannot be negative"),
    ("--memory-limit=1.5", "--memory-limit=1.5: expected a whole number of bytes"),
    ("--memory-limit=1.5.2G", "--memory-limit=1.5.2G: expected a number of bytes"),
    ("--memory-limit=.5M", "--memory-limit=.5M: expected a digit before and after the point, as in 0.5M"),
    ("--memory-limit=1.e1M", "--memory-limit=1.e1M: expected a number of bytes"),
    ("--memory-limit=0.0001k", "--memory-limit=0.0001k: expected at least 1 byte, found less than 1 byte"),
    ("--memory-limit=9999999999G", "--memory-limit=9+G: expected a number of bytes of at most 9223372036854775807 .8 EiB."),
    ("--memory-limit=9999999999.5G", "--memory-limit=9+.5G: expected a number of bytes of at most 9223372036854775807"),
    ("--memory-limit=99999999999999999999", "--memory-limit=9+: expected a number of bytes of at most 9223372036854775807"),
    ("--memory-limit=1.5G", "--memory-limit needs the whole plan: remove --compile-to"),
    ("--memory-limit=1G", "--memory-limit needs the whole plan: remove --compile-to"),
    ("--explain=yaml", "--explain=yaml: expected text, json or dtypes"),
    ("--timing=maybe", "--timing=maybe: expected true or false"),
    ("--config=missing.json", "missing.json: error: cannot be read: No such file or directory"),
    ("--config=", "--config=: expected a value"),
    ("--mesh=shard=2 --mesh=shard=4", "--mesh: expected at most once, found 2 times"),
    ("-o other.mlir", "-o: expected at most once, found 2 times"),
    ("--param-dtype=bf16 --param-dtype=f16", "--param-dtype: expected at most once"),
    ("--overlap --mesh=shard=2 --overlap=false", "--overlap: expected at most once"),
    ("--frobnicate", "Unknown command line argument '--frobnicate'"),
    ({"fsdp": "full_shard", "zero_optimization": {"stage": 2}}, 'zero_optimization.stage": contradicts "fsdp"'),
    ({"fsdp_config": {"mixed_precision_policy": {"param_dtype": "bf16"}}, "fp16": {"enabled": True}}, "contradicts"),
    ({"fsdp_config": {"fsdp_reshard_after_forward": 3}, "mesh": "shard=4"}, "divides shard=4 of the mesh .1, 2, 4., found '3'"),
    ({"fp16": {"enabled": True, "initial_scale_power": 70}}, "expected an exponent of 2 from 0 to 62, found 70"),
    ({"fp16": {"enabled": True, "initial_scale_power": -3}}, "expected an exponent of 2 from 0 to 62, found -3"),
    ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "expected false, found true: master weights are always f32"),
    ({"fp16": {"enabled": True, "fp16_master_weights_and_grads": True}}, "expected false, found true: master weights are always f32"),
    ({"num_processes": 4, "mesh": "shard=2"}, '"num_processes": expected 2, the number of ranks of the mesh, found 4'),
]

WARNED = [
    ("--mesh=replicate=2", "sharding-strategy 'full_shard' shards nothing on mesh 'replicate=2': axis 'shard' has one rank"),
    ("--mesh=replicate=4,shard=1 --sharding-strategy=hybrid_shard", "'hybrid_shard' shards nothing"),
    ("--mesh=shard=2 --sharding-strategy=zero1 --reshard-root=forward", "reshard-root 'forward' has no effect"),
    ("--mesh=shard=2 --sharding-strategy=no_shard --ignore-params=wte", "ignore-params has no effect"),
    ("--mesh=shard=2 --ignore-params=*", "ignore-params names all 40 parameters: nothing is sharded"),
    ("--mesh=shard=2 --auto-wrap-policy=none", "auto-wrap-policy 'none': the whole model is one unit"),
    ("--mesh=shard=2 --auto-wrap-policy=size", "auto-wrap-policy 'size' with min-num-params 100000000: the whole model is one unit"),
    ("--mesh=shard=2 --auto-wrap-policy=size --min-num-params=9223372036854775807", "the whole model is one unit"),
    ("--param-storage=both", "param-storage 'both' has no effect: no parameter that is trained is narrower than f32"),
    ("f64 --param-storage=both", "param-storage 'both' has no effect"),
    ("bf16 --output-dtype=f32", "has no effect: it applies only to a model with f32 parameters, which param-dtype converts, found parameters of type 'bf16'"),
    ("bf16 --output-dtype=bf16 --param-dtype=bf16", "has no effect: it applies only to a model with f32 parameters, which param-dtype converts, found parameters of type 'bf16'"),
    ("f64 --output-dtype=f32", "output-dtype 'f32' has no effect: it applies only to a model with f32 parameters, .* found parameters of type 'f64'"),
    ("--loss-scale=dynamic", "loss-scale: no parameter or gradient of a parameter is of type f16"),
    ("--loss-scale=128 --param-dtype=bf16", "loss-scale: no parameter or gradient of a parameter is of type f16"),
    ("--loss-scale=none --param-dtype=f16", "gradients in f16 without a loss scale: those below 6e-8 become 0"),
    ("--loss-scale-init=128", "loss-scale-init has no effect: expected a dynamic loss scale, found a loss without a scale"),
    ("--loss-scale-init=128 --loss-scale=64 --param-dtype=f16", "loss-scale-init has no effect: expected a dynamic loss scale, found the fixed scale 64"),
    ("--loss-scale-growth-interval=5 --loss-scale=64 --param-dtype=f16", "loss-scale-growth-interval has no effect"),
    ("--grad-sync=last", "grad-sync 'last' has no effect: a step has one micro-batch"),
    ("--grad-sync=each --grad-accum=1", "grad-sync 'each' has no effect: a step has one micro-batch"),
]

# What these mean is said by --help or docs/explanation/guide/ranks-and-failures.md.
SILENT = [
    "--mesh=shard=1", "--mesh=shard=2x2", "--mesh=replicate=2,shard=1 --sharding-strategy=no_shard", "--reshard-after-forward=1 --mesh=shard=4",
    "--reshard-after-forward=4 --mesh=shard=4", "--reshard-after-forward=false --sharding-strategy=shard_grad_op --mesh=shard=2",
    "--min-num-params=0", "--freeze=wte,wte --mesh=shard=2", "--freeze=h.0 --ignore-params=h.0 --mesh=shard=2",
    "--transformer-layer=wte", "--param-dtype=f32 --reduce-dtype=f32 --output-dtype=f32 --param-storage=master", "--reduce-dtype=f64",
    "--reduce-dtype=bf16 --param-dtype=f16 --mesh=shard=2", "--reduce-dtype=f16 --param-dtype=bf16 --mesh=shard=2",
    "--overlap --bucket-bytes=0 --prefetch=auto", "--overlap --bucket-bytes=1.5M --mesh=shard=2", "bf16 --param-dtype=bf16", "bf16 --param-storage=both", "f64 --reduce-dtype=f32", "--clip-grad-norm=0", "--lr=0", "--grad-predivide=4",
]
SILENT_FILES = [{"fp16": {"enabled": False, "loss_scale": 0, "initial_scale_power": 12}, "bf16": {"enabled": True}},
                {"fsdp_config": {"fsdp_reshard_after_forward": True}, "sharding_strategy": "SHARD_GRAD_OP", "mesh": "shard=2"}]

RUNS = [
    ("--ranks=3", "expected 2|2 ranks"), ("--ranks=0", "--ranks"), ("--ranks=many", "--ranks"), ("--ranks=", "--ranks"),
    ("--on-nonfinite=maybe", "--on-nonfinite"), ("--on-nonfinite=-1", "--on-nonfinite"), ("--steps=-1", "--steps"),
    ("--steps=1e400", "--steps"), ("--lr=1e400", "--lr"), ("--lr=nan", "--lr"), ("--frobnicate", "frobnicate"),
    ("--config=missing.json", "missing.json"),
]

FILES = {"nobody.json": '["blocks.*"]', "half.json": '[{"unit": "ends", "params": ["wte", "wxe"]}]', "taken.json": '["h.*", "h.0.mlp"]',
         "twice.json": '["h.*", "h.*"]', "units.json": '["h.*"]'}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, text in FILES.items():
    (folder / name).write_text(text)
for dtype in ("f32", "bf16", "f64"):
    subprocess.run(["fsdp-modelgen", "gpt2", "--layers=3", "--hidden=8", "--heads=2", "--vocab=11", "--seq=5", "--batch=2",
                    f"--dtype={dtype}", "-o", folder / f"{dtype}.mlir"], check=True, capture_output=True)


def compile(row):
    """Returns the exit code, the text on stderr, and whether the output file was written."""
    model, options = "f32", row
    if isinstance(row, dict):
        file = folder / f"{abs(hash(json.dumps(row)))}.json"
        file.write_text(json.dumps(row))
        options = f"--config={file.name}"
    elif row.split(" ")[0] in ("bf16", "f64"):
        model, _, options = row.partition(" ")
    out = folder / f"{abs(hash(str(row)))}.mlir"
    phase = [] if "--compile-to=" in options else ["--compile-to=update"]
    done = subprocess.run(["fsdp-compile", f"{model}.mlir", *options.split(" "), *phase, "-o", out.name],
                          capture_output=True, text=True, timeout=120, cwd=folder)
    wrote = out.exists()
    out.unlink(missing_ok=True)
    return done.returncode, done.stderr, wrote


PLACE = r"^(\S+\.(mlir|json)(:\d+:\d+)?: {0}: |fsdp-compile: ({0}: )?)"


def check(row):
    kind, options, expected = row
    code, text, wrote = compile(options)
    lines = [line for line in text.splitlines() if not re.search(r": note: |Did you mean", line)]
    said = len(lines) == 1 and re.search(PLACE.format("error" if kind == "refused" else "warning"), lines[0]) and \
        re.search(expected, lines[0])
    right = {"refused": code == 2 and said and not wrote, "warned": code == 0 and said and wrote,
             "silent": code == 0 and not text and wrote}[kind]
    return "" if right else f"{options}: expected it to be {kind}: {expected}\nexit code {code}, found\n{text}\n"


rows = [("refused", *row) for row in REFUSED] + [("warned", *row) for row in WARNED]
rows += [("silent", row, "nothing") for row in SILENT + SILENT_FILES]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = "".join(pool.map(check, rows))
subprocess.run(["fsdp-compile", folder / "f32.mlir", "--mesh=shard=2", "-o", folder / "run.fsdp"], check=True)
for options, expected in RUNS:
    done = subprocess.run(["fsdp-run", "run.fsdp", *options.split(" ")], capture_output=True, text=True, timeout=60, cwd=folder)
    if done.returncode != 2 or not re.search(expected, done.stderr) or not done.stderr.startswith(("fsdp-run: ", "missing.json")):
        problems += f"fsdp-run {options}: exit code {done.returncode}, expected {expected}, found\n{done.stderr}\n"
if problems:
    sys.exit(problems)
print(f"{len(REFUSED)} refused, {len(WARNED)} warned of, {len(SILENT + SILENT_FILES)} meant, {len(RUNS)} runs refused")
