# Damages the bundle of models `suite` in several ways, and prints the exit code of run_all and its first row for each, or its error.
run() {
  rm -rf damaged && "$@" --parts=training --only=llama --out=damaged --minutes=0.5 >out 2>&1
  code=$?
  echo "$code $(sed -E 's/^ *[0-9.]+ s //' out | head -n 1)"
}
write() { mkdir -p "$(dirname "$1")" && echo "$2" >"$1"; }
losses=suite/models/llama-tiny.cpu.json
cp $losses losses.json
for text in '{"losses": [5.5]}' '{"losses": [5.5, "a", 5.4]}' '{'; do
  write $losses "$text" && run "$@"
done
rm $losses && run "$@"
cp losses.json $losses
printf '\x7fELF' >suite/fsdp-run && run "$@"
chmod -x suite/fsdp-run && run "$@"
rm suite/fsdp-run && run "$@"
write suite/bundle.json '{"chips": ["sm_90a"], "built": "", "headline": [], "smoke": [], "groups": {}, "models": {"tiny": [{"name": "a"}]}}' && run "$@"
write suite/bundle.json '{"chips": ["sm_"], "built": "", "headline": [], "smoke": [], "groups": {}, "models": {}}' && run "$@"
