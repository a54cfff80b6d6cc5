//===- FSDPAttrs.td - Attributes of the fsdp dialect -------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPATTRS_TD
#define FSDP_IR_FSDPATTRS_TD

include "fsdp/IR/FSDPDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def FSDP_ReductionKind : I32EnumAttr<"ReductionKind", "how the contributions of the ranks are combined", [
    I32EnumAttrCase<"sum", 0>,
    I32EnumAttrCase<"avg", 1>
  ]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}
def FSDP_ReductionAttr : EnumAttr<FSDP_Dialect, FSDP_ReductionKind, "reduction">;

class FSDP_PlanEnum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}
// The enums that occur in programs have the same integer values as the enums in
// runtime/schema/artifact.fbs.
def FSDP_Category : FSDP_PlanEnum<"Category", "what a buffer contains", [
    I32EnumAttrCase<"parameters", 0>, I32EnumAttrCase<"gradients", 1>, I32EnumAttrCase<"optimizer", 2>,
    I32EnumAttrCase<"activations", 3>, I32EnumAttrCase<"gathered", 4>, I32EnumAttrCase<"staging", 5>,
    I32EnumAttrCase<"workspace", 6>, I32EnumAttrCase<"inputs", 7>, I32EnumAttrCase<"control", 8>,
    I32EnumAttrCase<"snapshot", 9>
  ]>;
def FSDP_CategoryAttr : EnumAttr<FSDP_Dialect, FSDP_Category, "category">;

def FSDP_StateRole : FSDP_PlanEnum<"StateRole", "which role a state has in its unit", [
    I32EnumAttrCase<"parameter", 0>, I32EnumAttrCase<"first_moment", 1>, I32EnumAttrCase<"second_moment", 2>,
    I32EnumAttrCase<"momentum", 3>, I32EnumAttrCase<"master", 4>
  ]>;
def FSDP_StateRoleAttr : EnumAttr<FSDP_Dialect, FSDP_StateRole, "role">;

def FSDP_CollectiveKind : FSDP_PlanEnum<"CollectiveKind", "which transfer a collective performs", [
    I32EnumAttrCase<"all_gather", 0>, I32EnumAttrCase<"reduce_scatter", 1>, I32EnumAttrCase<"all_reduce", 2>,
    I32EnumAttrCase<"broadcast", 3>, I32EnumAttrCase<"shift", 4>
  ]>;
def FSDP_CollectiveKindAttr : EnumAttr<FSDP_Dialect, FSDP_CollectiveKind, "collective_kind">;

def FSDP_RandomKind : FSDP_PlanEnum<"RandomKind", "which distribution the random numbers have", [
    I32EnumAttrCase<"uniform", 0>, I32EnumAttrCase<"bernoulli", 1>
  ]>;
def FSDP_RandomKindAttr : EnumAttr<FSDP_Dialect, FSDP_RandomKind, "random_kind">;

def FSDP_Epilogue : FSDP_PlanEnum<"Epilogue", "which function a library product applies to each element of its result", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"gelu_tanh", 2>
  ]>;
def FSDP_EpilogueAttr : EnumAttr<FSDP_Dialect, FSDP_Epilogue, "epilogue">;

def FSDP_InitKind : I32EnumAttr<"InitKind", "which distribution the initial values have", [
    I32EnumAttrCase<"constant", 0>,
    I32EnumAttrCase<"normal", 1>,
    I32EnumAttrCase<"uniform", 2>
  ]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

// A double. The printer uses the fewest digits from which the parser obtains exactly the same
// number.
def FSDP_DoubleParameter : AttrOrTypeParameter<"::llvm::APFloat", "a double"> {
  let cppStorageType = "::llvm::APFloat";
  let comparator = "$_lhs.bitwiseIsEqual($_rhs)";
  let parser = [{
    [&]() -> ::mlir::FailureOr<::llvm::APFloat> {
      double value;
      if ($_parser.parseFloat(value))
        return ::mlir::failure();
      return ::llvm::APFloat(value);
    }()
  }];
  let printer = "$_printer.printFloat($_self)";
}

class FSDP_Attr<string name, string attrMnemonic> : AttrDef<FSDP_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def FSDP_InitAttr : FSDP_Attr<"Init", "init"> {
  let summary = "distribution of the initial values of a parameter";
  let description = [{
    | kind | elements |
    |---|---|
    | `constant` | all equal `a` |
    | `normal` | normal, with mean `a` and standard deviation `b` |
    | `uniform` | uniform in [`a`, `b`) |

    The value of element i of a parameter does not depend on the number of ranks. Philox computes
    the value: the seed is the key, and i and a hash of the parameter's name are the counter.

    Example: `#fsdp.init<normal, 0.0, 0.02>`
  }];
  let parameters = (ins EnumParameter<FSDP_InitKind>:$kind,
                        FSDP_DoubleParameter:$a, FSDP_DoubleParameter:$b);
  let assemblyFormat = "`<` $kind `,` $a `,` $b `>`";
}

