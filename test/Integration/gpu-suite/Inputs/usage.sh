# Runs build and run_all with wrong options and with damaged bundles, and prints the exit code and the last output line of each.
build=$1
shift
run() { "$@" >out 2>&1; code=$?; echo "$code $(tail -n 1 out)"; }
suite() { run "$@" --parts=checks --out=usage; }
run "$build" b/bundle.json
mkdir -p mine && echo 5 >mine/bundle.json
run "$build" mine --only=tiny --what=kernels --names=37x53
cat mine/bundle.json
run "$build" elsewhere --most-mib=nan
run "$build" elsewhere --chips=
run "$build" elsewhere --chips=sm_75
run "$build" elsewhere --what=all
run "$build" elsewhere --only=tiny --what=kernels --chips=sm_80 --names=37x53 --most-mib=0.1
run "$build" elsewhere --names=nowhere
run "$build" elsewhere --cluster=nofile
run "$build" elsewhere --cluster=b/bundle.json
suite "$@" --rounds=-1
suite "$@" --minutes=nan
run "$@" --parts=times
suite "$@" --peers=FA9
suite "$@" --groups=big
suite "$@" --only=nowhere
run "$@" --parts=headline --only=nowhere --out=usage
suite "$@" --peer-module=nofile.py
suite "$@" --whole=-1
suite "$@" --driver=
run "$@" --out=/proc/x
run "$@" --out=b/bundle.json
mkdir -p without && echo 'raise ImportError("no numpy here")' >without/numpy.py
PYTHONPATH=without suite "$@"
kernels=$(ls -d b/*/sm_80 | head -n 1)/kernels.json
cp "$kernels" whole.json
head -c 200 whole.json >"$kernels"
suite "$@"
echo '{"chip": "sm_80", "kernels": [{"name": "k", "scratchBytes": 0, "bindings": []}]}' >"$kernels"
suite "$@"
rm "$kernels"
suite "$@"
cp whole.json "$kernels"
cp b/bundle.json bundle.json
sed 's/"smoke": *\[/"smoke": [5, /' bundle.json >b/bundle.json
suite "$@"
cp bundle.json b/bundle.json
mkdir -p rows
run "$@" --page --out=rows/none
for row in '{bad' 5 '{"part": "smoke"}'; do
  echo "$row" >rows/gpu_rows.jsonl
  run "$@" --page --out=rows
done
ls rows
echo '{}' >b/bundle.json
suite "$@"
echo x >b/bundle.json
suite "$@"
rm b/bundle.json
suite "$@"
