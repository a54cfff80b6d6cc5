//===- Manifest.cpp - The manifest of a planned module ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the compiled module as a FlatBuffer. References to symbols become indices, and slices of
// buffers become ranges of the arena.
//
//   fsdp.buffer @b .. at 4096            Buffer {offset 4096}
//   fsdp.launch @k_1f..(@b[64, 32])  =>  Launch {kernel 0, bindings [{4160, 32, 0}]}
//
// Units, kernels, layouts and programs have the same order as in the module. The parameters of all
// units are in one list, in the order of the units. Each part of the FlatBuffer is built in a
// separate statement. If parts were built in the arguments of one call, the C++ compiler could
// choose their order. The bytes of the manifest would then depend on this order.
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/ModelConstants.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Options/OptionTable.h"
#include "fsdpcommon/ShortText.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Numbers the symbols, and finds the mesh over which the programs communicate.
LogicalResult ManifestBuilder::number() {
  unsigned numUnits = 0, numParams = 0, numLayouts = 0, numKernels = 0;
  for (Operation &op : module.getOps()) {
    if (auto unit = dyn_cast<UnitOp>(op)) {
      indices[unit.getSymNameAttr()] = numUnits++;
      firstParams[unit.getSymNameAttr()] = numParams;
      numParams += unit.getNumParams();
    } else if (auto layout = dyn_cast<LayoutOp>(op)) {
      indices[layout.getSymNameAttr()] = numLayouts++;
    } else if (auto kernel = dyn_cast<func::FuncOp>(op); kernel && kernel->hasAttr(kernelAttr)) {
      indices[kernel.getSymNameAttr()] = numKernels++;
    }
  }
  for (auto program : module.getOps<ProgramOp>()) {
    bool isAlone =
        !program.walk([](CollectiveOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!program.getMeshAttr() || (isAlone && program.getSymName() != "step"))
      continue;
    auto own = tables.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
    if (mesh && mesh != own) {
      InFlightDiagnostic diag = program.emitError("communicates over @")
                                << own.getSymName() << ", other programs over @"
                                << mesh.getSymName() << "; expected one mesh";
      diag.attachNote(mesh.getLoc()) << "the other mesh is declared here";
      return diag;
    }
    mesh = own;
  }
  if (!mesh && !module.getOps<MeshOp>().empty())
    mesh = *module.getOps<MeshOp>().begin();
  if (!mesh || module.getOps<ProgramOp>().empty())
    return module.emitError(
        "expected an 'fsdp.mesh' and at least one 'fsdp.program'; run the Plan stage first");
  return success();
}

FailureOr<fb::DType> ManifestBuilder::getDType(Type type, Location loc) {
  if (type.isF64())
    return fb::DType::f64;
  if (type.isF32())
    return fb::DType::f32;
  if (type.isF16())
    return fb::DType::f16;
  if (type.isBF16())
    return fb::DType::bf16;
  if (type.isInteger(64) || type.isIndex())
    return fb::DType::i64;
  if (type.isInteger(32))
    return fb::DType::i32;
  if (type.isInteger(16))
    return fb::DType::i16;
  if (type.isInteger(8))
    return fb::DType::i8;
  if (type.isInteger(1))
    return fb::DType::i1;
  return emitError(loc) << "elements of type " << type
                        << " cannot be packed; expected f64, f32, f16, bf16, or an "
                        << "integer of 64, 32, 16, 8 or 1 bits";
}

std::vector<Offset<fb::Axis>> ManifestBuilder::addMesh() {
  std::vector<Offset<fb::Axis>> axes;
  for (auto axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    std::vector<uint64_t> factors(axis.getFactors().begin(), axis.getFactors().end());
    auto factorsVector = builder.CreateVector(factors);
    axes.push_back(fb::CreateAxis(builder, addString(axis.getName()), factorsVector));
  }
  return axes;
}

/// Adds the list of groups of neighbours. Must be called after all programs have been added,
/// because the code that adds a program numbers the groups that the program uses.
std::vector<Offset<fb::Neighbours>> ManifestBuilder::addNeighbours() {
  std::vector<Offset<fb::Neighbours>> list;
  for (StringRef name : neighbours)
    for (auto [index, axis] : llvm::enumerate(mesh.getAxes().getAsRange<AxisAttr>()))
      if (axis.getName() == (name == contextAxis ? "shard" : name.split(':').first))
        list.push_back(fb::CreateNeighbours(builder, index, mesh.getAxisSize(name)));
  return list;
}

/// Adds the offset and size of a parameter's values. Returns null if the model contains no values.
FailureOr<Offset<fb::Value>> ManifestBuilder::addValue(StringRef param, Location loc) {
  auto place = values.places.find(param);
  if (place == values.places.end())
    return Offset<fb::Value>();
  FailureOr<fb::DType> dtype = getDType(place->second.element, loc);
  if (failed(dtype))
    return failure();
  return fb::CreateValue(builder, *dtype, place->second.offset, place->second.bytes);
}

LogicalResult ManifestBuilder::addUnits() {
  for (auto unit : module.getOps<UnitOp>()) {
    FailureOr<fb::DType> dtype = getDType(unit.getDtype(), unit.getLoc());
    if (failed(dtype))
      return failure();
    for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
      SmallVector<int64_t> whole = getWholeShape(unit, param);
      std::vector<uint64_t> shape(whole.begin(), whole.end());
      InitAttr init = param.getInit();
      FailureOr<Offset<fb::Value>> value = addValue(param.getName(), unit.getLoc());
      if (failed(value))
        return failure();
      auto shapeVector = builder.CreateVector(shape);
      Offset<fb::ParamSplit> split;
      if (std::optional<TensorSplit> given = getTensorSplit(unit, param.getName())) {
        std::vector<uint64_t> blocks(given->blocks.begin(), given->blocks.end());
        split = fb::CreateParamSplit(builder, given->dim, builder.CreateVector(blocks));
      }
      params.push_back(fb::CreateParam(
          builder, addString(param.getName()), units.size(), param.getOffset(), shapeVector, *dtype,
          param.getTrainable(), param.getDecay(), static_cast<fb::InitKind>(init.getKind()),
          init.getA().convertToDouble(), init.getB().convertToDouble(), *value, split));
    }
    units.push_back(fb::CreateUnit(builder, addString(unit.getSymName()), unit.getShards(),
                                   unit.getShardSize(), *dtype));
  }
  return success();
}