def FSDP_ParamAttr : FSDP_Attr<"Param", "param"> {
  let summary = "one parameter of a unit, and the place of the parameter in the flat buffer";
  let description = [{
    The third argument is the offset of the parameter in the unit's flat buffer, in elements.

    ```mlir
    #fsdp.param<"h.0.ln_1.weight", tensor<768xf32>, 0, trainable = true, decay = false,
                init = <constant, 1.0, 0.0>>
    ```
  }];
  let parameters = (ins StringRefParameter<"its name">:$name,
                        "::mlir::RankedTensorType":$type,
                        "int64_t":$offset,
                        "bool":$trainable, "bool":$decay,
                        "::mlir::fsdp::InitAttr":$init);
  let assemblyFormat = [{
    `<` $name `,` $type `,` $offset `,` `trainable` `=` $trainable `,`
    `decay` `=` $decay `,` `init` `=` $init `>`
  }];
}

def FSDP_PlacementAttr : FSDP_Attr<"Placement", "placement"> {
  let summary = "placement of the tensors of a unit on the mesh";
  let description = [{
    The attribute has three lists of axes, outermost axis first. The first list has the axes over
    which the parameters are split while no op uses them. The second list has the axes of the
    accumulated gradients. The third list has the axes of the optimizer state. Each tensor is
    replicated on all other axes. Each list is a prefix of `["shard", "replicate"]`, and no list is
    longer than the next list. A sharding strategy selects one row of this table:

    | | parameters | gradients | optimizer |
    |---|---|---|---|
    | `no_shard` | `[]` | `[]` | `[]` |
    | `zero1` | `[]` | `[]` | `["shard"]` |
    | `zero2` | `[]` | `["shard"]` | `["shard"]` |
    | `full_shard` | `["shard"]` | `["shard"]` | `["shard"]` |
    | `hfsdp` | `["shard"]` | `["shard"]` | `["shard", "replicate"]` |
  }];
  let parameters = (ins "::mlir::ArrayAttr":$parameters, "::mlir::ArrayAttr":$gradients, "::mlir::ArrayAttr":$optimizer);
  let assemblyFormat = [{
    `<` `parameters` `=` $parameters `,` `gradients` `=` $gradients `,` `optimizer` `=` $optimizer `>`
  }];
}

def FSDP_SliceAttr : FSDP_Attr<"Slice", "slice"> {
  let summary = "a range of a buffer of the plan";
  let description = [{
    The slice has `bytes` bytes and begins at byte `offset` of the buffer. Two terms may be added
    to the offset:

    - `step` bytes times the index of the iteration of the enclosing loop;
    - `piece` bytes times the rank's index on `axes`, outermost axis first. If a rank has index s on
      `shard` and r on `replicate` (of R ranks), its index on `["shard", "replicate"]` is s·R + r,
      and its index on `["shard:2"]` is s mod 2.

    Commands print a slice as `@b[offset, bytes] step N piece N of ["shard"]`.

    Example: `#fsdp.slice<@step.3, 0, 256>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$buffer, "int64_t":$offset, "int64_t":$bytes,
                        DefaultValuedParameter<"int64_t", "0">:$stride,
                        DefaultValuedParameter<"int64_t", "0">:$piece,
                        OptionalParameter<"::mlir::ArrayAttr">:$axes);
  let assemblyFormat = "`<` $buffer `,` $offset `,` $bytes (`step` $stride^)? (`piece` $piece^ `of` $axes)? `>`";
}

def FSDP_AxisAttr : FSDP_Attr<"Axis", "axis"> {
  let summary = "one axis of a mesh";
  let description = [{
    The attribute contains the name and the factors of an axis, outermost first: the axis
    `#fsdp.axis<"shard", [2, 4]>` has 8 ranks.
  }];
  let parameters = (ins StringRefParameter<"its name">:$name,
                        ArrayRefParameter<"int64_t">:$factors);
  let assemblyFormat = "`<` $name `,` `[` $factors `]` `>`";
  let extraClassDeclaration = [{ int64_t getSize() const; }];
}

#endif // FSDP_IR_FSDPATTRS_TD
