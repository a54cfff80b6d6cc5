set -u
while read -r model ranks options; do
  fsdp-compile $model.mlir --overlap $options -o m.fsdp 2>/dev/null &&
    fsdp-run m.fsdp --ranks=$ranks --overfit --steps=3 --assert-no-allocations --check-against=unsharded 2>&1 | grep -o "check against unsharded passed" || echo "error: $model $options"
done <<LIST
gpt 2 --mesh=shard=2
gpt 3 --mesh=shard=3 --clip-grad-norm=0.1
gpt 2 --mesh=shard=2 --param-dtype=bf16
gpt 2 --mesh=shard=2 --param-dtype=bf16 --reduce-dtype=bf16 --grad-accum=3
gpt 2 --mesh=shard=2 --grad-accum=2 --grad-sync=last
gpt 4 --mesh=replicate=2,shard=2
gpt 4 --mesh=replicate=2,shard=2 --sharding-strategy=hfsdp
llama 2 --mesh=shard=2 --sharding-strategy=zero1
llama 2 --mesh=shard=2 --sharding-strategy=zero2 --param-dtype=bf16 --param-storage=both
llama 2 --mesh=shard=2 --sharding-strategy=no_shard
llama 4 --mesh=shard=4 --reshard-after-forward=2
llama 2 --mesh=shard=2 --loss-scale=dynamic --param-dtype=f16
llama 2 --mesh=shard=2 --auto-wrap-policy=none --optimizer=sgd
llama 1 --mesh=shard=1
gpt 2 --mesh=shard=2 --bucket-bytes=16M
gpt 4 --mesh=replicate=2,shard=2 --bucket-bytes=64k --grad-accum=2
llama 2 --mesh=shard=2 --bucket-bytes=100k --activation-checkpointing=full --clip-grad-norm=0.1
LIST
for options in "" "--overlap" "--overlap --prefetch=forward=0,backward=3" "--overlap --prefetch=forward=2,backward=1" \
  "--overlap --cluster=$1/8xH100.json" "--overlap --bucket-bytes=60k" "--overlap --bucket-bytes=1M --memory-limit=600k"; do
  fsdp-compile gpt.mlir --mesh=shard=2 $options -o p.fsdp 2>/dev/null && fsdp-run p.fsdp --ranks=2 --overfit --steps=3 --export=w.safetensors >/dev/null 2>&1
  sha256sum <w.safetensors
done | sort -u | wc -l | sed 's/^1$/the same weights with any prefetch/'
fsdp-compile gpt.mlir --mesh=shard=2 --overlap --compile-to=plan -o p.mlir
awk '/fsdp.program @step/{on=1} /fsdp.program @eval/{on=0} on && /collective/{c=NR} on && /fsdp.wait/{n += NR > c + 1} END {print "starts ahead: " n}' p.mlir
for bytes in 0 1M; do
  fsdp-compile gpt.mlir --mesh=shard=2 --overlap --bucket-bytes=$bytes --explain=json 2>/dev/null |
    python3 -c 'import json, sys; s = json.load(sys.stdin)["schedule"]; print(s["collectives"], "collectives in", s["launches"], "launches")'
done
for bytes in 0 1M; do # a launch pays its latency once
  fsdp-compile gpt.mlir --mesh=shard=2 --overlap --bucket-bytes=$bytes --no-code -o p.fsdp 2>/dev/null
  fsdp-run p.fsdp --simulate=$1/8xH100.json | awk '/alone ms/{on=1; next} /^kernels:/{on=0} on{sum += $3} END {print sum}'
done | xargs | awk '{print $2 < 0.7 * $1 ? "simulated: less latency" : "error: " $0}'
fsdp-compile gpt.mlir --mesh=shard=2 --overlap --bucket-bytes=some -o p.fsdp
fsdp-compile gpt.mlir --mesh=shard=2 --bucket-bytes=1M -o p.fsdp
fsdp-compile gpt.mlir --mesh=shard=2 --overlap --prefetch=forward=many -o p.fsdp
fsdp-compile gpt.mlir --mesh=shard=2 --overlap --cluster=none.json -o p.fsdp
echo '[]' >bad.json
fsdp-compile gpt.mlir --mesh=shard=2 --overlap --cluster=bad.json -o p.fsdp
true
