// The attribute `fsdp.limit` is allowed on batch arguments only.
// RUN: not fsdp-opt %s --fsdp-check-marks 2>&1 | FileCheck %s

// CHECK: error: argument 0 is a parameter, but 'fsdp.limit' is for batch arguments

// DOC-BEFORE-BEGIN fsdp-check-marks
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w", fsdp.limit = 9 : i64}) {
  return
}
// DOC-BEFORE-END
