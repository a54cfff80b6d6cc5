# Usage: rehearse.sh DRIVER PYTHON [OPTIONS...], in a folder with a bundle `b`. Runs the suite on the emulator's driver, and prints its output, its exit
# code and whether it ended in time.
driver=$1 python=$2
shift 2
begun=$(date +%s)
"$python" b/run_all --driver="$driver" --minutes=4 --out=out --repeats=4 --rounds=2 --copy-bytes=100000 --time-factor=0.5 --peers= "$@" 2>&1
echo "exit code $?"
[ $(($(date +%s) - begun)) -lt 240 ] && echo "in time"
exit 0
