"""Runs fsdp-compile with option files: checks the effect of valid files and the errors of invalid ones."""
import json
import pathlib
import subprocess
import sys

# (file or its text, options of the command line, expected on stdout or in the IR of phase shard)
UNITS, ACCUM = "fsdp.unit @h.0 shards 2", "fsdp.micro_batches = 4"
GOOD = [
    ({"mesh": {"shard": 2}}, [], UNITS),
    ({"mesh": "shard=2", "grad_accum": 4}, [], ACCUM),
    ({"mesh": "shard=2", "grad-accum": 4.0}, [], ACCUM),
    ({"mesh": "shard=3"}, ["--mesh=shard=2"], UNITS),  # the command line wins
    ({"mesh": "shard=2", "freeze": ["h.0.attn", "*.bias"]}, [], "@h.0.frozen"),
    ({"mesh": "shard=2", "reshard_after_forward": False}, [], "fsdp.unit @h.0 shards 2 x 14208 : f32 reshard false"),
    ({"mesh": "shard=4", "reshard_after_forward": 2}, [], "f32 reshard true within 2"),
    ({"mesh": "shard=4", "fsdp_config": {"fsdp_version": 2, "fsdp_reshard_after_forward": 2}}, [], "f32 reshard true within 2"),
    ({"mesh": "shard=4", "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}}, [], "f32 reshard true within 2"),
    ({"mesh": "shard=4", "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1}}, [], "f32 reshard true ["),
    # Hugging Face: the Trainer's arguments, a bare fsdp_config, Accelerate's file
    ({"mesh": "shard=2", "fsdp": "full_shard auto_wrap", "fsdp_config": {
        "transformer_layer_cls_to_wrap": ["GPT2Block"], "backward_prefetch": "backward_pre", "min_num_params": 0,
        "use_orig_params": True, "sync_module_states": True, "xla": False, "activation_checkpointing": False},
      "gradient_accumulation_steps": 4, "max_grad_norm": 1.0, "learning_rate": 1e-4}, [], ACCUM),
    ({"mesh": "shard=2", "min_num_params": 10000}, [], "fsdp.unit @h.0.mlp"),  # without a policy: by size
    ({"mesh": "shard=2", "fsdp_min_num_params": 1e8, "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}, [], UNITS),
    ({"mesh": "shard=2", "fsdp_config": {"fsdp_auto_wrap_policy": "SIZE_BASED_WRAP", "fsdp_min_num_params": 10000}}, [],
     "fsdp.unit @h.0.mlp"),
    ({"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP", "num_processes": 2, "mixed_precision": "no",
      "machine_rank": 0, "fsdp_config": {"fsdp_version": 2, "fsdp_reshard_after_forward": True,
                                         "fsdp_state_dict_type": "SHARDED_STATE_DICT", "fsdp_offload_params": False}}, [], UNITS),
    ({"mesh": "shard=2", "tf32": True}, [], UNITS),
    ({"mesh": "shard=2", "fsdp_sharding_strategy": "SHARD_GRAD_OP"}, [], "fsdp.unit @h.0 shards 2 x 14208 : f32 reshard false"),
    ({"mesh": {"replicate": 2, "shard": 2}, "fsdp": ["hybrid_shard", "auto_wrap"]}, [], 'fsdp.axis<"replicate", [2]>'),
    ({"mesh": "shard=2", "sharding_strategy": "zero1"}, [], 'parameters = [], gradients = [], optimizer = ["shard"]'),
    # DeepSpeed
    ({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "mesh": "shard=2",
      "zero_optimization": {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 5e8, "sub_group_size": 1e9,
                            "stage3_max_live_parameters": 1e9, "offload_param": {"device": "none", "pin_memory": True}},
      "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": "auto"}},
      "gradient_clipping": 1.0, "bf16": {"enabled": False}, "fp16": {"enabled": False}, "steps_per_print": 2000,
      "elasticity": {"enabled": False}, "wall_clock_breakdown": False}, [], ACCUM),
    ({"mesh": "shard=2", "zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "/mnt", "pin_memory": True}}}, [],
     UNITS),
    ({"mesh": "shard=2", "zero_optimization": {"stage": 1}}, [], 'parameters = [], gradients = [], optimizer = ["shard"]'),
    ({"mesh": "shard=2", "bf16": {"enabled": True}}, [], "fsdp.unit @h.0 shards 2 x 14208 : f32"),
    ({"mesh": "shard=2", "bf16": {"enabled": True}}, [], "tensor<48x144xbf16>"),
    ({"mesh": "shard=2", "fsdp_config": {"mixed_precision_policy": {"param_dtype": "torch.bfloat16", "reduce_dtype": "fp32"}}},
     [], "tensor<48x144xbf16>"),
    ({"mesh": "shard=2", "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 12, "loss_scale_window": 500,
                                  "hysteresis": 2, "min_loss_scale": 1}}, [], "tensor<48x144xf16>"),
    ({"mesh": "shard=2", "gradient_accumulation_steps": "auto", "fsdp": None}, [], UNITS),
]

# (file or its text, LINE:COLUMN of the error, its expected text on stderr)
BAD = [
    ("{", "1:2", "not JSON: "),
    ("[]", "1:1", "expected an object of options, found an empty list"),
    ('{"mesh": 2,\n "mesh": 3}', "2:2", '"mesh" is given twice in one object'),
    ('{\n  "mesh": "shard=2",\n  "shardin_strategy": "full_shard"}', "3:3",
     '"shardin_strategy": unknown key; did you mean "sharding_strategy"?'),
    ('{"zero_optimization": {"stag": 3}}', "1:24",
     '"zero_optimization.stag": unknown key; did you mean "zero_optimization.stage"?'),
    ('{"fsdp_config": {"fsdp_transformer_layer_cls": []}}', "1:18", "unknown key; did you mean \"fsdp_config."),
    ('{"frobnicate": 1}', "1:2", "unknown key; docs/reference/config-files.md lists the known keys"),
    ('{"' + chr(92) + "u001b[31m" + "x" * 1000 + '": 1}', "1:2", '"?[31m' + "x" * 75 + '...": unknown key; docs'),
    ('{"grad_accum": "4"}', "1:2", '"grad_accum": expected an integer, found the string "4"'),
    ('{"grad_accum": 1.5}', "1:2", '"grad_accum": expected an integer, found the number 1.5'),
    ('{"lr": true}', "1:2", '"lr": expected a number, found true'),
    ('{"timing": 1}', "1:2", '"timing": expected true or false, found the number 1'),
    ('{"mesh": []}', "1:2", '"mesh": expected a string, or a list or an object that contains strings or numbers, found an empty list'),
    ('{"fsdp_forward_prefetch": "maybe"}', "1:2", "expected true or false, found the string \"maybe\""),
    ('{"fsdp_sharding_strategy": 2.5}', "1:2", "note: \"fsdp_sharding_strategy\" says --sharding-strategy=2.5"),
    ('{"fsdp": "full_shard autowrap"}', "1:2", '"fsdp": expected full_shard, shard_grad_op, hybrid_shard, '
     "hybrid_shard_zero2, no_shard or auto_wrap, found autowrap"),
    ('{"fsdp": "full_shard offload"}', "1:2", '"fsdp": expected full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2, no_shard or auto_wrap, found offload: '),
    ('{"fsdp": {"a": 1}}', "1:2", '"fsdp": expected a string or a list of strings, found an object'),
    ('{"fsdp": "full_shard",\n "zero_optimization": {"stage": 2}}', "2:24",
     '"zero_optimization.stage": contradicts "fsdp": --sharding-strategy=zero2 here, --sharding-strategy=full_shard there'),
    ('{"zero_optimization": {"stage": 4}}', "1:24", '"zero_optimization.stage": expected 0, 1, 2 or 3, found 4'),
    ('{"zero_optimization": 3}', "1:2", '"zero_optimization": expected an object, found the number 3'),
    ('{"zero_optimization": {"offload_optimizer": {"device": "tape"}}}', "1:46", "expected none, cpu or nvme, found tape: the update runs on the host"),
    ('{"offload_params": true,\n "zero_optimization": {"offload_optimizer": {"device": "nvme"}}}', "2:46",
     "--offload=gradients+optimizer:file here, --offload=parameters+gradients+optimizer there"),
    ('{"zero_optimization": {"offload_param": {"device": "cpu"}}}', "1:42",
     "expected none, found cpu: give --offload=parameters+gradients+optimizer on the command line"),
    ('{"optimizer": {"type": "Lamb"}}', "1:16", '"optimizer.type": expected AdamW or SGD, found Lamb: the supported optimizers are AdamW and SGD'),
    ('{"optimizer": {"params": {"betas": [0.9]}}}', "1:27", "expected a list of two numbers, found a list of 1"),
    ('{"optimizer": {"params": {"betas": []}}}', "1:27", "expected a list of two numbers, found an empty list"),
    ('{"grad_accum": []}', "1:2", "found an empty list"),
    ('{"scheduler": {"type": "WarmupLR"}}', "1:2", '"scheduler": this key is not supported: options of fsdp-run set the schedule'),
    ('{"min_num_params": 5, "transformer_layer_cls_to_wrap": "GPT2Block"}', "1:2",
     '"min_num_params": contradicts "transformer_layer_cls_to_wrap"'),
    ('{"num_processes": 4, "mesh": "shard=2"}', "1:2", '"num_processes": expected 2, the number of ranks of the mesh, found 4'),
    ('{"train_micro_batch_size_per_gpu": 3}', "1:2",
     '"train_micro_batch_size_per_gpu": 3 sequences, but the model was exported with 2 per rank and micro-batch'),
    ('{"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}', "1:2",
     '"train_batch_size": 12 sequences in a step, but 2 per rank and micro-batch x 4 micro-batches x 1 ranks are 8'),
    ('{"train_batch_size": 5}', "1:2", '"train_batch_size": 5 sequences in a step, but expected a multiple of 2 per rank and micro-batch x 1 ranks'),
    ('{"bf16": {"enabled": true},\n "fp16": {"enabled": true}}', "2:11",
     '"fp16.enabled": contradicts "bf16.enabled": --param-dtype=f16 here, --param-dtype=bf16 there'),
    ('{"bf16": true, "mixed_precision": "fp16"}', "1:16", '"mixed_precision": contradicts "bf16"'),
    ('{"mixed_precision": "fp8"}', "1:2", "expected no, bf16 or fp16, found fp8: training in fp8 is not supported"),
    ('{"config": "other.json"}', "1:2", "a file of options cannot name another one"),
    ('{"grad_accum": 0}', "1:2", 'note: "grad_accum" says --grad-accum=0'),
    ('{"transformer_layer": "blocks.*"}', "1:2", 'note: "transformer_layer" says --transformer-layer=blocks.*'),
    ('{"device_mesh": [2, 2]}', "1:2", '"device_mesh": this key is not supported: give the axes of the ranks in '),
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
model = folder / "model.mlir"
subprocess.run(["fsdp-modelgen", "gpt2", "--layers=2", "--hidden=48", "--heads=3", "--vocab=131", "--seq=13", "--batch=2",
                "-o", model], check=True, capture_output=True)


def run(number, text, options):
    file = folder / f"{number}.json"
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return file, subprocess.run(["fsdp-compile", model, f"--config={file}", "--compile-to=shard", "-o", "-", *options],
                                capture_output=True, text=True, timeout=60)


for number, (text, options, expected) in enumerate(GOOD):
    _, done = run(f"good{number}", text, options)
    if done.returncode or expected not in done.stdout:
        sys.exit(f"{text}: exit code {done.returncode}, expected\n  {expected}\nfound\n{done.stderr}{done.stdout[:4000]}")
for number, (text, place, expected) in enumerate(BAD):
    file, done = run(f"bad{number}", text, [])
    first = f"{file}:{place}: "
    if done.returncode != 2 or expected not in done.stderr or first not in done.stderr:
        sys.exit(f"{text}: exit code {done.returncode}, expected\n  {first}{expected}\nfound\n{done.stderr}")
print(f"{len(GOOD)} files taken, {len(BAD)} refused")
