# The two small models of the integration tests. Their sizes are no multiples of numbers of ranks or tiles.
gpt2() { fsdp-modelgen gpt2 --layers=2 --hidden=48 --heads=3 --vocab=131 --seq=13 --batch="${2:-2}" -o "$1" 2>/dev/null; }
llama() {
  fsdp-modelgen llama --layers=2 --hidden=48 --heads=4 --kv-heads=2 --intermediate=80 --vocab=97 --seq=11 --batch="${2:-2}" -o "$1" 2>/dev/null
}
