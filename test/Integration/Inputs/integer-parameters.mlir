// A perceptron with integer parameters beside float parameters: one of each width, an i1 mask, an i8 table that is
// dequantised (values from the file), i64 beyond 2^53, an unused i16 parameter, and one without elements.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

module attributes {fsdp.values = {"h.0.mask" = dense<[true, false, true, true, false, true, true, true, true, true, false, true, true,
                                                      true, true, true, false, true, true, true, true, true, true, false]> : tensor<24xi1>,
                                  "h.1.large" = dense<9007199254740993> : tensor<1xi64>}} {
func.func @loss(%table: tensor<37x24xf32> {fsdp.param = "embed.weight"},
                %q: tensor<24x24xi8> {fsdp.param = "h.0.qweight", fsdp.init = #fsdp.init<constant, -3.0, 0.0>},
                %scale: tensor<24xf32> {fsdp.param = "h.0.scale", fsdp.init = #fsdp.init<constant, 0.01, 0.0>},
                %mask: tensor<24xi1> {fsdp.param = "h.0.mask"},
                %shift: tensor<24xi32> {fsdp.param = "h.1.shift", fsdp.init = #fsdp.init<constant, 70000.0, 0.0>},
                %large: tensor<1xi64> {fsdp.param = "h.1.large"},
                %spare: tensor<3x5xi16> {fsdp.param = "h.1.spare", fsdp.init = #fsdp.init<constant, -7.0, 0.0>},
                %none: tensor<0x24xi8> {fsdp.param = "h.1.none"},
                %w1: tensor<24x37xf32> {fsdp.param = "h.1.weight"}, %b1: tensor<37xf32> {fsdp.param = "h.1.bias"},
                %ids: tensor<16xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %targets: tensor<16xi64> {fsdp.batch = "targets", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %x = fsdp.gather_rows %table[%ids] : tensor<37x24xf32>, tensor<16xi64> -> tensor<16x24xf32>
  %ew = tensor.empty() : tensor<24x24xf32>
  %w0 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %scale : tensor<24x24xi8>, tensor<24xf32>) outs(%ew : tensor<24x24xf32>) {
  ^bb0(%i: i8, %s: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<24x24xf32>
  %e0 = tensor.empty() : tensor<16x24xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x24xf32>) -> tensor<16x24xf32>
  %h0 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w0 : tensor<16x24xf32>, tensor<24x24xf32>) outs(%z0 : tensor<16x24xf32>) -> tensor<16x24xf32>
  %a0 = linalg.generic {indexing_maps = [#id, #id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h0, %x, %mask : tensor<16x24xf32>, tensor<16x24xf32>, tensor<24xi1>) outs(%e0 : tensor<16x24xf32>) {
  ^bb0(%h: f32, %r: f32, %m: i1, %o: f32):
    %t = math.tanh %h : f32
    %c = arith.select %m, %t, %r : f32
    linalg.yield %c : f32
  } -> tensor<16x24xf32>
  %a1 = linalg.generic {indexing_maps = [#id, #column, affine_map<(d0, d1) -> (0)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a0, %shift, %large : tensor<16x24xf32>, tensor<24xi32>, tensor<1xi64>) outs(%e0 : tensor<16x24xf32>) {
  ^bb0(%h: f32, %i: i32, %l: i64, %o: f32):
    %exact = arith.constant 9007199254740992 : i64
    %unit = arith.constant 1.0e-5 : f32
    %f = arith.sitofp %i : i32 to f32
    %d = arith.subi %l, %exact : i64
    %g = arith.sitofp %d : i64 to f32
    %u = arith.mulf %f, %unit : f32
    %v = arith.mulf %u, %g : f32
    %r = arith.addf %h, %v : f32
    linalg.yield %r : f32
  } -> tensor<16x24xf32>
  %e1 = tensor.empty() : tensor<16x37xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x37xf32>) -> tensor<16x37xf32>
  %h2 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a1, %w1 : tensor<16x24xf32>, tensor<24x37xf32>) outs(%z1 : tensor<16x37xf32>) -> tensor<16x37xf32>
  %logits = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h2, %b1 : tensor<16x37xf32>, tensor<37xf32>) outs(%e1 : tensor<16x37xf32>) {
  ^bb0(%h: f32, %b: f32, %o: f32):
    %s = arith.addf %h, %b : f32
    linalg.yield %s : f32
  } -> tensor<16x37xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<16x37xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
}
