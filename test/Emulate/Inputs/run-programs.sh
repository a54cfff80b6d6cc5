# Runs the programs of a PTX file.
run() { fsdp-emulate "$file" "$@" || exit 1; }
file=$1
run --entry=sum --grid=3 --block=128 --arg=f32[1000]:iota --arg=f32[1] --arg=s32:1000 --print=1
run --entry=transpose --grid=2,2 --block=32,8 --arg=f32[2000]:iota --arg=f32[2000]:unwritten --arg=s32:50 --arg=s32:40 --print=1:52
run --entry=histogram --grid=2 --block=96 --arg=s32[150]:iota --arg=s32[16] --arg=s32:150 --print=1
run --entry=collatz --grid=2 --block=64 --arg=s32[100]:unwritten --arg=s32:100 --print=0:27
run --entry=softmax --grid=2 --block=32 --arg=f32[400]:random=3 --arg=f32[400]:unwritten --arg=s32:200 --arg=s32:3 --print=1:4
