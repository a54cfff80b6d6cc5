# Runs fsdp-kernel-test with invalid arguments; prints the exit code and the error of each run.
cd "$1" && rm -rf b
run() {
  fsdp-kernel-test "$@" >out 2>err
  code=$?
  said=$(grep -m 1 -E '(^| )error: |^fsdp-kernel-test: ' err || cat out)
  echo "$code ${said#fsdp-kernel-test: }"
}
run fine.mlir --only=nope
run fine.mlir --only=nope --emit=ptx
run fine.mlir --only=nope --save-bundle=b
run none.mlir
run none.mlir --save-bundle=b
run empty.mlir --emit=ptx
run scalar.mlir --save-bundle=b
run wide.mlir --emit=ptx
run wide.mlir --save-bundle=b
run fine.mlir --emit=ptx --save-bundle=b
run fine.mlir --save-bundle=
run fine.mlir --only=
run fine.mlir --target=sm_80
run fine.mlir --target=sm_75 --emit=ptx
run fine.mlir --spills=error
run fine.mlir --emit=clocks --spills=warn
run fine.mlir --emit=ptx --spills=never
run fine.mlir --emit=ptx --device=cpu
run fine.mlir --emit=ptx --save-image=i
run fine.mlir --save-bundle=b --save-image=i
run fine.mlir --device=emulate --save-image=i
run fine.mlir --device=emulate --also-cpu=x86-64-v3
run fine.mlir --device=emulate --bench
run fine.mlir --save-bundle=b --tolerance=1
for option in tolerance=nan tolerance=inf error-factor=-1 floor=-5; do run fine.mlir --$option; done
run fine.mlir --tolerance=1 --error-factor=2
run fine.mlir --widen=false --error-factor=2
run fine.mlir --save-image=nowhere/i
run fine.mlir --save-image=/dev/full
run long.mlir
run long.mlir --emit=clocks
run small.mlir --device=emulate
run cast.mlir
run nan.mlir --error-factor=2
for tile in '""' '"64x"' '"64x64/"' '"wg128x64/2+"' '"99999999999999999999x64"' 5; do
  sed "s|TILE|$tile|" tile.mlir >tiled.mlir
  run tiled.mlir --device=emulate --target=sm_90a
  grep -m 1 -o 'contractions whose .*' err
done
run fine.mlir --only=k --only=l
run fine.mlir --bench --tolerance=1
run wide.mlir --emit=clocks
[ ! -e b ] || echo "a folder was made"
run fine.mlir --device=emulate --only=k
run fine.mlir --save-bundle=b --only=l
echo "kernels: $(sed -n 's/.*"name": "\([kl]\)".*/\1/p' b/kernels.json)"
