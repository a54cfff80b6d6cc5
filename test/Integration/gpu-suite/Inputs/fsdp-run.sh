#!/bin/bash
# Replaces fsdp-run: changes its output or behaviour according to $PLANT and its artifact and options.
whole=$(dirname "$0")/fsdp-run-whole
[ "$PLANT" = hang ] && { sleep 1000 & sleep 1000; }
case "$*" in
*1.cublaslt*--cuda-graph*) kill -9 $$ ;;
*1.cublaslt*) "$whole" "$@" | sed 's/GPU memory besides the arenas: grew by 0 /GPU memory besides the arenas: grew by 4096 /' ;;
*2.nvptx*--cuda-graph*) "$whole" "$@" | sed -E 's/^(memory measured:.*\([0-9]+) /\17 /' ;;
*2.nvptx*) "$whole" "$@" | sed '/^GPU memory besides the arenas, such/d; /^check against/d' ;;
*4.nvptx*--cuda-graph*) exec "$whole" "$@" --steps=no ;;
*4.nvptx*) exec "$whole" "${@/--steps=3/--steps=2}" ;;
*) exec "$whole" "$@" ;;
esac
