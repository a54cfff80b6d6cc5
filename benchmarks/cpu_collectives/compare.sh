#!/usr/bin/env bash
# Runs cpu_collectives and cpu_collectives_open_mpi alternately, three times each, and prints the best results as a Markdown table.
#   benchmarks/cpu_collectives/compare.sh [BUILD]
set -euo pipefail
bin=${1:-build}/bin
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for round in 1 2 3; do
  "$bin/cpu_collectives" | sed 's/^/shm /' >>"$log"
  mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$bin/cpu_collectives_open_mpi" | tr -d '\r' | sed 's/^/mpi /' >>"$log"
done
echo "| collective | MiB | shm GB/s | Open MPI GB/s | ratio |"
echo "|---|---|---|---|---|"
awk '{ key = $2 " " $3; if ($4 > best[$1, key]) best[$1, key] = $4; if (!(key in seen)) { seen[key] = 1; order[++n] = key } }
  END { for (i = 1; i <= n; ++i) { split(order[i], k, " "); a = best["shm", order[i]]; b = best["mpi", order[i]];
        printf "| %s | %s | %.2f | %.2f | %.2f |\n", k[1], k[2], a, b, a / b } }' "$log"
