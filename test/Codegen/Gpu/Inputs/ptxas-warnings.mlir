// Kernels of models that ptxas once serialised, or in which it spilled registers.

// A step of a ring with one block of keys: a mask reads the positions of the ranks.
func.func private @ring_bf16(%arg0: tensor<1x2x64x32xbf16>, %arg1: tensor<1x1x64x32xbf16>, %arg2: tensor<1x1x64x32xbf16>, %arg3: tensor<i64>, %arg4: tensor<i64>, %arg5: tensor<1x2x64x32xbf16> {fsdp.out = 0 : i64}, %arg6: tensor<1x2x64xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x64x32xbf16>, tensor<1x2x64xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %0:2 = fsdp.attention %arg0, %arg1, %arg2 scale 0.1767766922712326 capture(%arg3, %arg4 : tensor<i64>, tensor<i64>) : tensor<1x2x64x32xbf16>, tensor<1x1x64x32xbf16>, tensor<1x1x64x32xbf16> -> tensor<1x2x64x32xbf16>, tensor<1x2x64xf32>  mask_mod(%b: index, %h: index, %i: index, %j: index, %arg7: tensor<i64>, %arg8: tensor<i64>) {
    %c64 = arith.constant 64 : index
    %c2 = arith.constant 2 : index
    %extracted = tensor.extract %arg8[] : tensor<i64>
    %1 = arith.index_cast %extracted : i64 to index
    %2 = arith.remui %1, %c2 : index
    %3 = arith.muli %2, %c64 : index
    %4 = arith.addi %j, %3 : index
    %extracted_0 = tensor.extract %arg7[] : tensor<i64>
    %5 = arith.index_cast %extracted_0 : i64 to index
    %6 = arith.remui %5, %c2 : index
    %7 = arith.muli %6, %c64 : index
    %8 = arith.addi %i, %7 : index
    %9 = arith.cmpi ule, %4, %8 : index
    fsdp.yield %9 : i1
  }
  return %0#0, %0#1 : tensor<1x2x64x32xbf16>, tensor<1x2x64xf32>
}

// T5: a product in f16, which is also scaled by a norm.
func.func private @product_and_norm_f16(%arg0: tensor<64x256xf16>, %arg1: tensor<256x64xf16>, %arg2: tensor<64xf16>, %arg3: tensor<64xf32>, %arg4: tensor<64x64xf16> {fsdp.out = 0 : i64}, %arg5: tensor<64x64xf16> {fsdp.out = 1 : i64}) -> (tensor<64x64xf16>, tensor<64x64xf16>) attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<64x64xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>] ins(%arg0, %arg1 : tensor<64x256xf16>, tensor<256x64xf16>) outs(%1 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = tensor.empty() : tensor<64x64xf16>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<64x64xf32>) outs(%3 : tensor<64x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %6 = arith.truncf %in : f32 to f16
    linalg.yield %6 : f16
  } -> tensor<64x64xf16>
  %cst_0 = arith.constant 6.400000e+01 : f32
  %cst_1 = arith.constant 9.99999997E-7 : f32
  %cst_2 = arith.constant 1.250000e-01 : f32
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg2, %arg3, %4 : tensor<64xf16>, tensor<64xf32>, tensor<64x64xf16>) outs(%3 : tensor<64x64xf16>) {
  ^bb0(%in: f16, %in_3: f32, %in_4: f16, %out: f16):
    %6 = arith.extf %in : f16 to f32
    %7 = arith.divf %in_3, %cst_0 : f32
    %8 = arith.addf %7, %cst_1 : f32
    %9 = math.rsqrt %8 : f32
    %10 = arith.extf %in_4 : f16 to f32
    %11 = arith.mulf %10, %cst_2 : f32
    %12 = arith.mulf %11, %6 : f32
    %13 = arith.mulf %12, %9 : f32
    %14 = arith.truncf %13 : f32 to f16
    linalg.yield %14 : f16
  } -> tensor<64x64xf16>
  return %4, %5 : tensor<64x64xf16>, tensor<64x64xf16>
}

// GPT-2 with a batch of 8: bias and gelu.
func.func private @gelu_bf16(%arg0: tensor<8192x768xbf16>, %arg1: tensor<768x3072xbf16>, %arg2: tensor<3072xbf16>, %arg3: tensor<8192x3072xbf16> {fsdp.out = 0 : i64}) -> tensor<8192x3072xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<8192x3072xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8192x3072xf32>) -> tensor<8192x3072xf32>
  %2 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<8192x768xbf16>, tensor<768x3072xbf16>) outs(%1 : tensor<8192x3072xf32>) -> tensor<8192x3072xf32>
  %3 = tensor.empty() : tensor<8192x3072xbf16>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<8192x3072xf32>) outs(%3 : tensor<8192x3072xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %6 = arith.truncf %in : f32 to bf16
    linalg.yield %6 : bf16
  } -> tensor<8192x3072xbf16>
  %cst_0 = arith.constant 5.000000e-01 : f32
  %cst_1 = arith.constant 4.471500e-02 : f32
  %cst_2 = arith.constant 0.797884583 : f32
  %cst_3 = arith.constant 1.000000e+00 : f32
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4, %arg2 : tensor<8192x3072xbf16>, tensor<3072xbf16>) outs(%3 : tensor<8192x3072xbf16>) {
  ^bb0(%in: bf16, %in_4: bf16, %out: bf16):
    %6 = arith.extf %in_4 : bf16 to f32
    %7 = arith.extf %in : bf16 to f32
    %8 = arith.addf %7, %6 : f32
    %9 = arith.mulf %8, %cst_0 : f32
    %10 = arith.mulf %8, %8 : f32
    %11 = arith.mulf %10, %8 : f32
    %12 = math.fma %11, %cst_1, %8 : f32
    %13 = arith.mulf %12, %cst_2 : f32
    %14 = math.tanh %13 : f32
    %15 = arith.addf %14, %cst_3 : f32
    %16 = arith.mulf %9, %15 : f32
    %17 = arith.truncf %16 : f32 to bf16
    linalg.yield %17 : bf16
  } -> tensor<8192x3072xbf16>
  return %5 : tensor<8192x3072xbf16>
}