LogicalResult ManifestBuilder::addSlots(LayoutOp layout, std::vector<Offset<fb::State>> &states,
                                        std::vector<Offset<fb::Input>> &inputs) {
  for (auto state : layout.getOps<StateSlotOp>()) {
    auto unit = tables.lookupNearestSymbolFrom<UnitOp>(module, state.getUnitAttr());
    FailureOr<fb::DType> dtype = getDType(state.getTensorType().getElementType(), state.getLoc());
    if (failed(dtype))
      return failure();
    int64_t elements = state.getTensorType().getNumElements();
    states.push_back(fb::CreateState(
        builder, indices.at(state.getUnitAttr().getAttr()),
        static_cast<fb::StateRole>(state.getRole()), *dtype,
        getOffset(layout, getBuffer(layout, state.getBufferAttr())), elements,
        // The reference has the flat buffers of all slices of a unit.
        getSplit(std::max<int64_t>(1, unit.getFlatSize() / std::max<int64_t>(1, elements)))));
  }
  for (auto input : layout.getOps<InputSlotOp>()) {
    FailureOr<fb::DType> dtype = getDType(input.getTensorType().getElementType(), input.getLoc());
    if (failed(dtype))
      return failure();
    auto role = llvm::StringSwitch<fb::InputRole>(input.getName())
                    .Case("tokens", fb::InputRole::tokens)
                    .Case("targets", fb::InputRole::targets)
                    .Default(fb::InputRole::other);
    BufferOp buffer = getBuffer(layout, input.getBufferAttr());
    std::vector<uint64_t> shape(input.getTensorType().getShape().begin(),
                                input.getTensorType().getShape().end());
    auto shapeVector = builder.CreateVector(shape);
    ArrayRef<int64_t> extra = input.getExtraIds().value_or(ArrayRef<int64_t>());
    Offset<flatbuffers::Vector<int64_t>> extraVector;
    if (!extra.empty())
      extraVector = builder.CreateVector(extra.data(), extra.size());
    inputs.push_back(fb::CreateInput(builder, addString(input.getName()), role, *dtype, shapeVector,
                                     getOffset(layout, buffer), buffer.getBytes(),
                                     input.getMicroBatches(), input.getLimit(), extraVector));
  }
  return success();
}

