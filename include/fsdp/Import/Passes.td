//===- Passes.td - Passes of the Import stage --------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PASSES_TD
#define FSDP_IMPORT_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

// Import reads any dialect; these are what it writes.
class ImportPass<string flag, string on> : Pass<flag, on> {
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ReadStopMarkersPass : ImportPass<"fsdp-read-stop-markers", "::mlir::ModuleOp"> {
  let summary = "Turn an exporter's markers into fsdp.stop_gradient";
  let description = [{
    - Requires: nothing.
    - Ensures: no call of a marker function `@fsdp.stop_gradient` and no attribute
      `fsdp.stop_gradient` or `fsdp.num_stop_gradients` is left. An attribute on an op that is no
      marker, and a number of markers that is not the number the exporter wrote, are errors.
    - Keeps: everything else.
  }];
  let statistics = [Statistic<"numMarkers", "num-markers", "Gradients that stop">];
}

def RefuseForeignPass : ImportPass<"fsdp-refuse-foreign", "::mlir::ModuleOp"> {
  let summary = "Say early what Import cannot take";
  let description = [{
    - Requires: nothing.
    - Ensures: ops that Import knows, functions of one block, no complex numbers,
      arguments of static shape; with `shapes`, every value of static shape.
      Otherwise errors say where and what to do.
    - Keeps: everything.
  }];
  let options = [Option<"shapes", "shapes", "bool", /*default=*/"false",
                        "Check the shapes of all values instead (after folding).">];
  let statistics = [Statistic<"numRefused", "num-refused", "Ops refused">];
}

def RefuseUnwrittenPass : ImportPass<"fsdp-refuse-unwritten", "::mlir::func::FuncOp"> {
  let summary = "Refuse to read tensors that nothing has filled";
  let description = [{
    - Requires: nothing.
    - Ensures: no op reads elements of a `tensor.empty`, an accumulating one its
      output included. The first eight are reported, with a note at the tensor.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numRefused", "num-refused", "Ops refused">];
}

def SelectEntryPass : ImportPass<"fsdp-select-entry", "::mlir::ModuleOp"> {
  let summary = "Find the function to train and number what users point at";
  let description = [{
    - Requires: a module as an importer wrote it.
    - Ensures: one public function; arguments and tensor constants carry
      `fsdp.position`, their place in the file; no unused `ml_program.global`,
      no attribute of an unknown dialect on module and functions.
    - Keeps: all code.
  }];
  let options = [StepOption<"entry", "entry", "std::string">];
  let statistics = [Statistic<"numConstants", "num-constants", "Tensor constants with more than one value">];
}

def CheckMarksPass : ImportPass<"fsdp-check-marks", "::mlir::ModuleOp"> {
  let summary = "Check the attributes that say what arguments are";
  let description = [{
    - Requires: one public function.
    - Ensures: its arguments carry only `fsdp.` attributes that mean something here,
      each of its kind. Emits one error per attribute.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Attributes checked">];
}

def MarkBatchPass : ImportPass<"fsdp-mark-batch", "::mlir::ModuleOp"> {
  let summary = "Name the batch inputs that --batch names";
  let description = [{
    - Requires: one public function, whose arguments carry their positions.
    - Ensures: every argument that `batch` names carries `fsdp.batch`. No two batch inputs
      have the same name.
    - Keeps: all code; names of other arguments.
  }];
  let options = [ListOption<"batch", "batch", "std::string",
                            "INDEX=NAME or ARGUMENT=NAME, where ARGUMENT is the name that the argument's location gives.">];
  let statistics = [Statistic<"numMarked", "num-marked", "Arguments named">];
}

def BindBuffersPass : ImportPass<"fsdp-bind-buffers", "::mlir::ModuleOp"> {
  let summary = "Give masks and other buffers their contents";
  let description = [{
    - Requires: one public function; calls inlined.
    - Ensures: every integer constant has known contents. `causal` is a generic
      that compares loop indices; whether true means allowed or masked, and
      whether a float mask is added or multiplied, follows from its uses.
    - Keeps: positions and all other code.
  }];
  let options = [ListOption<"buffers", "buffer", "std::string",
                            "NAME|INDEX=causal|zeros|ones|keep|FILE; INDEX counts arguments, or constants in order of appearance.">];
  let statistics = [Statistic<"numBound", "num-bound", "Buffers replaced by given contents">,
                    Statistic<"numRecognised", "num-recognised", "Tables in the file that are a causal mask">];
}

def LiftParametersPass : ImportPass<"fsdp-lift-parameters", "::mlir::ModuleOp"> {
  let summary = "Make every parameter a named argument";
  let description = [{
    - Requires: one public function; calls inlined; no pass before it merged
      constants (elided ones look equal).
    - Ensures: parameters are arguments with `fsdp.param`; initial values that
      the file holds are in the module attribute `fsdp.values`. Where an argument,
      `params` or `params-file` names a parameter, only named values are trained.
      Other tensors of floats stay constants, listed in `fsdp.constants`; those of
      more than 1 MiB become frozen parameters. Where nothing is named, a warning
      lists the guess.
    - Keeps: tied uses tied; constants that are no parameters.
  }];
  let options = [StepOption<"params", "params", "std::string">,
                 StepOption<"paramsFile", "params-file", "std::string">];
  let statistics = [Statistic<"numParameters", "num-parameters", "Arguments that are parameters">,
                    Statistic<"numLifted", "num-lifted", "Constants that became parameters">];
}

def ReadDropoutMarkersPass : ImportPass<"fsdp-read-dropout-markers", "::mlir::ModuleOp"> {
  let summary = "Turn an exporter's dropout markers into fsdp.random";
  let description = [{
    - Requires: one public function; calls inlined; parameters are marked.
    - Ensures: no call of a marker function `@fsdp.dropout`. Each is a product with
      `fsdp.random bernoulli` of a site of its own; the function has the arguments
      with `fsdp.key`. A probability outside of [0, 1), and a tensor whose first
      dimension does not count samples, are errors.
    - Keeps: everything else; calls with probability 0 are their operand.
  }];
  let statistics = [Statistic<"numMarkers", "num-markers", "Calls of dropout markers">];
}

def LowerTosaPass : ImportPass<"fsdp-lower-tosa", "::mlir::ModuleOp"> {
  let summary = "Lower TOSA to linalg with the upstream passes";
  let description = [{
    - Requires: parameters are lifted (the upstream passes merge constants).
    - Ensures: no tosa op.
    - Keeps: modules without tosa ops as they are.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tosa::TosaDialect",
                           "::mlir::index::IndexDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numLowered", "num-lowered", "tosa ops lowered">];
}

def DemoteFloat64Pass : ImportPass<"fsdp-demote-float64", "::mlir::func::FuncOp"> {
  let summary = "Compute f64 islands in f32";
  let description = [{
    - Requires: parameters are marked.
    - Ensures: no f64 in a function with parameters of floats none of which is f64.
    - Keeps: models with a parameter that is f64, bit for bit.
  }];
  let statistics = [Statistic<"numDemoted", "num-demoted", "Values that were f64">];
}

def NormaliseOpsPass : ImportPass<"fsdp-normalise-ops", "::mlir::func::FuncOp"> {
  let summary = "Write each operation in one way";
  let description = [{
    - Requires: static shapes.
    - Ensures: structured ops are generics and fills; no captured scalars, and
      no captured tensor that is read at loop indices; constants and integer
      computations are inside the bodies that use them; no fast-math flags.
    - Keeps: values (constants are rounded as the program would).
  }];
  let statistics = [Statistic<"numFlags", "num-flags", "Ops whose fast-math flags were dropped">];
}

def FoldCopiesPass : ImportPass<"fsdp-fold-copies", "::mlir::func::FuncOp"> {
  let summary = "Read through transposes and broadcasts";
  let description = [{
    - Requires: structured ops are generics.
    - Ensures: no generic reads a copy that its indexing maps can express; no
      transpose follows a contraction that only it reads.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numFolded", "num-folded", "Copies folded into a reader or producer">];
}

def EvaluateConstantsPass : ImportPass<"fsdp-evaluate-constants", "::mlir::func::FuncOp"> {
  let summary = "Compute indices that depend on no input";
  let description = [{
    - Requires: structured ops are generics.
    - Ensures: an index of a lookup whose range the rules on ranges do not bound, and
      that depends on constants and loops alone, is an element of a constant.
    - Keeps: indices that are in range, or affine functions of loops; masks; values
      of more than 2^19 elements. Functions of math are computed in f64 and
      rounded; sums of floats are not computed.
  }];
  let statistics = [Statistic<"numEvaluated", "num-evaluated", "Values that became constants">];
}

def DropAssertsPass : ImportPass<"fsdp-drop-asserts", "::mlir::func::FuncOp"> {
  let summary = "Check ids before the step instead of in it";
  let description = [{
    - Requires: lookups are `tensor.extract` in bodies.
    - Ensures: batch arguments of ids carry `fsdp.limit`, with which every lookup
      is in range, and `fsdp.extra_ids`, values outside of it that the model compares
      with and keeps from its lookups; no `cf.assert`; comparisons that all of
      these decide alike are folded. A lookup that no limit keeps in range reads
      clamped indices; the function returns what was found out of range beside its
      other results (`fsdp.lookup`).
    - Keeps: values, for ids within the limits and the extra ones, and where no
      checked lookup is out of range.
  }];
  let statistics = [Statistic<"numExtraIds", "num-extra-ids", "Values outside the limits that the model handles">,
                    Statistic<"numAsserts", "num-asserts", "Checks dropped">,
                    Statistic<"numCheckedAtRun", "num-checked", "Lookups that are checked in each step">,
                    Statistic<"numFolded", "num-folded", "Comparisons, minima and maxima decided by limits">];
}

def JoinPositionsPass : ImportPass<"fsdp-join-positions", "::mlir::func::FuncOp"> {
  let summary = "Read at one computed position instead of several";
  let description = [{
    - Requires: indices of lookups are in range.
    - Ensures: a `tensor.extract` in a generic has at most one index that is neither a
      constant nor a loop.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numJoined", "num-joined", "Lookups that had several computed positions">];
}

def RaiseEmbeddingPass : ImportPass<"fsdp-raise-embedding", "::mlir::func::FuncOp"> {
  let summary = "Raise lookups of rows to fsdp.gather_rows";
  let description = [{
    - Requires: limits that keep every lookup in range.
    - Ensures: no `tensor.extract` whose first moving position depends on data.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Lookups raised">];
}

def RaiseSoftmaxPass : ImportPass<"fsdp-raise-softmax", "::mlir::func::FuncOp"> {
  let summary = "Raise max, subtract, exp, sum, divide to linalg.softmax";
  let description = [{
    - Requires: normalised generics, of one op each or fused.
    - Ensures: softmax over one dimension is `linalg.softmax`; a guard against
      rows of -inf is gone where the mask leaves one element in every row.
    - Keeps: values up to rounding.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Softmaxes raised">,
                    Statistic<"numGuards", "num-guards", "Guards against empty rows dropped">];
}

def RaiseAttentionPass : ImportPass<"fsdp-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Raise products around a softmax to fsdp.attention";
  let description = [{
    - Requires: softmax is raised; structured ops are generics or contractions.
    - Ensures: softmax(f(scale · Q·Kᵀ))·V is `fsdp.attention`, through views, copies and casts,
      with grouped heads where K and V are repeated; masks are in mask_mod, other functions
      in score_mod, dropout is in weight_mod, what they read is captured. A softmax between two products that stays gets a remark
      that says why, with a note at what is in the way.
    - Keeps: values up to rounding. Rows that are -inf throughout give 0, which were NaN.
  }];
  let options = [Option<"assumeKeys", "assume-keys", "bool", /*default=*/"false",
                        "Every row keeps a key: masks of finite numbers are as good as -inf.">];
  let statistics = [Statistic<"numRaised", "num-raised", "Attentions raised">,
                    Statistic<"numMissed", "num-missed", "Softmaxes between products that stay">];
}

def RaiseCrossEntropyPass : ImportPass<"fsdp-raise-cross-entropy", "::mlir::func::FuncOp"> {
  let summary = "Raise log-softmax and the target's pick to fsdp.cross_entropy";
  let description = [{
    - Requires: normalised generics, of one op each or fused.
    - Ensures: mean losses over log-softmax or logsumexp are one op, with
      `ignore_index` where the program has one.
    - Keeps: values up to rounding.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Losses raised">];
}

def ExpandLookupPass : ImportPass<"fsdp-expand-lookup", "::mlir::func::FuncOp"> {
  let summary = "Write other lookups as masked sums";
  let description = [{
    - Requires: rows and losses are raised.
    - Ensures: no `tensor.extract` with one position that depends on data.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numExpanded", "num-expanded", "Lookups expanded">];
}

def BoundIdsPass : ImportPass<"fsdp-bound-ids", "::mlir::func::FuncOp"> {
  let summary = "Bound the ids of every lookup";
  let description = [{
    - Requires: lookups are raised (`fsdp.gather_rows`, `fsdp.cross_entropy`).
    - Ensures: ids are in [0, rows), or in [0, classes), for all batches that the
      runtime lets through: a batch argument without `fsdp.limit` gets the largest
      that does it. Limits that are too large and constants that are outside are
      refused. Ids that cannot be bounded are clamped, and the function returns
      what was found out of range beside its other results (`fsdp.lookup`).
    - Keeps: values, for ids within the limits, and where no checked lookup is out
      of range.
  }];
  let statistics = [Statistic<"numLookups", "num-lookups", "Lookups">,
                    Statistic<"numCheckedAtRun", "num-checked", "Lookups that are checked in each step">,
                    Statistic<"numInferred", "num-inferred", "Limits inferred or lowered">];
}

def AttachLossPass : ImportPass<"fsdp-attach-loss", "::mlir::func::FuncOp"> {
  let summary = "Attach a loss to the logits";
  let description = [{
    - Requires: one result, float logits [.., vocabulary].
    - Ensures: a new last argument `targets` (i64, the logits' leading shape) and
      the mean cross-entropy as the only result, over the targets that are not `ignore`.
    - Keeps: the module as it is when no loss is asked for.
  }];
  let options = [StepOption<"loss", "attach-loss", "std::string">,
                 StepOption<"ignore", "ignore-index", "std::string">];
  let statistics = [Statistic<"numAttached", "num-attached", "Losses attached">];
}

def FoldReshapesPass : ImportPass<"fsdp-fold-reshapes", "::mlir::func::FuncOp"> {
  let summary = "Move views away from between ops";
  let description = [{
    - Requires: structured ops are generics.
    - Ensures: in phase `heads`, contractions read copies directly, not through a
      view; in phase `rows`, elementwise ops, reductions and contractions of a
      row-wise region have one shape without views between them.
    - Keeps: values, bit for bit.
  }];
  let options = [Option<"phase", "phase", "std::string", /*default=*/"\"rows\"", "heads or rows.">];
  let statistics = [Statistic<"numRemoved", "num-removed", "Views fewer than before">,
                    Statistic<"numFolded", "num-folded", "Copies folded on the way">];
}

def FormContractionsPass : ImportPass<"fsdp-form-contractions", "::mlir::func::FuncOp"> {
  let summary = "Raise matrix products to linalg.contract";
  let description = [{
    - Requires: structured ops are generics.
    - Ensures: every sum of products with loops of all kinds m, n and k is a
      `linalg.contract`, with its maps as they were.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numFormed", "num-formed", "Contractions formed">];
}

def FuseElementwisePass : ImportPass<"fsdp-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Join chains of elementwise ops";
  let description = [{
    - Requires: lookups, softmax and losses are raised (bodies hide them).
    - Ensures: no elementwise generic is read by just one elementwise generic, but
      for functions like cos that would be repeated, and roundings of wider values.
    - Keeps: values, bit for bit; contractions alone.
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Generics fewer than before">];
}

def NameBatchPass : ImportPass<"fsdp-name-batch", "::mlir::func::FuncOp"> {
  let summary = "Name the arguments that come with each batch";
  let description = [{
    - Requires: parameters are marked.
    - Ensures: every other argument that is read carries `fsdp.batch`, arguments that
      nothing reads and nobody named are gone; no `fsdp.position`. Emits an error where
      roles cannot be told: more than two inputs of integers, or another input without a name.
    - Keeps: names that are there.
  }];
  let statistics = [Statistic<"numNamed", "num-named", "Batch arguments named">,
                    Statistic<"numDropped", "num-dropped", "Arguments that nothing reads">];
}

def InferInitPass : ImportPass<"fsdp-infer-init", "::mlir::func::FuncOp"> {
  let summary = "Infer how parameters start from how they are used";
  let description = [{
    - Requires: parameters are marked; contractions and lookups are raised.
    - Ensures: every parameter carries `fsdp.init`; a remark lists the inferred.
    - Keeps: initial values that are given.
  }];
  let statistics = [Statistic<"numInferred", "num-inferred", "Parameters without given initial values">];
}

def VerifyImportedPass : ImportPass<"fsdp-verify-imported", "::mlir::ModuleOp"> {
  let summary = "Check the model contract";
  let description = [{
    - Requires: nothing.
    - Ensures: the module is as docs/explanation/pipeline.md §1 says; otherwise errors say
      where it is not and what to do.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numOps", "num-ops", "Top-level ops of the model">];
}

#endif // FSDP_IMPORT_PASSES_TD
