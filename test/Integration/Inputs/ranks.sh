# Functions for scripts that start two ranks and check their results.
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("localhost", 0)); print(s.getsockname()[1])'; }
# rank RANK PORT COMMAND...: runs a command as one of two ranks
rank() { env RANK="$1" WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$2" timeout 100 "${@:3}"; }
# ended NAME CODE PATTERN...: fails unless the file NAME.code contains CODE and NAME.log contains all patterns
ended() {
  [ "$(cat "$1.code")" = "$2" ] || { echo "$1: expected exit code $2, found $(cat "$1.code"):"; cat "$1.log"; exit 1; }
  for pattern in "${@:3}"; do
    grep -Eq -- "$pattern" "$1.log" || { echo "$1: expected '$pattern', found:"; cat "$1.log"; exit 1; }
  done
}
# logged NAME COMMAND...: runs a command; writes its output to NAME.log and its exit code to NAME.code
logged() {
  local code=0
  "${@:2}" >"$1.log" 2>&1 || code=$?
  echo $code >"$1.code"
}
# until_found PATTERN FILE: waits until FILE has a line that matches
until_found() {
  for _ in $(seq 1200); do grep -Eq -- "$1" "$2" 2>/dev/null && return; sleep 0.05; done
  echo "no '$1' in $2:"; cat "$2"; exit 1
}
# text FILE SEED BYTES: writes a text for the models of models.sh
text() {
  python3 -c 'import random, sys
random.seed(int(sys.argv[2]))
open(sys.argv[1], "wb").write(bytes(random.randrange(97) for _ in range(int(sys.argv[3]))))' "$@"
}