FailureOr<Offset<fb::Layout>> ManifestBuilder::addLayout(LayoutOp layout) {
  if (!layout.isPacked())
    return layout.emitError("expected a packed arena; run the Plan stage first");
  std::vector<Offset<fb::State>> states;
  std::vector<Offset<fb::Input>> inputs;
  if (failed(addSlots(layout, states, inputs)))
    return failure();
  llvm::DenseMap<Attribute, unsigned> programs;
  for (auto [index, program] : llvm::enumerate(module.getOps<ProgramOp>()))
    programs[program.getSymNameAttr()] = index;
  std::vector<Offset<fb::Buffer>> buffers;
  for (auto buffer : layout.getOps<BufferOp>()) {
    bool always = buffer.isPersistent();
    buffers.push_back(fb::CreateBuffer(
        builder, addString(buffer.getLabel()), static_cast<fb::Category>(buffer.getCategory()),
        getOffset(layout, buffer), buffer.getBytes(),
        always ? ~0u : programs.at(buffer.getProgramAttr().getAttr()),
        always ? 0 : *buffer.getFirst(), always ? ~0u : *buffer.getLast()));
  }
  auto statesVector = builder.CreateVector(states);
  auto inputsVector = builder.CreateVector(inputs);
  auto buffersVector = builder.CreateVector(buffers);
  fb::Slice block = getWhole(layout, layout.getBlockAttr()),
            rank = getWhole(layout, layout.getRankAttr());
  fb::Slice workspace(layout.getWorkspaceOffset(), layout.getWorkspaceBytes(), 0, 0, 0);
  return fb::CreateLayout(builder, layout.getArenaBytes(), statesVector, inputsVector, &block,
                          &rank, &workspace, layout.getSharedBytes(), layout.getWorkerBytes(),
                          layout.getWorkers(), buffersVector, layout.getHostBytes(),
                          getFileBytes(layout));
}

FailureOr<Offset<fb::Program>> ManifestBuilder::addProgram(ProgramOp program) {
  auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
  auto commands = addBlock(program.getBody().front(), layout);
  if (failed(commands))
    return failure();
  auto list = builder.CreateVector(*commands);
  return fb::CreateProgram(builder, addString(program.getSymName()),
                           indices.at(layout.getSymNameAttr()), list);
}

FailureOr<std::vector<Offset<fb::Command>>> ManifestBuilder::addBlock(Block &block,
                                                                      LayoutOp layout) {
  std::vector<Offset<fb::Command>> commands;
  for (Operation &op : block) {
    FailureOr<Offset<fb::Command>> command = addCommand(op, layout);
    if (failed(command))
      return failure();
    commands.push_back(*command);
  }
  return commands;
}

