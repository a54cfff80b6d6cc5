// The option names an argument by its position, or by the name in the argument's location.
// RUN: fsdp-opt %s '--fsdp-mark-batch=batch=1=tokens,2=mask' | FileCheck %s

// CHECK: %{{.*}}: tensor<2x4xi64> {fsdp.batch = "tokens", fsdp.position = 1 : i64}, %{{.*}}: tensor<2x4xi64> {fsdp.batch = "mask", fsdp.position = 2 : i64}

// DOC-BEFORE-BEGIN fsdp-mark-batch
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w", fsdp.position = 0 : i64},
                %ids: tensor<2x4xi64> {fsdp.position = 1 : i64},
                %mask: tensor<2x4xi64> {fsdp.position = 2 : i64}) {
  return
}
// DOC-BEFORE-END
