#!/bin/bash
# attention-forms.sh PREFIX PYTHON TOLERANCE FORM...: trains each form of test/Import/Inputs/attention_forms.py with and
# without raised attention, on 2 ranks and unsharded. Compares losses and norms, and prints the number of raised attentions.
set -euo pipefail
prefix=$1 python=$2 tolerance=$3
shift 3
here=$(dirname "$0")
for form in "$@"; do
  model=$prefix.$form.mlir
  "$python" "$here/../../Import/Inputs/attention_forms.py" "$form" > "$model"
  raised=$(fsdp-compile "$model" --attach-loss=cross_entropy --compile-to=import -o - | grep -c '= fsdp.attention')
  for how in false true; do
    fsdp-compile "$model" --attach-loss=cross_entropy --mesh=shard=2 --raise-attention=$how -o "$prefix.fsdp"
    fsdp-run "$prefix.fsdp" --steps=8 --overfit --lr=1e-2 --metrics="$prefix.$how.jsonl" --check-against=unsharded > "$prefix.log"
    grep -q 'check against unsharded passed: 8 steps on 2 ranks' "$prefix.log"
  done
  compared=$("$python" "$here/compare-metrics.py" "$prefix.false.jsonl" "$prefix.true.jsonl" "$tolerance")
  echo "$form: $raised raised, $compared"
done