FailureOr<Offset<fb::Collective>> ManifestBuilder::addCollective(CollectiveOp op, LayoutOp layout) {
  FailureOr<fb::DType> dtype = getDType(op.getDtype(), op.getLoc());
  if (failed(dtype))
    return failure();
  std::vector<uint32_t> axes; // indices of the axes, in the order of the mesh
  for (auto [index, axis] : llvm::enumerate(mesh.getAxes().getAsRange<AxisAttr>()))
    if (llvm::is_contained(op.getAxes().getAsValueRange<StringAttr>(), axis.getName()))
      axes.push_back(index);
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>())
    if (axis.contains(':') || axis == contextAxis) // this is the only element of the list
      axes.push_back(mesh.getAxes().size() + getNeighbours(axis));
  auto axesVector = builder.CreateVector(axes);
  fb::Slice source = getSlice(layout, op.getSource()), target = getSlice(layout, op.getTarget());
  auto reduction = static_cast<fb::Reduction>(op.getReduction().value_or(ReductionKind::sum));
  int32_t unit = op.getUnitAttr() ? indices.at(op.getUnitAttr().getAttr()) : -1;
  return fb::CreateCollective(builder, static_cast<fb::CollectiveKind>(op.getKind()), axesVector,
                              &source, &target, *dtype, reduction, op.getCount(), op.getId(),
                              op.getChannel(), unit, op.getRoot());
}

/// An fsdp.initialise writes one state of the layout. Returns the index of this state.
static unsigned findState(LayoutOp layout, InitialiseOp op) {
  unsigned index = 0;
  for (auto state : layout.getOps<StateSlotOp>()) {
    if (state.getUnitAttr() == op.getUnitAttr() && state.getRole() == op.getRole())
      break;
    ++index;
  }
  return index;
}

FailureOr<Offset<fb::Command>> ManifestBuilder::addCommand(Operation &op, LayoutOp layout) {
  Offset<void> body;
  fb::Body kind = fb::Body::NONE;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    std::vector<fb::Slice> bindings;
    for (auto slice : launch.getBindings().getAsRange<SliceAttr>())
      bindings.push_back(getSlice(layout, slice));
    kind = fb::Body::Launch;
    body = fb::CreateLaunch(builder, indices.at(launch.getKernelAttr().getAttr()),
                            builder.CreateVectorOfStructs(bindings))
               .Union();
  } else if (auto collective = dyn_cast<CollectiveOp>(op)) {
    FailureOr<Offset<fb::Collective>> added = addCollective(collective, layout);
    if (failed(added))
      return failure();
    kind = fb::Body::Collective;
    body = added->Union();
  } else if (auto wait = dyn_cast<WaitOp>(op)) {
    kind = fb::Body::Wait;
    body = fb::CreateWait(builder, wait.getId()).Union();
  } else if (auto copy = dyn_cast<CopyOp>(op)) {
    fb::Slice source = getSlice(layout, copy.getSource()),
              target = getSlice(layout, copy.getTarget());
    kind = fb::Body::Copy;
    body =
        fb::CreateCopy(builder, &source, &target, getInFlightId(copy).value_or(0), getChannel(copy))
            .Union();
  } else if (auto fill = dyn_cast<FillOp>(op)) {
    fb::Slice target = getSlice(layout, fill.getTarget());
    kind = fb::Body::Fill;
    body = fb::CreateFill(builder, &target).Union();
  } else if (auto initialise = dyn_cast<InitialiseOp>(op)) {
    unsigned param = firstParams.at(initialise.getUnitAttr().getAttr()) + initialise.getParam();
    kind = fb::Body::Initialise;
    body = fb::CreateInitialise(builder, findState(layout, initialise), param).Union();
  } else {
    auto loop = cast<LoopOp>(op);
    auto commands = addBlock(loop.getBody().front(), layout);
    if (failed(commands))
      return failure();
    kind = fb::Body::Loop;
    body = fb::CreateLoop(builder, loop.getCount(), builder.CreateVector(*commands)).Union();
  }
  auto label = op.getAttrOfType<StringAttr>("label");
  Offset<flatbuffers::String> text = label ? addString(label) : Offset<flatbuffers::String>();
  return fb::CreateCommand(builder, kind, body, text);
}

uint64_t ManifestBuilder::countTokens() {
  uint64_t tokens = 0;
  for (auto layout : module.getOps<LayoutOp>()) {
    if (indices.at(layout.getSymNameAttr()) != 0)
      continue;
    for (auto input : layout.getOps<InputSlotOp>())
      if (tokens == 0 || input.getName() == "tokens")
        tokens = input.getTensorType().getNumElements();
  }
  return tokens;
}

