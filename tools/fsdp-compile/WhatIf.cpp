//===- WhatIf.cpp - Compare alternative plans -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Split "mesh=replicate=2,shard=8,param-dtype=bf16" into options. A segment that begins with an
//    axis, such as shard=8, belongs to the mesh before the segment. A segment without '=' belongs
//    to the value before the segment, as in "freeze=h.0,*.bias". `model=FILE` names another model,
//    for example one with another batch size.
// 2. Build the command line of each plan. Remove output options, and options that the question
//    sets. Also remove options that have no effect together with the question, such as --beta2 with
//    optimizer=sgd. Append the options of the question, and --overlap --explain=json.
// 3. Print one row for each plan. If a plan failed, the row of the plan contains the error. If the
//    output for a plan is equal to the output for the plan without changes, mark the row of the
//    plan.
//
//===----------------------------------------------------------------------===//

#include "WhatIf.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/Options/OptionTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <optional>

using namespace mlir::fsdp;
using llvm::ArrayRef;
using llvm::StringRef;

static constexpr unsigned mostSeconds = 600;

namespace {
/// A question of --what-if. A question contains the changes to the command line for one plan.
struct Question {
  std::string text, model;
  std::vector<std::string> options; // such as --mesh=shard=64
};

/// The measures of a plan, or the error of a plan that failed.
struct Answer {
  int64_t arena = 0, owned = 0, sent = 0;
  double compute = 0, exposed = 0;
  std::string plan; // output of --explain=json
  std::string problem;
  int code = 0; // exit code of the process if `problem` is set
};
} // namespace

static StringRef getOptionName(StringRef argument) { return argument.ltrim('-').split('=').first; }

/// If a question must not set the option `name`, returns the reason. Otherwise returns an empty
/// text.
static std::string whyNotAsked(StringRef name) {
  if (name == "batch" || name == "seq")
    return "'" + name.str() + "' is part of the model: generate such a model and give model=FILE";
  if (name == "overlap")
    return "all plans are compared with --overlap";
  const OptionRow *row = findOption(name);
  bool isOfLlvm = !row && llvm::cl::getRegisteredOptions().count(name);
  return isOfLlvm || (row && !row->isPlan) ? "'" + name.str() + "' is not part of a plan" : "";
}

/// Parses a question, as step 1 of the list above describes.
static std::optional<Question> readQuestion(StringRef text) {
  Question question{text.str(), "", {}};
  auto fail = [&](const llvm::Twine &message) {
    llvm::errs() << "fsdp-compile: --what-if=" << text << ": " << message << "\n";
    return std::nullopt;
  };
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  // The value of the last option, to which segments are appended that set no option.
  std::string *value = nullptr;
  for (StringRef part : parts) {
    StringRef name = part.split('=').first;
    bool isAxis = llvm::is_contained({"replicate", "shard", "context", "tensor"}, name),
         hasValue = !part.split('=').second.empty();
    if (std::string why = whyNotAsked(name); !why.empty())
      return fail(why);
    if (value && ((isAxis && StringRef(*value).starts_with("--mesh=")) ||
                  (!part.empty() && !part.contains('=') && !findOption(part)))) {
      *value += "," + part.str();
      continue;
    }
    if (!hasValue || !(isAxis || name == "model" || findOption(name)))
      return fail("expected options of fsdp-compile such as mesh=shard=64, found '" + part + "'");
    if (name == "model") {
      question.model = part.split('=').second.str();
      value = &question.model;
      continue;
    }
    question.options.push_back((isAxis ? "--mesh=" : "--") + part.str());
    value = &question.options.back();
  }
  return question;
}

namespace {
struct Argument {
  StringRef name;       ///< name of the option, or empty for the positional argument
  const OptionRow *row; ///< row of the option in the table, or null
  std::string text;     ///< value of the option
  std::vector<std::string> words;
};
} // namespace

static std::vector<Argument> readArguments(ArrayRef<std::string> words) {
  std::vector<Argument> arguments;
  for (size_t index = 1; index < words.size(); ++index) {
    StringRef word = words[index];
    bool isOption = word.starts_with("-") && word != "-";
    StringRef name = isOption ? getOptionName(word) : "";
    const OptionRow *row = isOption ? findOption(name) : nullptr;
    arguments.push_back({name, row, word.split('=').second.str(), {word.str()}});
    if (!row || word.contains('='))
      continue;
    if (row->alone)
      arguments.back().text = row->alone->str();
    else if (index + 1 < words.size()) { // the value is the next argument, as in --mesh shard=2
      arguments.back().text = words[++index];
      arguments.back().words.push_back(words[index]);
    }
  }
  return arguments;
}

