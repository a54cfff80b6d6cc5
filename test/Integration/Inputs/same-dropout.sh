#!/bin/bash
# same-dropout.sh PREFIX LENGTH: trains a model with dropout, attention raised and not, and compares losses.
set -e
t=$1.dropout.$2
fsdp-modelgen gpt2 --layers=2 --hidden=32 --heads=4 --vocab=64 --seq="$2" --batch=2 --dropout=0.3 -o "$t.mlir" 2> /dev/null
for raised in false true; do
  fsdp-compile "$t.mlir" --mesh=shard=2 --raise-attention=$raised -o "$t.$raised.fsdp" --dump-phases-to="$t.$raised" 2> /dev/null
  fsdp-run "$t.$raised.fsdp" --steps=6 --overfit --lr=1e-2 --metrics="$t.$raised.jsonl" --check-against=unsharded > "$t.$raised.log"
done
grep -q "weight_mod" "$t.true"/*.import.mlir
python3 - "$t.false.jsonl" "$t.true.jsonl" <<'END'
import json, sys
plain, raised = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
assert len(plain) == len(raised) == 6
for x, y in zip(plain, raised):
    for key in ("loss", "grad_norm"):
        assert abs(x[key] - y[key]) < 2e-4 * x[key], (key, x, y)
print("6 steps agree")
END
grep -o "check against unsharded passed: .*" "$t.true.log"
