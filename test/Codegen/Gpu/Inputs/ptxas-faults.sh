# Assembles a kernel with a ptxas that fails in each way; prints the exit code and the messages without folders.
work=$1
kernel=$work/k.mlir
export FAKE_PTXAS_CHILD=$work/child PATH=$work/fake:$PATH
cat > "$kernel" <<'MLIR'
func.func @k(%a: tensor<4xf32>, %out: tensor<4xf32> {fsdp.out = 0}) -> tensor<4xf32> attributes {fsdp.kernel} {
  return %a : tensor<4xf32>
}
MLIR
run() {
  "$@" >"$work/out" 2>"$work/err"
  code=$?
  echo "$FAKE_PTXAS $code $(grep -E 'error:|note:|warning:' "$work/err" | sed "s|'[^']*/ptxas'|ptxas|; s|^[^ ]*k.mlir[^ ]* ||" | cut -c1-180 | paste -sd'|')"
}
gone() { # nothing of the group is left
  for _ in $(seq 100); do
    state=$(sed 's/.*) //' "/proc/$(cat "$FAKE_PTXAS_CHILD")/stat" 2>/dev/null | cut -c1)
    case $state in '' | Z) echo "child gone"; return ;; esac
    sleep 0.1
  done
  echo "child alive"
}
for FAKE_PTXAS in nothing empty rubbish host silent lost dies rejects floods leaves fine; do
  export FAKE_PTXAS
  run fsdp-kernel-test "$kernel" --save-bundle="$work/bundle"
done
gone
FAKE_PTXAS=verbose run fsdp-kernel-test "$kernel" --save-bundle="$work/bundle"
echo "verbose: $(wc -c <"$work/err" | awk '{ print ($1 < 20000 ? "a part" : $1) }'), $(tail -n 1 "$work/err")"
FAKE_PTXAS=mute run fsdp-kernel-test "$kernel" --emit=sass-stats
printf 'no program' >"$work/fake/ptxas"
FAKE_PTXAS=format run fsdp-kernel-test "$kernel" --save-bundle="$work/bundle"
