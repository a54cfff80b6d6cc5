//===- TensorPlan.cpp - Parameters that --tensor-parallel splits *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   {"layers.*.self_attn.q_proj": "colwise", "layers.*.self_attn.o_proj": "rowwise"}
//
// The words are those of base_model_tp_plan in the configurations of Hugging Face. Hugging Face has
// further words, which are refused.
//
// O(entries · parameters).
//
//===----------------------------------------------------------------------===//

#include "TensorPlan.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "fsdp/Shard/NamePattern.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace mlir::fsdp;
using Kind = JsonValue::Kind;

namespace {
struct Spelling {
  StringLiteral text;
  TensorWord word;
  std::optional<int64_t> dim = std::nullopt;
};
} // namespace

/// The words of transformers 5, and their earlier names. The first spelling of a word is its name.
/// Collectives before and after a product, in which some words differ, follow from the program.
static constexpr Spelling words[] = {
    {"colwise", TensorWord::Colwise},
    {"rowwise", TensorWord::Rowwise},
    {"replicate", TensorWord::Replicate},
    {"sequence_parallel", TensorWord::SequenceParallel},
    {"colwise_gather_output", TensorWord::Colwise},
    {"colwise_rep", TensorWord::Colwise},
    {"packed_colwise", TensorWord::Colwise},
    {"rowwise_split_input", TensorWord::Rowwise},
    {"rowwise_rep", TensorWord::Rowwise},
    {"packed_rowwise", TensorWord::Rowwise},
    {"replicated_with_grad_allreduce", TensorWord::Replicate},
    {"embedding_rowwise", TensorWord::Rowwise, 0},
    {"embedding_colwise", TensorWord::Colwise, 1},
};

StringRef fsdp::nameOf(TensorWord word) {
  return llvm::find_if(words, [&](const Spelling &row) { return row.word == word; })->text;
}

LogicalResult TensorPlan::read(StringRef path, MLIRContext *context) {
  auto at = [&](unsigned line, unsigned column) -> Location {
    return FileLineColLoc::get(context, path, line, column); // without a line, names only the file
  };
  JsonProblem problem;
  std::optional<JsonValue> plan = readJson(path.str(), problem);
  if (!plan)
    return emitError(at(problem.line, problem.column))
           << "--tensor-parallel=" << path << ": " << problem.message
           << "; expected 'auto' or a JSON file";
  if (!plan->is(Kind::object) || plan->members.empty())
    return emitError(at(plan->line, plan->column))
           << "tensor-parallel: expected an object such as {\"layers.*.mlp.up_proj\": "
              "\"colwise\"}, found "
           << (plan->is(Kind::object) ? "an empty one" : plan->describe());
  for (const JsonMember &member : plan->members) {
    const JsonValue &value = member.value;
    auto row =
        llvm::find_if(words, [&](const Spelling &known) { return known.text == value.text; });
    if (!value.is(Kind::string) || row == std::end(words)) {
      InFlightDiagnostic diag = emitError(at(value.line, value.column))
                                << "tensor-parallel: expected a word for pattern '"
                                << shortText(member.name) << "', found " << value.describe();
      diag.attachNote() << "use \"colwise\" to split output features, \"rowwise\" to split input "
                           "features, \"replicate\", or \"sequence_parallel\" for norms; of the "
                           "other words of Hugging Face, those for experts and for latent "
                           "attention are not supported";
      return diag;
    }
    entries.push_back({at(member.line, member.column), member.name, row->word, row->dim});
  }
  return success();
}

FailureOr<SmallVector<const TensorPlanEntry *>> TensorPlan::match(ArrayRef<StringRef> names) const {
  SmallVector<const TensorPlanEntry *> owners(names.size());
  for (const TensorPlanEntry &entry : entries) {
    const std::string suffix = "*." + entry.pattern; // a GlobPattern refers to its text
    auto glob = llvm::GlobPattern::create(entry.pattern);
    auto anywhere = llvm::GlobPattern::create(suffix);
    if (!glob || !anywhere || entry.pattern.empty()) {
      std::string why = glob ? "it is empty" : llvm::toString(glob.takeError());
      llvm::consumeError(anywhere.takeError());
      return emitError(entry.loc) << "tensor-parallel: pattern '" << shortText(entry.pattern)
                                  << "' cannot be read: " << why;
    }
    bool matched = false, decides = false;
    const TensorPlanEntry *earlier = nullptr;
    for (auto [name, owner] : llvm::zip_equal(names, owners)) {
      if (!matchesBeginning(*glob, name) && !matchesBeginning(*anywhere, name))
        continue;
      matched = true;
      if (!owner) {
        owner = &entry;
        decides = true;
      } else if (!earlier) {
        earlier = owner;
      }
    }
    if (!matched)
      return emitError(entry.loc) << "tensor-parallel: pattern '" << shortText(entry.pattern)
                                  << "' matches no parameter" << describeNames(names);
    if (!decides) {
      InFlightDiagnostic diag = emitError(entry.loc)
                                << "tensor-parallel: pattern '" << shortText(entry.pattern)
                                << "' has no effect, because earlier patterns match all of its "
                                   "parameters";
      diag.attachNote(earlier->loc)
          << "such as '" << shortText(earlier->pattern) << "'; write the special pattern first";
      return diag;
    }
  }
  return owners;
}
