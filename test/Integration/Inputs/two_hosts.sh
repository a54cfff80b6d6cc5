# two_hosts.sh SCRATCH SOURCE: runs two-hosts.test
set -e
. "$2/Inputs/models.sh"
scratch=$1 a=fsdp$$a b=fsdp$$b

# Kills the processes in the namespaces, and removes the namespaces.
clean() {
  for host in $a $b; do
    ip netns pids $host 2>/dev/null | xargs -r kill -9 || true
    ip netns del $host 2>/dev/null || true
  done
}
trap clean EXIT
for host in $a $b; do
  ip netns add $host
  ip -n $host link set lo up
done
ip -n $a link add eth0 type veth peer name eth0 netns $b
ip -n $a addr add 10.77.0.1/24 dev eth0
ip -n $b addr add 10.77.0.2/24 dev eth0
for host in $a $b; do
  ip -n $host link set eth0 up
  tc -n $host qdisc add dev eth0 root tbf rate 1gbit burst 256k latency 50ms
done

# Replaces ssh for mpirun: starts processes in the namespace of the host, with its host name.
printf '%s\n' '#!/bin/sh' 'shift' \
  "exec ip netns exec $b unshare -u sh -c 'hostname fsdp-b; exec sh -c \"\$0\"' \"\$*\"" >"$scratch.agent"
# Rank 1's output also goes to a file of its host, since a cut link transmits nothing.
printf '%s\n' '#!/bin/sh' "[ \$OMPI_COMM_WORLD_RANK = 1 ] && exec 2>>$scratch.rank1" \
  "exec $(command -v fsdp-run) \"\$@\"" >"$scratch.rank"
chmod +x "$scratch.agent" "$scratch.rank"
across() {
  ip netns exec $a unshare -u sh -c 'hostname fsdp-a; exec "$@"' sh timeout -k 10 240 mpirun --allow-run-as-root \
    --bind-to none -H 10.77.0.1:1,10.77.0.2:1 -n 2 --mca plm_rsh_agent "$scratch.agent" --mca pml ob1 --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$scratch.rank" "$@"
}

rm -f "$scratch.rank1" "$scratch.metrics"
llama "$scratch.mlir"
fsdp-compile "$scratch.mlir" --mesh=shard=2 -o "$scratch.fsdp"
fsdp-run "$scratch.fsdp" --steps=5 --export="$scratch.threads" >/dev/null
across "$scratch.fsdp" --steps=5 --export="$scratch.across" --check-against=unsharded --timeout-seconds=120
cmp "$scratch.threads" "$scratch.across" && echo "same bits"

lines() { cat "$scratch.metrics" "$scratch.metrics.tmp" 2>/dev/null | wc -l; }
# cut WORDS NUMBER OPTIONS: cuts the link during a run. WORDS must then be in the output of NUMBER hosts.
cut() {
  local words=$1 number=$2 told=no found
  rm -f "$scratch.rank1" "$scratch.metrics"*
  across "$scratch.fsdp" --steps=100000000 --timeout-seconds=5 --metrics="$scratch.metrics" "${@:3}" >"$scratch.cut" 2>&1 &
  local run=$!
  for i in $(seq 600); do
    [ "$(lines)" -ge 20 ] && break
    sleep 0.2
  done
  sleep 1
  echo "the link is cut"
  ip -n $a link set eth0 down
  for i in $(seq 450); do
    found=$(grep -l "$words" "$scratch.cut" "$scratch.rank1" | wc -l)
    [ "$found" -ge "$number" ] && told=yes && break
    sleep 0.2
  done
  cat "$scratch.cut" "$scratch.rank1"
  [ $told = yes ] && echo "told within the limit"
  ip -n $a link set eth0 up
  wait $run || true
}

# The watchdog of each rank names the other rank.
cut "waited 5 s" 2 --heartbeat-seconds=60
# The first host without heartbeats of the other names its rank, and mpirun ends both.
cut "has sent no heartbeat for 3 s: rank [01] (last seen" 1
