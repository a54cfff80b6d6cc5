# Runs fsdp-emulate with options that it refuses; prints the exit code and the message of each run.
mkdir -p "$2" && cd "$2" && echo ab >short
shape="--block=64"
memory="--arg=u32[64]"
count="--arg=u32:64"
run() { found=$(fsdp-emulate "$@" 2>&1); code=$?; [ $code = 0 ] && found=taken; echo "$code ${found#fsdp-emulate: error: }"; }
run .
for fill in . short /dev/zero; do run "$1" $shape "--arg=u32[64]:@$fill" $count; done
run "$1" $shape $memory $count --shared=-1
run "$1" $shape $memory $count --step-limit=-1
for number in u32:-1 u32:4294967296 s32:2147483648 s8:-129 b32:-2147483649 u64:18446744073709551616 f32:1e60 f16:65520 f64:1e400; do
  run "$1" $shape $memory --arg=$number
done
run "$1" $shape $memory $count --grid=1,70000
run "$1" --block=1,1,65 $memory $count
run "$1" $shape --arg=map:f32[8,6]:strides=32:strides=32:box=4,3 $count
run "$1" $shape $memory $count --save=0
run "$1" $shape $memory $count --save=x:y
run "$1" $shape $memory $count --print=0:
run "$1" $shape $memory $count --save=0:/no/such/place
run "$1" $shape $memory --arg=b32:-1 --no-races --step-limit=0x1000 --save=0:out
