# Damages the bundle of models `suite` in several ways, and prints the exit code and the last output line of run_all for each.
run() { "$@" --parts=kernels,training --groups=tiny --only=llama --seconds=2 >out 2>&1; code=$?; echo "$code $(tail -n 1 out)"; }
write() { mkdir -p "$(dirname "$1")" && echo "$2" >"$1"; }
losses=suite/models/llama-tiny.cpu.json
write without/numpy.py 'raise ImportError("no numpy here")'
write suite/llama/sm_90a/kernels.json '{"chip": "sm_90a", "kernels": [{"name": "llama", "scratchBytes": 0, "bindings": [], "launches": []}]}'
cp suite/bundle.json whole.json
sed 's/"groups": {/"groups": {"tiny": [{"name": "llama"}]/' whole.json >suite/bundle.json
PYTHONPATH=without run "$@" >/dev/null
echo "$code $(head -n 1 out)"
sed -n 's/^sm_90a training \(llama-tiny, nvptx: .*\)/\1/p' out
cp whole.json suite/bundle.json
for text in '{"losses": [5.5]}' '{"losses": [5.5, "a", 5.4]}' '{'; do
  cp $losses losses.json && write $losses "$text" && run "$@" && cp losses.json $losses
done
rm $losses && run "$@"
cp losses.json $losses
printf '\x7fELF' >suite/fsdp-run && run "$@"
chmod -x suite/fsdp-run && run "$@"
rm suite/fsdp-run && run "$@"
write suite/bundle.json '{"chips": ["sm_90a"], "groups": {}, "models": {"tiny": [{"name": "a"}]}}' && run "$@"
write suite/bundle.json '{"chips": ["sm_"], "groups": {}, "models": {}}' && run "$@"
