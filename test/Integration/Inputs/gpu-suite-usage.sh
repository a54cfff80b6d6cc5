# Runs build and run_all with wrong options and with damaged bundles, and prints the exit code and the last output line of each.
build=$1
shift
run() { "$@" >out 2>&1; code=$?; echo "$code $(tail -n 1 out)"; }
run "$build" bundle.json
run "$build" elsewhere --chips=
run "$build" elsewhere --chips=sm_75
run "$build" elsewhere --what=all
run "$@" --check-only --rounds=-1
run "$@" --check-only --seconds=nan
run "$@" --parts=kernels,times
run "$@" --parts=kernels --check-only
run "$@" --check-only --only=nowhere
run "$@" --check-only --out=/proc/x
run "$@" --check-only --out=bundle.json
mkdir -p without && echo 'raise ImportError("no numpy here")' >without/numpy.py
PYTHONPATH=without run "$@" --check-only
kernels=$(ls -d ./*/sm_80 | head -n 1)/kernels.json
cp "$kernels" whole.json
head -c 200 whole.json >"$kernels"
run "$@" --check-only
echo '{"chip": "sm_80", "kernels": [{"name": "k", "scratchBytes": 0, "bindings": []}]}' >"$kernels"
run "$@" --check-only
rm "$kernels"
run "$@" --check-only
cp whole.json "$kernels"
echo '{}' >bundle.json
run "$@" --check-only
echo x >bundle.json
run "$@" --check-only
rm bundle.json
run "$@" --check-only
PYTHONPATH=without run "$@" --check-only
