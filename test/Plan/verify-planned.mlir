// RUN: fsdp-opt %s --fsdp-verify-planned --split-input-file --verify-diagnostics

// expected-error @below {{expected programs instead of functions on tensors; run fsdp-assign-buffers}}
func.func @step() attributes {fsdp.program = "step"} {
  return
}

// -----

// DOC-BEFORE-BEGIN fsdp-verify-planned
fsdp.layout @arena arena 128 {
  // expected-error @below {{expected an offset; run fsdp-pack-arenas}}
  fsdp.buffer @a "a" activations 64
}
// DOC-BEFORE-END

// -----

// Two buffers overlap in one byte, and their lifetimes overlap in one command.
fsdp.layout @arena arena 256 {
  // expected-note @below {{@a takes 65 bytes at 0}}
  fsdp.buffer @a "a" activations 65 at 0 in @step from 0 to 1
  // expected-error @below {{overlaps @a, which lives at the same time}}
  fsdp.buffer @b "b" activations 64 at 64 in @step from 1 to 2
}
fsdp.program @step layout @arena {
  fsdp.fill @a[0, 65]
  fsdp.copy @a[0, 64] -> @b[0, 64]
  fsdp.fill @b[0, 64]
}

// -----

// A buffer without a lifetime is always live, so no other buffer may overlap it.
fsdp.layout @arena arena 256 {
  // expected-note @below {{@a takes 128 bytes at 0}}
  fsdp.buffer @a "a" inputs 128 at 0
  // expected-error @below {{overlaps @a, which lives at the same time}}
  fsdp.buffer @b "b" activations 64 at 64 in @step from 0 to 0
}
fsdp.program @step layout @arena {
  fsdp.fill @b[0, 64]
}

// -----

// Buffers with disjoint lifetimes and buffers of different programs may share bytes.
fsdp.layout @arena arena 64 {
  fsdp.buffer @a "a" activations 64 at 0 in @step from 0 to 0
  fsdp.buffer @b "b" activations 64 at 0 in @step from 1 to 1
  fsdp.buffer @c "c" activations 64 at 0 in @eval from 0 to 0
}
fsdp.program @step layout @arena {
  fsdp.fill @a[0, 64]
  fsdp.fill @b[0, 64]
}
fsdp.program @eval layout @arena {
  fsdp.fill @c[0, 64]
}

// -----

fsdp.layout @arena arena 256 {
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @a "a" activations 64 at 0 in @step from 0 to 0
}
fsdp.program @step layout @arena {
  fsdp.fill @a[0, 64]
  // expected-error @below {{command 1 (fill late) uses @a outside of its lifetime, 0 to 0 of @step}}
  fsdp.fill @a[0, 64] "late"
}

// -----

// A buffer that is live across iterations must live for the whole loop.
fsdp.layout @arena arena 256 {
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @a "a" activations 64 at 0 in @step from 0 to 2
  fsdp.buffer @s "s" inputs 64 at 64
}
fsdp.program @step layout @arena {
  fsdp.fill @a[0, 64]
  fsdp.loop 2 {
    // expected-error @below {{command 2 (fill) uses @a outside of its lifetime}}
    fsdp.fill @a[0, 64]
    fsdp.fill @s[0, 64]
  }
}

// -----

fsdp.layout @arena arena 256 {
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @a "a" activations 64 at 0 in @step from 0 to 1
  fsdp.buffer @b "b" activations 64 at 64 in @step from 1 to 1
}
fsdp.program @step layout @arena {
  fsdp.fill @a[0, 32]
  // expected-error @below {{command 1 (copy) reads bytes of @a that no command before it wrote}}
  fsdp.copy @a[0, 64] -> @b[0, 64]
}

// -----

// Two adjacent fills initialise the range that they cover together.
fsdp.layout @arena arena 256 {
  fsdp.buffer @a "a" activations 64 at 0 in @step from 0 to 2
  fsdp.buffer @b "b" activations 64 at 64 in @step from 2 to 2
}
fsdp.program @step layout @arena {
  fsdp.fill @a[32, 32]
  fsdp.fill @a[0, 32]
  fsdp.copy @a[0, 64] -> @b[0, 64]
}

// -----

// Between start and wait no command accesses the target or writes the source.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.layout @arena arena 256 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.buffer @a "a" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-note @below {{the collective starts here}}
  fsdp.collective 7 all_gather @s[0, 64] -> @a[0, 128] of 16 x f32 over ["shard"] channel 1
  // expected-error @below {{command 1 (fill) accesses bytes that collective 7 in flight uses; expected a wait for it before}}
  fsdp.fill @s[0, 4]
  fsdp.wait 7
  fsdp.fill @a[0, 128]
}

// -----

// A launch has operands in both arenas. Equal offsets in different arenas do not overlap.
func.func private @k(%x: tensor<16xf32>, %y: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 128 attributes {host_bytes = 64 : i64} {
  fsdp.buffer @a "a" optimizer 64 host at 0
  fsdp.buffer @b "b" parameters 64 at 0
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @c "c" parameters 64 at 64
}
fsdp.program @step layout @arena {
  fsdp.copy @a[0, 64] -> @b[0, 64]
  // expected-error @below {{command 1 (launch) runs on the host, but @c is on the device; expected a copy between them}}
  fsdp.launch @k(@a[0, 64], @c[0, 64])
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.layout @arena arena 128 attributes {host_bytes = 64 : i64} {
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @a "a" parameters 64 host at 0
  fsdp.buffer @b "b" gathered 128 at 0
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{command 0 (all_gather) runs on the device, but @a is on the host; expected a copy between them}}
  fsdp.collective 0 all_gather @a[0, 64] -> @b[0, 128] of 16 x f32 over ["shard"]
}

// -----

// Other commands may read the source of a copy in flight, but not write it.
fsdp.layout @arena arena 256 attributes {host_bytes = 64 : i64} {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.buffer @t "t" staging 64 at 64 in @step from 0 to 3
  fsdp.buffer @h "h" staging 64 host at 0 in @step from 1 to 3
}
fsdp.program @step layout @arena {
  fsdp.copy @s[0, 64] -> @t[0, 64]
  // expected-note @below {{the copy starts here}}
  fsdp.copy @t[0, 64] -> @h[0, 64] {fsdp.channel = 4 : i64, fsdp.id = 7 : i64}
  // expected-error @below {{command 2 (fill) accesses bytes that copy 7 in flight uses; expected a wait for it before}}
  fsdp.fill @t[0, 32]
  fsdp.wait 7
}

// -----

// No command may access the target of a copy in flight.
fsdp.layout @arena arena 256 attributes {host_bytes = 64 : i64} {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.buffer @t "t" staging 64 at 64 in @step from 1 to 3
  fsdp.buffer @h "h" optimizer 64 host at 0
}
fsdp.program @step layout @arena {
  fsdp.copy @s[0, 64] -> @h[0, 64]
  // expected-note @below {{the copy starts here}}
  fsdp.copy @h[0, 64] -> @t[0, 64] {fsdp.channel = 3 : i64, fsdp.id = 7 : i64}
  // expected-error @below {{command 2 (copy) accesses bytes that copy 7 in flight uses; expected a wait for it before}}
  fsdp.copy @t[0, 64] -> @s[0, 64]
  fsdp.wait 7
}
