// Invalid options are errors that name the expected values.

// RUN: not fsdp-opt %s --fsdp-apply-optimizer="optimizer=lion" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: optimizer: expected 'adamw' or 'sgd', found 'lion'
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="beta1=1" 2>&1 | FileCheck %s --check-prefix=BETA1
// BETA1: error: beta1: expected a number in [0, 1), found 1
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="beta2=nan" 2>&1 | FileCheck %s --check-prefix=BETA2
// BETA2: error: beta2: expected a number in [0, 1), found
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="eps=-1" 2>&1 | FileCheck %s --check-prefix=EPS
// EPS: error: eps: expected a number in [0, inf), found -1
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="weight-decay=inf" 2>&1 | FileCheck %s --check-prefix=DECAY
// DECAY: error: weight-decay: expected a number in [0, inf), found
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="optimizer=sgd momentum=1.5" 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// MOMENTUM: error: momentum: expected a number in [0, 1), found 1.5
// RUN: not fsdp-opt %s --fsdp-add-step-block="clip-grad-norm=-1" 2>&1 | FileCheck %s --check-prefix=CLIP
// CLIP: error: clip-grad-norm: expected a finite number of at least 0, found -1
// RUN: not fsdp-opt %s --fsdp-add-step-block 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: error: expected a function of program 'step'; run Shard and Differentiate first
module {}
