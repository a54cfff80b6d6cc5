// RUN: fsdp-opt %s --fsdp-lower-kernels --split-input-file --verify-diagnostics

// expected-error @below {{result 0 has no destination: mark an argument with 'fsdp.out' or 'fsdp.inout'}}
func.func private @lost(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.kernel} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{argument 1 of type 'tensor<5xf32>' cannot hold result 0 of type 'tensor<4xf32>'}}
func.func private @misfit(%x: tensor<4xf32>, %y: tensor<5xf32> {fsdp.out = 0}) -> tensor<4xf32> attributes {fsdp.kernel} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 expected a tensor of static shape with integer, index or float elements, found 'tensor<?xf32>'}}
func.func private @dynamic(%x: tensor<?xf32> {fsdp.inout = 0}) -> tensor<?xf32> attributes {fsdp.kernel} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{argument 0 expected a tensor of static shape with integer, index or float elements, found 'tensor<4xcomplex<f32>>'}}
func.func private @complex(%x: tensor<4xcomplex<f32>> {fsdp.inout = 0}) -> tensor<4xcomplex<f32>> attributes {fsdp.kernel} {
  return %x : tensor<4xcomplex<f32>>
}

// -----

// expected-error @below {{argument 1 names result 0, which already has a destination}}
func.func private @twice(%x: tensor<4xf32> {fsdp.out = 0}, %y: tensor<4xf32> {fsdp.inout = 0}) -> tensor<4xf32> attributes {fsdp.kernel} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 has 'fsdp.inout = 1', but the kernel has 1 result; expected a number in [0, 1)}}
func.func private @far(%x: tensor<4xf32> {fsdp.inout = 1}) -> tensor<4xf32> attributes {fsdp.kernel} {
  return %x : tensor<4xf32>
}
