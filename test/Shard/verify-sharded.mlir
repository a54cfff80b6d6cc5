// RUN: fsdp-opt %s --fsdp-verify-sharded -verify-diagnostics -split-input-file

// expected-error@+1 {{after Shard: expected the meshes '@mesh' and '@solo'}}
module {}

// -----

// expected-error@+2 {{after Shard: expected a function of program 'step'}}
// expected-error@+1 {{after Shard: expected a function of program 'reference'}}
module {
  fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
  fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
  // expected-error@+2 {{expected 2 shards, as the mesh has, found 3}}
  // expected-error@+1 {{expected a shard size that is a multiple of 64, found 48}}
  fsdp.unit @a shards 3 x 48 : f32 reshard false []
  // expected-error@+3 {{expected parameter 'y' at a multiple of 32, found offset 4}}
  // expected-error@+2 {{expected parameter 'y', which has decay, before those without}}
  // expected-error@+1 {{expected trainable and frozen parameters in units of their own, found both}}
  fsdp.unit @b shards 2 x 64 : f32 reshard false [
    #fsdp.param<"x", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>,
    #fsdp.param<"y", tensor<2x2xf32>, 4, trainable = false, decay = true, init = <constant, 0.0, 0.0>>]
}

// -----

// DOC-BEFORE-BEGIN fsdp-verify-sharded
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 2 x 64 : f32 reshard false [#fsdp.param<"x", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @loss(
    %s: tensor<64xf32> {fsdp.unit = @a},
    // expected-error@+1 {{expected 'fsdp.batch' on argument 1 of '@loss', after the last unit}}
    %w: tensor<64xf32> {fsdp.param = "w"}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %x = fsdp.unshard %s @a site 0 : tensor<64xf32> -> tensor<4xf32>
  // expected-error@+1 {{expected one 'fsdp.unshard' of site 0 to read the shard of unit 'a', found another reader}}
  %y = fsdp.unshard %s @a site 1 : tensor<64xf32> -> tensor<4xf32>
  return
}
// DOC-BEFORE-END
// expected-error@+1 {{expected 'fsdp.mesh' to be @solo}}
func.func @reference(
    // expected-error@+1 {{expected argument 0 of '@reference' to be unit 'a' as 'tensor<128xf32>', found 'tensor<64xf32>'}}
    %s: tensor<64xf32> {fsdp.unit = @a}) attributes {fsdp.program = "reference", fsdp.mesh = @mesh} {
  return
}
