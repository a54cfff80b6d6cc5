// RUN: fsdp-opt %s --fsdp-plan --verify-roundtrip | FileCheck %s

// A layer y = x w + b, its loss sum(y), trained by w -= lr * dw on two ranks.

// Kernels write gradients straight into the flat buffer; the padding is filled.
// CHECK:      fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT:   fsdp.collective 0 all_gather @state.0[0, 256] -> @step.1[0, 512] of 64 x f32 over ["shard"] unit @layer
// CHECK-NEXT:   fsdp.launch @[[DENSE:k_[0-9a-f]{16}]] (@input.0[0, 64], @step.1[0, 128], @step.1[128, 16], @step.2[0, 32]) "contract tokens, w, b"
// CHECK-NEXT:   fsdp.launch @[[TANH:.*]] (@step.2[0, 32]) "map"
// CHECK-NEXT:   fsdp.launch @[[DW:.*]] (@input.0[0, 64], @step.2[0, 32], @step.0[0, 128]) "contract tokens -> gradient of w"
// CHECK-NEXT:   fsdp.launch @[[DB:.*]] (@step.2[0, 32], @step.0[128, 16]) "column -> gradient of b"
// CHECK-NEXT:   fsdp.fill @step.0[144, 368] "padding of layer"
// CHECK-NEXT:   fsdp.collective 1 reduce_scatter @step.0[0, 512] -> @step.3[0, 256] of 64 x f32 over ["shard"] reduce avg unit @layer
// CHECK-NEXT:   fsdp.launch @[[SGD:.*]] (@state.0[0, 256], @state.1[0, 256], @step.3[0, 256], @block[0, 64])
// CHECK-NEXT: }
// CHECK:      func.func private @[[DENSE]](
// CHECK-SAME:   %{{.*}}: tensor<2x4xf32> {fsdp.out = 0 : i64}) -> tensor<2x4xf32> attributes {fsdp.kernel, fsdp.kind = "contract"}
// CHECK:      func.func private @[[SGD]](%{{.*}}: tensor<64xf32> {fsdp.inout = 0 : i64}, %{{.*}}: tensor<64xf32> {fsdp.inout = 1 : i64},

// Buffers that never live at the same time share bytes.
// CHECK:      fsdp.layout @arena arena 1472 block @block rank @rank attributes {lower_bound = 1472 : i64} {
// CHECK-NEXT:   fsdp.buffer @state.0 "layer parameter" parameters 256 at 0
// CHECK-NEXT:   fsdp.state_slot @layer parameter @state.0 : tensor<64xf32>
// CHECK-NEXT:   fsdp.buffer @state.1 "layer momentum" optimizer 256 at 256
// CHECK-NEXT:   fsdp.state_slot @layer momentum @state.1 : tensor<64xf32>
// CHECK-NEXT:   fsdp.buffer @block "step block" control 64 at 512
// CHECK-NEXT:   fsdp.buffer @rank "rank block" control 64 at 576
// CHECK-NEXT:   fsdp.buffer @input.0 "tokens" inputs 64 at 640
// CHECK-NEXT:   fsdp.input_slot "tokens" @input.0 : tensor<2x8xf32>
// CHECK-NEXT:   fsdp.buffer @step.0 "gradients of layer" staging 512 at 704 in @step from 3 to 6
// CHECK-NEXT:   fsdp.buffer @step.1 "gathered layer" gathered 512 at 704 in @step from 0 to 1
// CHECK-NEXT:   fsdp.buffer @step.2 "contract tokens, w, b" activations 32 at 1216 in @step from 1 to 4
// CHECK-NEXT:   fsdp.buffer @step.3 "gradient shard of layer" gradients 256 at 1216 in @step from 6 to 7

// CHECK:      fsdp.program @init layout @arena {
// CHECK-NEXT:   fsdp.fill @state.0[0, 256] "layer parameter"
// CHECK-NEXT:   fsdp.initialise @layer parameter 0 "w"
// CHECK-NEXT:   fsdp.initialise @layer parameter 1 "b"
// CHECK-NEXT:   fsdp.fill @state.1[0, 256] "layer momentum"
// CHECK-NEXT: }

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @layer shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<8x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"b", tensor<4xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

func.func @step(%p: tensor<64xf32> {fsdp.unit = @layer, fsdp.state = "parameter"},
                %m: tensor<64xf32> {fsdp.unit = @layer, fsdp.state = "momentum"},
                %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank},
                %x: tensor<2x8xf32> {fsdp.batch = "tokens"})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<64xf32> {fsdp.updates = 1 : i64},
        tensor<16xf32> {fsdp.updates = 2 : i64})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %w, %b = fsdp.unshard %p @layer site 0 : tensor<64xf32> -> tensor<8x4xf32>, tensor<4xf32>
  %y = fsdp.dispatch (%x, %w, %b) inplace [-1] {kind = "contract"}
      : (tensor<2x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x8xf32>, %c: tensor<8x4xf32>, %d: tensor<4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
    %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %c : tensor<2x8xf32>, tensor<8x4xf32>)
        outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
        ins(%0, %d : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %2 = arith.addf %u, %v : f32
      %3 = math.tanh %2 : f32
      linalg.yield %3 : f32
    } -> tensor<2x4xf32>
    fsdp.yield %1 : tensor<2x4xf32>
  }
  // dy = 1 - y^2, over y itself.
  %dy = fsdp.dispatch (%y) inplace [0] {kind = "map"} : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
        outs(%a : tensor<2x4xf32>) {
    ^bb0(%o: f32):
      %one = arith.constant 1.0 : f32
      %1 = arith.mulf %o, %o : f32
      %2 = arith.subf %one, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<2x4xf32>
    fsdp.yield %0 : tensor<2x4xf32>
  }
  %dw = fsdp.dispatch (%x, %dy) inplace [-1] {kind = "contract"}
      : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<2x8xf32>, %c: tensor<2x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%a, %c : tensor<2x8xf32>, tensor<2x4xf32>)
        outs(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %0 : tensor<8x4xf32>
  }
  %db = fsdp.dispatch (%dy) inplace [-1] {kind = "column"} : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<2x4xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%u: f32, %o: f32):
      %1 = arith.addf %o, %u : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    fsdp.yield %0 : tensor<4xf32>
  }
  %g = fsdp.reduce_scatter @layer avg params [0, 1] (%dw, %db) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<64xf32>
  %p1, %m1 = fsdp.dispatch (%p, %m, %g, %block) inplace [0, 1] {kind = "map"}
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%q: tensor<64xf32>, %n: tensor<64xf32>, %d: tensor<64xf32>, %s: tensor<16xf32>):
    %c0 = arith.constant 0 : index
    %lr = tensor.extract %s[%c0] : tensor<16xf32>
    %0:2 = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
        ins(%d : tensor<64xf32>) outs(%q, %n : tensor<64xf32>, tensor<64xf32>) {
    ^bb0(%u: f32, %v: f32, %t: f32):
      %1 = arith.addf %t, %u : f32
      %2 = arith.mulf %lr, %1 : f32
      %3 = arith.subf %v, %2 : f32
      linalg.yield %3, %1 : f32, f32
    } -> (tensor<64xf32>, tensor<64xf32>)
    fsdp.yield %0#0, %0#1 : tensor<64xf32>, tensor<64xf32>
  }
  return %p1, %m1, %block : tensor<64xf32>, tensor<64xf32>, tensor<16xf32>
}
