//===- Advice.cpp - Advice on unsupported ops -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Interface/Advice.h"

using llvm::StringRef;

namespace {
struct Entry {
  StringRef prefix, advice;
};
} // namespace

static constexpr StringRef stablehloRecipe =
    "lower it with 'stablehlo-legalize-to-linalg{enable-primitive-ops=true}'";

static constexpr StringRef randomRecipe =
    "export the model without dropout, or draw with 'fsdp.random', whose numbers depend on seed, "
    "step and sample alone, or write dropout as a call of '@fsdp.dropout.N' "
    "(docs/explanation/guide/questions.md)";

// The first entry with a matching prefix is used, so longer prefixes must precede shorter ones.
static const Entry table[] = {
    {"tm_tensor.attention", "let scaled_dot_product_attention decompose when exporting, so that it "
                            "becomes products and a softmax"},
    {"tm_tensor.scan", "write positions as arange instead of cumsum"},
    {"tm_tensor.scatter", "write the update without index_put or scatter_add"},
    {"tm_tensor.", "rewrite the model without sorting and scanning"},
    {"torch_c.get_next_seed", randomRecipe},
    {"ml_program.", randomRecipe},
    {"torch.aten.dropout", randomRecipe},
    {"torch.aten.native_dropout", randomRecipe},
    {"torch.aten.bernoulli", randomRecipe},
    {"torch.aten.rand", randomRecipe},
    {"torch.aten.uniform", randomRecipe},
    {"stablehlo.rng", randomRecipe},
    {"mhlo.rng", randomRecipe},
    {"linalg.fill_rng_2d", randomRecipe},
    {"torch.", "lower it with 'torch-backend-to-linalg-on-tensors-backend-pipeline'"},
    {"torch_c.", "lower it with 'torch-backend-to-linalg-on-tensors-backend-pipeline'"},
    {"stablehlo.while",
     "unroll the layers; lax.scan and lax.while_loop are not supported in a training step"},
    {"stablehlo.case", "use jnp.where in place of lax.cond and lax.switch"},
    {"stablehlo.if", "use jnp.where in place of lax.cond"},
    {"stablehlo.sort", "sort outside of the step, or choose with jnp.where and comparisons"},
    {"chlo.top_k", "choose with jnp.where and comparisons in place of lax.top_k"},
    {"stablehlo.custom_call", "write the loss with operations of jax.numpy and jax.lax"},
    {"stablehlo.all_", "write the loss of one rank; the compiler adds the collectives"},
    {"stablehlo.reduce_scatter", "write the loss of one rank; the compiler adds the collectives"},
    {"stablehlo.", "write the loss with other operations of jax.numpy"},
    {"mhlo.", stablehloRecipe},
    {"chlo.", "write the loss with other operations of jax.numpy"},
    {"vhlo.", "write the text of the module (exported.mlir_module()), not the portable bytecode"},
    {"iree_", "export with 'output_type=\"linalg-on-tensors\"', not with iree's aot.export"},
    {"util.", "export with 'output_type=\"linalg-on-tensors\"', not with iree's aot.export"},
    {"hal.", "export with 'output_type=\"linalg-on-tensors\"', not with iree's aot.export"},
    {"flow.", "export with 'output_type=\"linalg-on-tensors\"', not with iree's aot.export"},
    {"onnx.", "export from PyTorch or JAX to linalg on tensors"},
    {"tf.", "convert the model to TOSA or linalg on tensors"},
    {"tfl.", "convert the model to TOSA or linalg on tensors"},
    {"complex.", "write the model on real numbers; rotary embeddings as pairs with sin and cos"},
    {"scf.while", "unroll the loop; a step has static shape and no data-dependent control flow"},
    {"scf.", "unroll the loop; a step has static shape and no data-dependent control flow"},
    {"cf.", "unroll the loop; a step has static shape and no data-dependent control flow"},
    {"tensor.gather", "write the lookup as an index of the first dimension (an embedding)"},
    {"tensor.scatter", "write the update without a scatter"},
    {"tensor.extract",
     "compute the index in an op of its own, from inputs and loops, not from another "
     "lookup or from a result of the same op"},
    {"memref.", "give the module before bufferisation: functions on tensors"},
    {"bufferization.", "give the module before bufferisation: functions on tensors"},
    {"affine.", "give the module before lowering to loops: linalg on tensors"},
};

StringRef mlir::fsdp::adviceForOp(StringRef opName) {
  for (const Entry &entry : table)
    if (opName.starts_with(entry.prefix))
      return entry.advice;
  return "";
}

StringRef mlir::fsdp::adviceForDialect(StringRef dialect) {
  return adviceForOp((dialect + ".").str());
}
