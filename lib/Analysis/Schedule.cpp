//===- Schedule.cpp - Measures of a schedule --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Schedule.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/InFlight.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of exposed transfers that the report in text form lists.
static constexpr unsigned maxRows = 8;

static double getNumber(DictionaryAttr numbers, StringRef name) {
  auto number = numbers.getAs<FloatAttr>(name);
  return number ? number.getValueAsDouble() : 0;
}

static double getSeconds(Operation *op, StringRef name) {
  auto number = op->getAttrOfType<FloatAttr>(name);
  return number ? number.getValueAsDouble() : 0;
}

static int64_t getId(Operation *op) {
  auto collective = dyn_cast<CollectiveOp>(op);
  return collective ? collective.getId() : getInFlightId(op).value_or(-1);
}

bool fsdp::canStartTogether(CollectiveOp a, CollectiveOp b) {
  return a.getKind() == b.getKind() && a.getAxes() == b.getAxes();
}

bool fsdp::startsWithPrevious(CollectiveOp collective) {
  auto previous = dyn_cast_or_null<CollectiveOp>(collective->getPrevNode());
  return previous && collective.getChannel() && previous.getChannel() == collective.getChannel() &&
         canStartTogether(previous, collective);
}

bool fsdp::usesCopyEngines(ProgramOp program) {
  auto numbers = program->getAttrOfType<DictionaryAttr>(scheduleAttr);
  return numbers && numbers.contains("copy_engines");
}

ScheduleReport fsdp::measureSchedule(ModuleOp planned) {
  ScheduleReport report;
  for (auto program : planned.getOps<ProgramOp>()) {
    auto numbers = program->getAttrOfType<DictionaryAttr>(scheduleAttr);
    if (program.getSymName() != "step" || !numbers)
      continue;
    report.isScheduled = true;
    report.copyEngines = usesCopyEngines(program);
    report.slowed = getNumber(numbers, "slowed");
    if (auto name = numbers.getAs<StringAttr>("cluster"))
      report.cluster = name.getValue();
    report.compute = getNumber(numbers, "compute");
    report.unscheduled = getNumber(numbers, "unscheduled");
    report.scheduled = getNumber(numbers, "scheduled");
    report.bound = getNumber(numbers, "bound");
    for (const NumberedCommand &command : numberCommands(program)) {
      Operation *op = command.op;
      if (!isa<CollectiveOp>(op) && !getInFlightId(op))
        continue;
      auto collective = dyn_cast<CollectiveOp>(op);
      (collective ? report.collectives : report.copies) += command.turns;
      report.launches += collective && !startsWithPrevious(collective) ? command.turns : 0;
      double seconds = getSeconds(op, secondsAttr), exposed = getSeconds(op, exposedAttr);
      auto limit = op->getAttrOfType<StringAttr>(limitAttr);
      if (exposed > 0.01 * seconds)
        report.exposed.push_back({op, seconds * command.turns, exposed * command.turns,
                                  limit ? limit.getValue() : "the links"});
    }
    llvm::sort(report.exposed, [](const ExposedReport &a, const ExposedReport &b) {
      return std::make_pair(-a.exposed, getId(a.op)) < std::make_pair(-b.exposed, getId(b.op));
    });
  }
  return report;
}

static std::string formatSeconds(double seconds) {
  std::string text;
  const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "us";
  double scale = seconds >= 1 ? 1 : seconds >= 1e-3 ? 1e3 : 1e6;
  llvm::raw_string_ostream(text) << llvm::format("%.3g %s", seconds * scale, unit);
  return text;
}

void fsdp::writeSchedule(const ScheduleReport &report, raw_ostream &os) {
  if (!report.isScheduled)
    return;
  os << "\nSchedule, by estimates for '" << report.cluster << "'"
     << (report.copyEngines ? ", all-gathers by copy engines" : "") << "\n  "
     << formatSeconds(report.compute) << " compute + " << formatSeconds(report.getExposed())
     << " exposed communication; " << formatSeconds(report.unscheduled - report.compute)
     << " without a schedule, at least " << formatSeconds(report.bound - report.compute)
     << (report.slowed > 0 ? " with any, slower kernels included\n" : " with any\n");
  if (report.slowed > 0)
    os << "  " << formatSeconds(report.slowed)
       << " more compute, because collectives occupy multiprocessors\n";
  if (report.launches < report.collectives)
    os << "  " << report.collectives << " collectives start in " << report.launches
       << " launches\n";
  for (const ExposedReport &row : ArrayRef(report.exposed).take_front(maxRows))
    os << "  " << llvm::left_justify(describeCommand(row.op), 40)
       << llvm::right_justify(formatSeconds(row.exposed), 10) << " of "
       << llvm::left_justify(formatSeconds(row.seconds), 10) << " exposed: " << row.limit << "\n";
  if (report.exposed.size() > maxRows)
    os << "  and " << report.exposed.size() - maxRows << " shorter ones\n";
}

void fsdp::writeSchedule(const ScheduleReport &report, llvm::json::OStream &json) {
  if (!report.isScheduled)
    return;
  json.attributeObject("schedule", [&] {
    json.attribute("cluster", report.cluster);
    json.attribute("copy_engines", report.copyEngines);
    json.attribute("slowed_seconds", report.slowed);
    json.attribute("compute_seconds", report.compute);
    json.attribute("unscheduled_seconds", report.unscheduled);
    json.attribute("scheduled_seconds", report.scheduled);
    json.attribute("bound_seconds", report.bound);
    json.attribute("exposed_seconds", report.getExposed());
    json.attribute("collectives", report.collectives);
    json.attribute("launches", report.launches);
    json.attribute("copies", report.copies);
    json.attributeArray("exposed", [&] {
      for (const ExposedReport &row : report.exposed)
        json.object([&] {
          json.attribute("id", getId(row.op));
          json.attribute("label", describeCommand(row.op));
          json.attribute("seconds", row.seconds);
          json.attribute("exposed_seconds", row.exposed);
          json.attribute("limit", row.limit);
        });
    });
  });
}
