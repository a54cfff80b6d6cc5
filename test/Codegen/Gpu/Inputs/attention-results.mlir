// Kernels that return only one result: log-sum-exps (once with O in Q's memory, once without), or O.
func.func private @only_lse(%q: tensor<1x2x200x128xbf16>, %k: tensor<1x1x400x128xbf16>, %v: tensor<1x1x400x128xbf16>, %l: tensor<1x2x200xf32> {fsdp.out = 0 : i64}) -> tensor<1x2x200xf32> attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %o, %r = fsdp.attention %q, %k, %v scale 0.088388 : tensor<1x2x200x128xbf16>, tensor<1x1x400x128xbf16>, tensor<1x1x400x128xbf16> -> tensor<1x2x200x128xbf16>, tensor<1x2x200xf32>
  return %r : tensor<1x2x200xf32>
}
func.func private @only_o(%q: tensor<1x2x200x64xf16>, %k: tensor<1x1x400x64xf16>, %v: tensor<1x1x400x64xf16>, %l: tensor<1x2x200x64xf16> {fsdp.out = 0 : i64}) -> tensor<1x2x200x64xf16> attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %o, %r = fsdp.attention %q, %k, %v scale 0.125 : tensor<1x2x200x64xf16>, tensor<1x1x400x64xf16>, tensor<1x1x400x64xf16> -> tensor<1x2x200x64xf16>, tensor<1x2x200xf32>
  return %o : tensor<1x2x200x64xf16>
}
func.func private @only_lse64(%q: tensor<1x2x200x64xbf16>, %k: tensor<1x1x400x64xbf16>, %v: tensor<1x1x400x64xbf16>, %l: tensor<1x2x200xf32> {fsdp.out = 0 : i64}) -> tensor<1x2x200xf32> attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %o, %r = fsdp.attention %q, %k, %v scale 0.125 : tensor<1x2x200x64xbf16>, tensor<1x1x400x64xbf16>, tensor<1x1x400x64xbf16> -> tensor<1x2x200x64xbf16>, tensor<1x2x200xf32>
  return %r : tensor<1x2x200xf32>
}