/// Adds each option of the plan whose value differs from the default.
Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> ManifestBuilder::addOptions() {
  std::vector<Offset<flatbuffers::String>> given;
  for (const OptionRow &row : getOptionRows()) {
    std::string value = row.printOne(options);
    if (row.isPlan && row.stage != Stage::package && row.stage != Stage::driver &&
        value != row.printOne(StepOptions()))
      given.push_back(addString(row.name.str() + "=" + value));
  }
  return builder.CreateVector(given);
}

FailureOr<std::vector<char>> ManifestBuilder::build() {
  if (failed(number()))
    return failure();
  std::vector<Offset<fb::Axis>> axes = addMesh();
  if (failed(addUnits()) || failed(addKernels()))
    return failure();
  std::vector<Offset<fb::Layout>> layouts;
  for (auto layout : module.getOps<LayoutOp>()) {
    FailureOr<Offset<fb::Layout>> added = addLayout(layout);
    if (failed(added))
      return failure();
    layouts.push_back(*added);
  }
  std::vector<Offset<fb::Program>> programs;
  for (auto program : module.getOps<ProgramOp>()) {
    FailureOr<Offset<fb::Program>> added = addProgram(program);
    if (failed(added))
      return failure();
    programs.push_back(*added);
  }
  const UpdateOptions &update = options.update;
  auto optimizer =
      fb::CreateOptimizer(builder, addString(printValue(update.optimizer).front()),
                          options.package.learningRate, update.beta1, update.beta2, update.eps,
                          update.weightDecay, update.momentum, update.clipGradNorm);
  std::vector<Offset<flatbuffers::String>> isa;
  for (const std::string &feature : image.isa)
    isa.push_back(addString(feature));
  auto seed = module->getAttrOfType<IntegerAttr>(FSDPDialect::seedAttr);
  auto constants = module->getAttrOfType<ArrayAttr>(constantsAttr);
  auto compiler = addString(options.driver.compiler),
       source = addString(
           fsdpcommon::shortText(llvm::sys::path::filename(options.driver.input), StringRef::npos)),
       target = addString(options.codegen.target);
  auto axesVector = builder.CreateVector(axes);
  auto unitsVector = builder.CreateVector(units);
  auto paramsVector = builder.CreateVector(params);
  auto layoutsVector = builder.CreateVector(layouts);
  auto programsVector = builder.CreateVector(programs);
  auto kernelsVector = builder.CreateVector(kernels);
  auto isaVector = builder.CreateVector(isa);
  auto neighboursVector = builder.CreateVector(addNeighbours());
  Offset<fb::Gpu> gpu;
  if (gpuCode.isPresent())
    gpu = fb::CreateGpu(builder, addString(gpuCode.chip), gpuCode.ptxBytes, gpuCode.cubinOffset,
                        gpuCode.cubinBytes);
  auto lookups = addLookups();
  if (failed(lookups))
    return failure();
  fb::FinishManifestBuffer(
      builder,
      fb::CreateManifest(
          builder, compiler, source, target, axesVector, unitsVector, paramsVector, layoutsVector,
          programsVector, kernelsVector, optimizer, isaVector, countTokens(),
          options.codegen.threadsPerRank, seed ? seed.getValue().getZExtValue() : 0,
          neighboursVector, gpu, *lookups, constants ? constants.size() : 0, addOptions(),
          module->hasAttr(dynamicScaleAttr) ? fb::LossScale::dynamic : fb::LossScale::constant,
          mesh.getAxisSize(contextAxis)));
  const char *data = reinterpret_cast<const char *>(builder.GetBufferPointer());
  return std::vector<char>(data, data + builder.GetSize());
}

FailureOr<std::vector<char>> fsdp::buildManifest(ModuleOp module, const CompiledKernels &kernels,
                                                 const Values &values, const StepOptions &options) {
  return ManifestBuilder(module, kernels, values, options).build();
}
