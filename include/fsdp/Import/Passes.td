//===- Passes.td - Passes of the Import stage --------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PASSES_TD
#define FSDP_IMPORT_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

// The passes of Import read ops of any dialect. They create only ops of the dialects in this list.
class ImportPass<string flag, string on> : Pass<flag, on> {
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def LowerStablehloPass : ImportPass<"fsdp-lower-stablehlo", "::mlir::ModuleOp"> {
  let summary = "Lower StableHLO to linalg on tensors";
  let description = [{
    - Requires: nothing. The pass runs first.
    - Ensures: none of these ops of StableHLO or CHLO is left: elementwise ops, constants, views,
      slices, joins, `gather`, updates at constant positions, `dot_general`, `convolution`,
      `reduce`, `reduce_window` and composites. It is an error if an attribute or a shape
      contradicts the definition of the op. If the module has no `fsdp.num_stop_gradients`, a
      warning states that the module does not record the uses of `stop_gradient` in the model.
    - Keeps: all other ops, and the names of arguments.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numLowered", "num-lowered", "StableHLO ops lowered">,
                    Statistic<"numErfc", "num-erfc", "Expansions of erfc that became one op">];
}

def ReadStopMarkersPass : ImportPass<"fsdp-read-stop-markers", "::mlir::ModuleOp"> {
  let summary = "Replace an exporter's markers for stop_gradient by the op fsdp.stop_gradient";
  let description = [{
    - Requires: nothing.
    - Ensures: no call of a marker function `@fsdp.stop_gradient` and no attribute
      `fsdp.stop_gradient` or `fsdp.num_stop_gradients` is left. It is an error if an op that cannot
      be a marker has the attribute `fsdp.stop_gradient`. It is also an error if the number of
      markers differs from `fsdp.num_stop_gradients`.
    - Keeps: everything else.
  }];
  let statistics = [Statistic<"numMarkers", "num-markers", "Markers replaced">];
}

def RefuseForeignPass : ImportPass<"fsdp-refuse-foreign", "::mlir::ModuleOp"> {
  let summary = "Report IR that Import cannot read, before other passes run";
  let description = [{
    - Requires: nothing.
    - Ensures: all ops are known to Import, functions have one block, no number is complex, and
      arguments have static shapes. With the option `shapes`, the pass instead checks that all
      values have static shapes. For each violation, the pass prints an error with the location and
      a fix, up to eight errors.
    - Keeps: the IR.
  }];
  let options = [Option<"shapes", "shapes", "bool", /*default=*/"false",
                        "Check the shapes of all values instead; used after folding.">];
  let statistics = [Statistic<"numRefused", "num-refused", "Ops refused">];
}

def RefuseUnwrittenPass : ImportPass<"fsdp-refuse-unwritten", "::mlir::func::FuncOp"> {
  let summary = "Refuse ops that read a tensor to which no op has written";
  let description = [{
    - Requires: nothing.
    - Ensures: no op reads elements of a `tensor.empty`. An op that accumulates into its output
      counts as a reader of this output. The pass prints an error with a note for each of the first
      eight readers.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numRefused", "num-refused", "Ops refused">];
}

def SelectEntryPass : ImportPass<"fsdp-select-entry", "::mlir::ModuleOp"> {
  let summary = "Select the function to train and number its arguments and constants";
  let description = [{
    - Requires: the module is as an importer wrote it, and no earlier pass has changed the module.
    - Ensures: the module has one public function. Each argument, and each tensor constant that is
      not a splat, carries its index in the file as `fsdp.position`. Options refer to arguments and
      constants by this index. Unused `ml_program.global` ops, and attributes of unknown dialects on
      the module and its functions, are removed.
    - Keeps: all code.
  }];
  let options = [StepOption<"entry", "entry", "std::string">];
  let statistics = [Statistic<"numConstants", "num-constants", "Tensor constants with more than one value">];
}

def CheckMarksPass : ImportPass<"fsdp-check-marks", "::mlir::ModuleOp"> {
  let summary = "Check the attributes that describe the arguments";
  let description = [{
    - Requires: one public function.
    - Ensures: the arguments of the function carry only allowed `fsdp.` attributes, each with a
      value of the right type. The pass prints one error for each wrong attribute.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Attributes checked">];
}

def MarkBatchPass : ImportPass<"fsdp-mark-batch", "::mlir::ModuleOp"> {
  let summary = "Give the batch inputs the names from the option --batch";
  let description = [{
    - Requires: one public function whose arguments carry their positions.
    - Ensures: every argument that the option `batch` names carries `fsdp.batch`. No two batch
      inputs have the same name.
    - Keeps: all code, and the names of other arguments.
  }];
  let options = [ListOption<"batch", "batch", "std::string",
                            "INDEX=NAME, or ARGUMENT=NAME where ARGUMENT is the name in the argument's location.">];
  let statistics = [Statistic<"numMarked", "num-marked", "Arguments named">];
}

def BindBuffersPass : ImportPass<"fsdp-bind-buffers", "::mlir::ModuleOp"> {
  let summary = "Determine the contents of masks and other constant buffers";
  let description = [{
    - Requires: one public function, into which all called functions are inlined.
    - Ensures: every integer constant has known contents. A constant that is a causal mask becomes a
      `linalg.generic` that compares loop indices. The uses of the constant determine its values at
      allowed positions and at masked positions.
    - Keeps: the attribute `fsdp.position`, and all other code.
  }];
  let options = [ListOption<"buffers", "buffer", "std::string",
                            "NAME|INDEX=causal|zeros|ones|keep|FILE. INDEX counts arguments, or constants in order of appearance.">];
  let statistics = [Statistic<"numBound", "num-bound", "Buffers replaced by given contents">,
                    Statistic<"numRecognised", "num-recognised", "Constants recognised as a causal mask">];
}

def LiftParametersPass : ImportPass<"fsdp-lift-parameters", "::mlir::ModuleOp"> {
  let summary = "Make every parameter a named argument";
  let description = [{
    - Requires: one public function, into which all called functions are inlined. No earlier pass
      may merge constants, because two constants with elided values look equal.
    - Ensures: parameters are arguments with `fsdp.param`. Initial values from the model's file are
      in the module attribute `fsdp.values`. If an attribute of an argument or one of the options
      `params` and `params-file` names a parameter, only named tensors are trained. Float tensors
      without a name remain constants, and `fsdp.constants` lists their names. If such a tensor is a
      resource above 1 MiB, the tensor becomes a frozen parameter instead. If no parameter is named,
      a warning lists the tensors that are trained.
    - Keeps: a tied parameter remains one value that all its uses share. Constants that are not
      parameters are not changed.
  }];
  let options = [StepOption<"params", "params", "std::string">,
                 StepOption<"paramsFile", "params-file", "std::string">];
  let statistics = [Statistic<"numParameters", "num-parameters", "Arguments that are parameters">,
                    Statistic<"numLifted", "num-lifted", "Constants that became parameters">];
}

def ReadDropoutMarkersPass : ImportPass<"fsdp-read-dropout-markers", "::mlir::ModuleOp"> {
  let summary = "Replace an exporter's dropout markers by products with fsdp.random";
  let description = [{
    - Requires: one public function, into which all called functions are inlined, and in which
      parameters are marked.
    - Ensures: no call of a marker function `@fsdp.dropout` is left. Each call becomes a product
      with an `fsdp.random bernoulli` that has a new site. The function has three new arguments with
      `fsdp.key`, for the seed, the step and the sample. It is an error if a probability is outside
      [0, 1), or if the first dimension of a tensor with dropout is not the number of samples.
    - Keeps: everything else. The operand of a call with probability 0 replaces the call.
  }];
  let statistics = [Statistic<"numMarkers", "num-markers", "Calls of dropout markers">];
}

def LowerTosaPass : ImportPass<"fsdp-lower-tosa", "::mlir::ModuleOp"> {
  let summary = "Lower TOSA to linalg with the upstream passes of MLIR";
  let description = [{
    - Requires: parameters are arguments, because the upstream passes merge constants.
    - Ensures: no tosa op is left.
    - Keeps: a module without tosa ops is not changed.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tosa::TosaDialect",
                           "::mlir::index::IndexDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numLowered", "num-lowered", "tosa ops lowered">];
}

def DemoteFloat64Pass : ImportPass<"fsdp-demote-float64", "::mlir::func::FuncOp"> {
  let summary = "Compute f64 values in f32 if no parameter is f64";
  let description = [{
    - Requires: parameters are marked.
    - Ensures: if a function has float parameters and none of them is f64, the function has no f64
      value.
    - Keeps: a function with an f64 parameter, or without a float parameter, is not changed.
  }];
  let statistics = [Statistic<"numDemoted", "num-demoted", "Values converted from f64 to f32">];
}

def NormaliseOpsPass : ImportPass<"fsdp-normalise-ops", "::mlir::func::FuncOp"> {
  let summary = "Write each operation in one canonical form";
  let description = [{
    - Requires: static shapes.
    - Ensures: structured ops are `linalg.generic` or `linalg.fill`. The bodies of these ops capture
      no scalars except constants. A tensor that a body reads at loop indices is an operand of the
      structured op. Integer computations are inside the bodies that use the results of the
      computations. No op has a fast-math flag.
    - Keeps: values. A folded constant is rounded in the same way as a value that is computed at run
      time.
  }];
  let statistics = [Statistic<"numFlags", "num-flags", "Ops whose fast-math flags were removed">];
}

def FoldCopiesPass : ImportPass<"fsdp-fold-copies", "::mlir::func::FuncOp"> {
  let summary = "Fold transposes and broadcasts into the ops that read them";
  let description = [{
    - Requires: structured ops are `linalg.generic`.
    - Ensures: no `linalg.generic` reads a transposed or broadcast copy of a tensor if an indexing
      map can express the transpose or broadcast. If only a transpose read a contraction, the output
      map of the contraction now contains the transpose.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numFolded", "num-folded", "Copies folded into a reader or a producer">];
}

def EvaluateConstantsPass : ImportPass<"fsdp-evaluate-constants", "::mlir::func::FuncOp"> {
  let summary = "Evaluate at compile time the lookup indices that depend on no input";
  let description = [{
    - Requires: structured ops are `linalg.generic`.
    - Ensures: each lookup index that depends only on constants and loop indices is read from a
      constant tensor, unless the range analysis proves that the index is in range.
    - Keeps: masks, values of more than 2^19 elements, and indices that are provably in range or
      affine in the loop indices.

    Functions of `math` are evaluated in f64, and each result is rounded to its type.
    An index that depends on a sum of floats is not evaluated.
  }];
  let statistics = [Statistic<"numEvaluated", "num-evaluated", "Values that became constants">];
}

def DropAssertsPass : ImportPass<"fsdp-drop-asserts", "::mlir::func::FuncOp"> {
  let summary = "Replace the checks of ids inside a step by limits that are checked before the step";
  let description = [{
    - Requires: each lookup is a `tensor.extract` in the body of a `linalg.generic`.
    - Ensures:
      - batch arguments that hold ids carry an `fsdp.limit` that keeps every lookup in range;
      - these arguments carry `fsdp.extra_ids`, which lists the ids that the model tests for but
        does not look up;
      - no `cf.assert` is left;
      - comparisons that have the same result for all allowed ids are folded;
      - if no limit keeps a lookup in range, the lookup reads clamped indices, and the function
        returns an additional result (`fsdp.lookup`) with the index that was out of range.
    - Keeps: values, if each id is an extra id or within its limit, and all lookups that the step
      checks are in range.
  }];
  let statistics = [Statistic<"numExtraIds", "num-extra-ids", "Values outside the limits that the model handles">,
                    Statistic<"numAsserts", "num-asserts", "Asserts removed">,
                    Statistic<"numCheckedAtRun", "num-checked", "Lookups checked in each step">,
                    Statistic<"numFolded", "num-folded", "Comparisons, minima and maxima folded because of limits">];
}

def JoinPositionsPass : ImportPass<"fsdp-join-positions", "::mlir::func::FuncOp"> {
  let summary = "Combine the computed indices of each lookup into one index";
  let description = [{
    - Requires: the indices of all lookups are in range.
    - Ensures: a `tensor.extract` in a generic has at most one index that is neither a constant nor
      a loop index.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numJoined", "num-joined", "Lookups that had several computed positions">];
}

def RaiseEmbeddingPass : ImportPass<"fsdp-raise-embedding", "::mlir::func::FuncOp"> {
  let summary = "Raise lookups of rows to fsdp.gather_rows";
  let description = [{
    - Requires: the limits of ids keep every lookup in range.
    - Ensures: no generic contains a `tensor.extract` whose first non-constant index depends on
      data.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Lookups raised">];
}

def RaiseSoftmaxPass : ImportPass<"fsdp-raise-softmax", "::mlir::func::FuncOp"> {
  let summary = "Raise the ops of a softmax (max, subtract, exp, sum, divide) to linalg.softmax";
  let description = [{
    - Requires: the form that `fsdp-normalise-ops` ensures; generics may be fused.
    - Ensures: a softmax over one dimension is a `linalg.softmax`, whether the model computes the
      softmax as a quotient or as exp(x - logsumexp(x)). In both forms, intermediate values may have
      a narrower type, and the model may first subtract the maximum of x from x. Some models replace
      the softmax of a row that contains only -inf. The pass removes this op if the mask keeps an
      element in every row.
    - Keeps: values, up to rounding.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Softmaxes raised">,
                    Statistic<"numGuards", "num-guards", "Guards against rows of -inf removed">];
}

def RaiseAttentionPass : ImportPass<"fsdp-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Raise two matrix products with a softmax between them to fsdp.attention";
  let description = [{
    - Requires: softmax is raised; structured ops are `linalg.generic` or `linalg.contract`.
    - Ensures: the ops that compute softmax(f(scale · Q·Kᵀ))·V become one `fsdp.attention`. The pass
      looks through views, copies and casts, and recognises grouped heads by the repetition of K and
      V. Masks become `mask_mod`, dropout becomes `weight_mod`, and other functions become
      `score_mod`. The tensors that these regions read become captured operands of the op. A sink is
      an additional score: the softmax includes the score, and the model then drops its weight. The
      sink becomes an additional key, for which K and V are zero. If a softmax between two products
      is not raised, a remark states the reason, and a note marks the op that is the cause. The pass
      also prints a remark if exponentials between two products are not divided by their sum.
    - Keeps: values, up to rounding. A row whose scores are all -inf has the result 0 instead of
      NaN. A mask of finite numbers is raised if the pass can prove that every row has a key that is
      not masked. For this proof, the pass uses the ranges of `mask_mod`, or evaluates `mask_mod`
      for each row, including the constant tables that `mask_mod` reads.
  }];
  let options = [Option<"assumeKeys", "assume-keys", "bool", /*default=*/"false",
                        "Assume that every row keeps a key, so that a mask of large finite numbers equals one of -inf.">];
  let statistics = [Statistic<"numRaised", "num-raised", "Attentions raised">,
                    Statistic<"numMissed", "num-missed", "Softmaxes between two products that are not raised">];
}

def RaiseCrossEntropyPass : ImportPass<"fsdp-raise-cross-entropy", "::mlir::func::FuncOp"> {
  let summary = "Raise the mean of a log-softmax at targets to fsdp.cross_entropy";
  let description = [{
    - Requires: the form that `fsdp-normalise-ops` ensures; generics may be fused.
    - Ensures: a mean loss that the model computes with log-softmax or logsumexp becomes one
      `fsdp.cross_entropy`. The op has an `ignore_index` if the model ignores targets.
    - Keeps: values, up to rounding.
  }];
  let statistics = [Statistic<"numRaised", "num-raised", "Losses raised">];
}

def ExpandLookupPass : ImportPass<"fsdp-expand-lookup", "::mlir::func::FuncOp"> {
  let summary = "Replace each lookup that no earlier pass raised by a masked sum";
  let description = [{
    - Requires: lookups of rows and losses are raised.
    - Ensures: no generic contains a `tensor.extract` whose only computed index depends on data.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numExpanded", "num-expanded", "Lookups expanded">];
}

def BoundIdsPass : ImportPass<"fsdp-bound-ids", "::mlir::func::FuncOp"> {
  let summary = "Give batch arguments of ids a limit that keeps every lookup in range";
  let description = [{
    - Requires: lookups are raised (`fsdp.gather_rows`, `fsdp.cross_entropy`).
    - Ensures: in every batch that the runtime accepts, ids are in [0, rows), and targets are in [0,
      classes).
      - A batch argument without `fsdp.limit` gets the largest limit that keeps its ids in range.
      - It is an error if a limit is too large, or if a constant id is out of range.
      - If no limit bounds an id, the id is clamped, and the function returns an additional result
        (`fsdp.lookup`), which reports the id that was out of range.
    - Keeps: values, if the ids are within the limits, and all lookups that the step checks are in
      range.
  }];
  let statistics = [Statistic<"numLookups", "num-lookups", "Lookups found">,
                    Statistic<"numCheckedAtRun", "num-checked", "Lookups checked in each step">,
                    Statistic<"numInferred", "num-inferred", "Limits inferred or lowered">];
}

def AttachLossPass : ImportPass<"fsdp-attach-loss", "::mlir::func::FuncOp"> {
  let summary = "Append a cross-entropy loss to a model that returns logits";
  let description = [{
    - Requires: the model has one result, the logits, which are a float tensor of shape [..,
      vocabulary].
    - Ensures: the function has a new last argument `targets` (i64, with the leading shape of the
      logits). The function returns only the mean cross-entropy over the targets that differ from
      `ignore-index`.
    - Keeps: if `attach-loss` is empty, the pass changes nothing.
  }];
  let options = [StepOption<"loss", "attach-loss", "std::string">,
                 StepOption<"ignore", "ignore-index", "std::string">];
  let statistics = [Statistic<"numAttached", "num-attached", "Losses attached">];
}

def FoldReshapesPass : ImportPass<"fsdp-fold-reshapes", "::mlir::func::FuncOp"> {
  let summary = "Move reshapes out of chains of tensor ops";
  let description = [{
    - Requires: structured ops are `linalg.generic`.
    - Ensures: in phase `heads`, a contraction reads a transposed or broadcast copy directly, with
      no view between the copy and the contraction. In phase `rows`, the elementwise ops, reductions
      and contractions of a row-wise region use one shape of rows, with no views between the ops.
    - Keeps: values, bit for bit.
  }];
  let options = [Option<"phase", "phase", "std::string", /*default=*/"\"rows\"", "Phase: heads or rows (default).">];
  let statistics = [Statistic<"numRemoved", "num-removed", "Views removed">,
                    Statistic<"numFolded", "num-folded", "Copies folded">];
}

def FormContractionsPass : ImportPass<"fsdp-form-contractions", "::mlir::func::FuncOp"> {
  let summary = "Raise matrix products to linalg.contract";
  let description = [{
    - Requires: structured ops are `linalg.generic`.
    - Ensures: a generic that sums products becomes a `linalg.contract` with the same indexing maps.
      The generic must have loops of all three kinds: over rows, over columns, and over summed
      elements.
    - Keeps: values, bit for bit.
  }];
  let statistics = [Statistic<"numFormed", "num-formed", "Contractions formed">];
}

def FuseElementwisePass : ImportPass<"fsdp-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse chains of elementwise ops";
  let description = [{
    - Requires: lookups, softmax and losses are raised, because fused bodies hide them.
    - Ensures: an elementwise generic with a single reader is fused into the reader if the reader is
      an elementwise generic too. A generic with a costly function, such as cos, is not fused if the
      reader would evaluate the function more than once per element. A generic that rounds values to
      a narrower type is not fused either.
    - Keeps: values, bit for bit; contractions are not changed.
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Generics removed">];
}

def NameBatchPass : ImportPass<"fsdp-name-batch", "::mlir::func::FuncOp"> {
  let summary = "Name the arguments that come with each batch";
  let description = [{
    - Requires: parameters are marked.
    - Ensures: every argument that is read and is no parameter carries `fsdp.batch`. The pass
      removes unused arguments without a name, and the attribute `fsdp.position`. It is an error if
      the pass cannot infer a name. It infers the name of the only integer input (`tokens`), and of
      the second of two integer inputs of equal shape (`targets`).
    - Keeps: given names are not changed.
  }];
  let statistics = [Statistic<"numNamed", "num-named", "Batch arguments named">,
                    Statistic<"numDropped", "num-dropped", "Unused arguments removed">];
}

def InferInitPass : ImportPass<"fsdp-infer-init", "::mlir::func::FuncOp"> {
  let summary = "Infer the initial values of parameters from their uses";
  let description = [{
    - Requires: parameters are marked; contractions and lookups are raised.
    - Ensures: every parameter carries `fsdp.init`. A remark lists the inferred values.
    - Keeps: given initial values are not changed.
  }];
  let statistics = [Statistic<"numInferred", "num-inferred", "Parameters without given initial values">];
}

def VerifyImportedPass : ImportPass<"fsdp-verify-imported", "::mlir::ModuleOp"> {
  let summary = "Check that the module satisfies the contract for imported models";
  let description = [{
    - Requires: nothing.
    - Ensures: the module satisfies docs/explanation/pipeline.md §1. Each error states the location
      and a fix.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numOps", "num-ops", "Top-level ops of the model">];
}

#endif // FSDP_IMPORT_PASSES_TD