/// Builds the command line of a plan, as step 2 of the list above describes. Appends to
/// `withoutEffect` those options of the command line that have no effect together with the options
/// of the question.
static std::vector<std::string> makeCommand(ArrayRef<std::string> words, StringRef input,
                                            const Question &question,
                                            std::vector<std::string> &withoutEffect) {
  static constexpr StringRef dropped[] = {"what-if", "explain", "report", "overlap",
                                          "timing",  "remarks", "o"};
  std::vector<Argument> arguments = readArguments(words);
  StepOptions given, asked;
  auto set = [](StepOptions &options, StringRef name, StringRef text) {
    (void)setOption(options, name, text, OptionOrigin::CommandLine); // planning reports an error
  };
  for (const Argument &argument : arguments)
    if (argument.row)
      for (StepOptions *options : {&given, &asked})
        set(*options, argument.name, argument.text);
  for (StringRef option : question.options)
    set(asked, getOptionName(option), option.split('=').second);
  std::vector<std::string> command{words[0]};
  for (const Argument &argument : arguments) {
    if (argument.name.empty() && argument.words.front() == input)
      continue;
    bool isSet = llvm::any_of(
        question.options, [&](StringRef option) { return getOptionName(option) == argument.name; });
    if (!argument.name.empty() && (isSet || llvm::is_contained(dropped, argument.name)))
      continue;
    if (argument.row && hasEffect(*argument.row, given) && !hasEffect(*argument.row, asked))
      withoutEffect.push_back("--" + argument.name.str());
    else
      llvm::append_range(command, argument.words);
  }
  command.push_back(question.model.empty() ? input.str() : question.model);
  command.insert(command.end(), question.options.begin(), question.options.end());
  command.insert(command.end(), {"--overlap", "--explain=json"});
  return command;
}

static int64_t getInteger(const llvm::json::Object *object, StringRef name) {
  return object ? object->getInteger(name).value_or(0) : 0;
}

/// Makes one plan in a new process. Returns the measures of the plan, which step 3 prints.
static Answer plan(StringRef program, ArrayRef<std::string> command) {
  Answer answer;
  llvm::SmallString<128> out, err;
  if (llvm::sys::fs::createTemporaryFile("fsdp-what-if", "json", out) ||
      llvm::sys::fs::createTemporaryFile("fsdp-what-if", "txt", err)) {
    answer.problem = "cannot create a temporary file";
    return answer;
  }
  llvm::SmallVector<StringRef> words(command.begin(), command.end());
  std::string problem;
  int code = llvm::sys::ExecuteAndWait(program, words, std::nullopt,
                                       {StringRef(""), StringRef(out), StringRef(err)}, mostSeconds,
                                       0, &problem);
  auto text = llvm::MemoryBuffer::getFile(code == 0 ? out : err);
  StringRef said = text ? (*text)->getBuffer() : StringRef(problem);
  auto json = code == 0 ? llvm::json::parse(said) : llvm::Expected<llvm::json::Value>(nullptr);
  const llvm::json::Object *root = json ? json->getAsObject() : nullptr;
  if (!json)
    llvm::consumeError(json.takeError());
  if (const llvm::json::Object *memory = root ? root->getObject("memory") : nullptr) {
    answer.plan = said.str();
    answer.arena = getInteger(memory, "peak");
    answer.owned = getInteger(memory, "owned");
    if (const llvm::json::Array *rows = root->getArray("communication"))
      for (const llvm::json::Value &row : *rows)
        answer.sent += getInteger(row.getAsObject(), "wire_bytes");
    if (const llvm::json::Object *schedule = root->getObject("schedule")) {
      answer.compute = schedule->getNumber("compute_seconds").value_or(0);
      answer.exposed = schedule->getNumber("exposed_seconds").value_or(0);
    }
  } else {
    auto [first, rest] = said.trim().split('\n');
    answer.problem = first.empty() ? problem : first.str();
    answer.code = code == 2 ? 2 : 1;
  }
  llvm::sys::fs::remove(out);
  llvm::sys::fs::remove(err);
  return answer;
}

static void print(const Question &question, const Answer &answer, bool isSame,
                  ArrayRef<std::string> withoutEffect, size_t width) {
  llvm::outs() << "  " << llvm::left_justify(question.text, width);
  if (!answer.problem.empty()) {
    llvm::outs() << "  " << answer.problem << "\n";
    return;
  }
  for (int64_t bytes : {answer.arena, answer.owned, answer.sent})
    llvm::outs() << llvm::right_justify(formatSize(bytes), 13);
  llvm::outs() << llvm::format("%12.3f ms%12.3f ms%12.3f ms", 1e3 * answer.compute,
                               1e3 * answer.exposed, 1e3 * (answer.compute + answer.exposed))
               << (isSame ? "  no difference from the given plan" : "");
  if (!withoutEffect.empty())
    llvm::outs() << "  without " << llvm::join(withoutEffect, ", ");
  llvm::outs() << "\n";
}

int mlir::fsdp::answerWhatIf(ArrayRef<std::string> arguments, StringRef input,
                             ArrayRef<std::string> asked) {
  std::vector<Question> questions{{"(as given)", "", {}}};
  for (StringRef text : asked) {
    std::optional<Question> question = readQuestion(text);
    if (!question)
      return 2;
    questions.push_back(*question);
  }
  if (input == "-") {
    llvm::errs()
        << "fsdp-compile: --what-if reads the model several times: give a file, not stdin\n";
    return 2;
  }
  size_t width = 12;
  for (const Question &question : questions)
    width = std::max(width, question.text.size());
  std::string program = llvm::sys::fs::getMainExecutable(arguments[0].c_str(),
                                                         reinterpret_cast<void *>(&answerWhatIf));
  llvm::outs()
      << "What if: per rank and step, collectives scheduled (--overlap); times are estimates\n  "
      << llvm::left_justify("", width)
      << "        arena        owned         sent        compute        exposed           step\n";
  int code = 0;
  std::optional<std::string> given; // output of the plan without changes
  for (const Question &question : questions) {
    std::vector<std::string> withoutEffect;
    Answer answer = plan(program, makeCommand(arguments, input, question, withoutEffect));
    print(question, answer, given && answer.problem.empty() && answer.plan == *given, withoutEffect,
          width);
    code = std::max(code, answer.code);
    if (!given)
      given = answer.plan;
  }
  return code;
}
