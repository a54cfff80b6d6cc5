// The axis context of a mesh, and the op share_cotangent.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --verify-roundtrip -o - | FileCheck %s

// The axis consists of neighbours on the axis shard.
// CHECK: fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [3, 2]>] context 2
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [3, 2]>] context 2
func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>, tensor<4xf32>) {
  // CHECK: fsdp.share_cotangent %{{.*}} @mesh ["context"] : tensor<8xf32>
  %y = fsdp.share_cotangent %x @mesh ["context"] : tensor<8xf32>
  %all = fsdp.all_gather %x @mesh ["context"] : tensor<8xf32> -> tensor<16xf32>
  %own = fsdp.own_piece %x @mesh ["context"] : tensor<8xf32> -> tensor<4xf32>
  return %y, %all, %own : tensor<8xf32>, tensor<16xf32>, tensor<4xf32>
}

// -----

// (C3)
// expected-error @below {{expected the size of 'context' to divide the 4 ranks of axis 'shard', found 3}}
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>] context 3

// -----

// (C1)
// expected-error @below {{expected no axis 'context', because 'context N' after the axes gives its size}}
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>, #fsdp.axis<"context", [2]>]

// -----

// Ranks that differ on context also differ on shard.
fsdp.mesh @m [#fsdp.axis<"shard", [4]>] context 2
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected each axis once, whole or as groups, found "context" after "shard"}}
  %y = fsdp.share_cotangent %x @m ["shard", "context"] : tensor<4xf32>
  return
}

// -----

// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"shard", [4]>]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "context"}}
  %y = fsdp.share_cotangent %x @m ["context"] : tensor<4xf32>
  return
}
