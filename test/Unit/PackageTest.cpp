//===- PackageTest.cpp - The bytes of an artifact ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Package/Package.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Plan/Passes.h"
#include "fsdprt/artifact_generated.h"
#include "fsdprt/artifact_header.h"
#include "fsdprt/sha256.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace mlir;
using namespace mlir::fsdp;
namespace fb = fsdprt::fb;

static const char *source = R"mlir(
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<4xf32>, 16, trainable = true, decay = false, init = <constant, 1.0, 0.0>>]
func.func private @k_1(%a: tensor<4x4xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel} {
  %0 = tensor.collapse_shape %a [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  return %0 : tensor<16xf32>
}
fsdp.layout @main arena 640 block @block rank @rank {
  fsdp.buffer @state.0 "u parameter" parameters 64 at 0
  fsdp.state_slot @u parameter @state.0 : tensor<16xf32>
  fsdp.buffer @block "step block" control 64 at 64
  fsdp.buffer @rank "rank block" control 32 at 128
  fsdp.buffer @input.0 "tokens" inputs 256 at 192
  fsdp.input_slot "tokens" @input.0 : tensor<2x16xi64> limit 7 micro_batches 2
  fsdp.buffer @step.0 "gathered u" gathered 128 at 448 in @step from 0 to 3
  fsdp.buffer @step.1 "activation" activations 64 at 576 in @step from 2 to 3
}
fsdp.program @step layout @main mesh @mesh {
  fsdp.collective 5 all_gather @state.0[0, 64] -> @step.0[0, 128] of 16 x f32 over ["shard"] unit @u "u"
  fsdp.loop 2 {
    fsdp.launch @k_1(@step.0[0, 64], @step.1[0, 64]) "map w"
    fsdp.copy @input.0[0, 64] step 128 -> @step.1[0, 64]
  }
}
fsdp.program @init layout @main {
  fsdp.fill @state.0[0, 64] "u parameter"
  fsdp.initialise @u parameter 1 "b"
}
)mlir";

namespace {

class PackageTest : public ::testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<FSDPDialect, func::FuncDialect, tensor::TensorDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic &diag) { errors += diag.str() + "\n"; });
    module = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(module) << errors;
    image.elf.assign(5000, 'x');
    image.isa = {"avx2", "fma"};
    KernelInfo kernel;
    kernel.name = "k_1";
    kernel.phases.push_back({"k_1_a", 16, 4});
    kernel.bindingBytes = {64, 64};
    kernel.writes = {false, true};
    kernel.sharedBytes = 100;
    kernel.workerBytes = 64;
    image.kernels.push_back(kernel);
    options.update.optimizer = OptimizerKind::Sgd;
    options.package.learningRate = 0.25;
    options.codegen.threadsPerRank = 3;
    setKernelScratch(*module, image.kernels);
    PassManager pm(&context);
    pm.addPass(configure(createAddWorkspacePass(), options));
    ASSERT_TRUE(succeeded(pm.run(*module))) << errors;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsdp-package", directory));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  /// Returns all bytes of the artifact.
  FailureOr<std::vector<char>> build() {
    FailureOr<ArtifactPieces> pieces = buildArtifact(*module, kernels, options);
    if (failed(pieces))
      return failure();
    for (ArrayRef<char> piece : pieces->values)
      llvm::append_range(pieces->head, piece);
    return pieces->head;
  }
  std::string at(StringRef name) { return (directory + "/" + name).str(); }
  unsigned countFiles() {
    std::error_code error;
    unsigned count = 0;
    for (llvm::sys::fs::directory_iterator i(directory, error), end; i != end && !error;
         i.increment(error))
      ++count;
    return count;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  CompiledKernels kernels;
  Image &image = kernels.image;
  StepOptions options;
  std::string errors;
  llvm::SmallString<64> directory;
};

} // namespace

TEST_F(PackageTest, HeaderNamesTheParts) {
  FailureOr<std::vector<char>> file = build();
  ASSERT_TRUE(succeeded(file)) << errors;
  fsdprt_artifact_header header;
  std::memcpy(&header, file->data(), sizeof(header));
  EXPECT_EQ(std::memcmp(header.magic, FSDPRT_ARTIFACT_MAGIC, 8), 0);
  EXPECT_EQ(header.version, FSDPRT_ARTIFACT_PLAIN_VERSION); // older runtimes can read it
  EXPECT_EQ(header.values_size, 0u);
  EXPECT_EQ(header.file_size, file->size());
  EXPECT_EQ(header.manifest_offset, 128u);
  EXPECT_EQ(header.image_offset % 4096, 0u);
  EXPECT_GE(header.image_offset, header.manifest_offset + header.manifest_size);
  EXPECT_EQ(header.image_size, 5000u);
  EXPECT_EQ((*file)[header.image_offset], 'x');
  uint8_t digest[32];
  fsdprt_sha256_artifact(file->data(), file->size(), digest);
  EXPECT_EQ(std::memcmp(header.sha256, digest, 32), 0);
}

TEST_F(PackageTest, ManifestIsTheModule) {
  FailureOr<std::vector<char>> file = build();
  ASSERT_TRUE(succeeded(file)) << errors;
  const auto *bytes = reinterpret_cast<const uint8_t *>(file->data()) + 128;
  flatbuffers::Verifier verifier(bytes, file->size() - 128);
  ASSERT_TRUE(fb::VerifyManifestBuffer(verifier));
  const fb::Manifest &manifest = *fb::GetManifest(bytes);
  EXPECT_EQ(manifest.mesh()->size(), 2u);
  EXPECT_EQ(manifest.units()->Get(0)->shard_size(), 16u);
  EXPECT_EQ(manifest.params()->Get(1)->name()->str(), "b");
  EXPECT_EQ(manifest.params()->Get(0)->b(), 0.5);
  EXPECT_EQ(manifest.optimizer()->lr(), 0.25);
  EXPECT_EQ(manifest.tokens_per_rank(), 32u);
  EXPECT_EQ(manifest.threads_per_rank(), 3u);

  const fb::Layout &layout = *manifest.layouts()->Get(0);
  EXPECT_EQ(layout.block()->offset(), 64u);
  EXPECT_EQ(layout.rank()->bytes(), 32u);
  EXPECT_EQ(layout.states()->Get(0)->split(), fb::Split::shard);
  EXPECT_EQ(layout.inputs()->Get(0)->micro_batches(), 2u);
  EXPECT_EQ(layout.inputs()->Get(0)->limit(), 7u);
  // 100 shared bytes take two cache lines; the workspace begins on a page.
  EXPECT_EQ(layout.shared_bytes(), 128u);
  EXPECT_EQ(layout.worker_bytes(), 64u);
  EXPECT_EQ(layout.workers(), 3u);
  EXPECT_EQ(layout.workspace()->offset(), 4096u);
  EXPECT_EQ(layout.arena_bytes(), 4096u + 128 + 3 * 64);

  const fb::Program &step = *manifest.programs()->Get(0);
  EXPECT_EQ(step.name()->str(), "step");
  const fb::Collective &gather = *step.commands()->Get(0)->body_as_Collective();
  EXPECT_EQ(gather.axes()->Get(0), 1u);
  EXPECT_EQ(gather.source()->offset(), 0u);
  EXPECT_EQ(gather.target()->offset(), 448u);
  EXPECT_EQ(gather.count(), 16u);
  EXPECT_EQ(gather.id(), 5u);
  EXPECT_EQ(gather.unit(), 0);
  const fb::Loop &loop = *step.commands()->Get(1)->body_as_Loop();
  EXPECT_EQ(loop.count(), 2u);
  EXPECT_EQ(loop.body()->Get(0)->label()->str(), "map w");
  EXPECT_EQ(loop.body()->Get(0)->body_as_Launch()->bindings()->Get(1)->offset(), 576u);
  EXPECT_EQ(loop.body()->Get(1)->body_as_Copy()->source()->stride(), 128u);
  const fb::Program &init = *manifest.programs()->Get(1);
  EXPECT_EQ(init.commands()->Get(1)->body_as_Initialise()->param(), 1u);
}

TEST_F(PackageTest, ValuesAreStoredOnce) {
  Builder b(&context);
  float numbers[16], less[4] = {1, 2, 3, 4};
  for (int i = 0; i < 16; ++i)
    numbers[i] = i;
  auto square = RankedTensorType::get({4, 4}, b.getF32Type());
  auto set = [&](Attribute w, Attribute other) {
    (*module)->setAttr(FSDPDialect::valuesAttr,
                       b.getDictionaryAttr({b.getNamedAttr("w", w), b.getNamedAttr("b", other)}));
  };
  auto values = [&](const fsdprt_artifact_header &header, const std::vector<char> &file,
                    unsigned i) {
    return fb::GetManifest(file.data() + header.manifest_offset)->params()->Get(i)->value();
  };
  fsdprt_artifact_header header;
  set(DenseElementsAttr::get(square, ArrayRef<float>(numbers)),
      DenseElementsAttr::get(RankedTensorType::get({4}, b.getF32Type()), ArrayRef<float>(less)));
  FailureOr<std::vector<char>> file = build();
  ASSERT_TRUE(succeeded(file)) << errors;
  std::memcpy(&header, file->data(), sizeof(header));
  EXPECT_EQ(header.version, FSDPRT_ARTIFACT_VALUES_VERSION);
  EXPECT_EQ(header.file_size, file->size());
  EXPECT_EQ(header.values_offset % 4096, 0u);
  EXPECT_GE(header.values_offset, header.image_offset + header.image_size);
  EXPECT_EQ(header.values_size, 64u + 16); // w is 64 bytes
  EXPECT_EQ(values(header, *file, 0)->offset(), 0u);
  EXPECT_EQ(values(header, *file, 1)->offset(), 64u);
  EXPECT_EQ(std::memcmp(file->data() + header.values_offset + 64, less, sizeof(less)), 0);
  uint8_t digest[32];
  fsdprt_sha256_artifact(file->data(), file->size(), digest);
  EXPECT_EQ(std::memcmp(header.sha256, digest, 32), 0);
  // A splat is stored as one element; equal bytes are stored once, also across types.
  APFloat half(APFloat::BFloat(), "0.5");
  set(DenseElementsAttr::get(RankedTensorType::get({4, 4}, b.getBF16Type()), half),
      DenseElementsAttr::get(RankedTensorType::get({4}, b.getBF16Type()), half));
  file = build();
  ASSERT_TRUE(succeeded(file)) << errors;
  std::memcpy(&header, file->data(), sizeof(header));
  EXPECT_EQ(header.values_size, 2u);
  EXPECT_EQ(values(header, *file, 1)->offset(), 0u);
  EXPECT_EQ(values(header, *file, 1)->dtype(), fb::DType::bf16);
  // Values of another shape, and an attribute that is not of floats.
  set(DenseElementsAttr::get(RankedTensorType::get({2, 8}, b.getF32Type()), 1.0f), b.getUnitAttr());
  EXPECT_TRUE(failed(build()));
  EXPECT_NE(
      errors.find(
          "parameter 'w': expected values in f64, f32, f16 or bf16 for 'tensor<4x4xf32>', found"),
      std::string::npos)
      << errors;
}

/// An older reader would give every rank of the axis its own samples, and whole parameters.
TEST_F(PackageTest, OlderReadersRefuseSlices) {
  Builder b(&context);
  auto mesh = module->lookupSymbol<MeshOp>("mesh");
  auto axes = llvm::to_vector(mesh.getAxes());
  axes.push_back(AxisAttr::get(&context, tensorAxis, {2}));
  mesh.setAxesAttr(b.getArrayAttr(axes));
  module->lookupSymbol<UnitOp>("u")->setAttr(
      tensorSplitAttr,
      b.getDictionaryAttr(b.getNamedAttr("w", TensorSplit{0, {6, 2}}.toAttribute(&context))));
  FailureOr<std::vector<char>> file = build();
  ASSERT_TRUE(succeeded(file)) << errors;
  fsdprt_artifact_header header;
  std::memcpy(&header, file->data(), sizeof(header));
  EXPECT_EQ(header.version, 4u);
  const fb::Param &w = *fb::GetManifest(file->data() + header.manifest_offset)->params()->Get(0);
  EXPECT_EQ(w.shape()->Get(0), 8u);
  EXPECT_EQ(w.split()->dim(), 0u);
  EXPECT_EQ(w.split()->blocks()->Get(0), 6u);
}

TEST_F(PackageTest, SameInputSameBytes) {
  ASSERT_TRUE(succeeded(packArtifact(*module, kernels, options, at("a.fsdp"))));
  ASSERT_TRUE(succeeded(packArtifact(*module, kernels, options, at("b.fsdp"))));
  auto a = llvm::MemoryBuffer::getFile(at("a.fsdp")), b = llvm::MemoryBuffer::getFile(at("b.fsdp"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->getBuffer(), (*b)->getBuffer());
  EXPECT_EQ(countFiles(), 2u);
}

TEST_F(PackageTest, MissingCodeIsAnError) {
  image.kernels.clear();
  EXPECT_TRUE(failed(packArtifact(*module, kernels, options, at("a.fsdp"))));
  EXPECT_NE(
      errors.find("expected the image to hold code for this kernel with 2 bindings, found none"),
      std::string::npos)
      << errors;
  EXPECT_EQ(countFiles(), 0u);
}

TEST_F(PackageTest, FullDiskIsAnError) {
  EXPECT_TRUE(failed(packArtifact(*module, kernels, options, "/dev/full")));
  EXPECT_NE(errors.find("cannot write '/dev/full': No space left on device"), std::string::npos)
      << errors;
}

TEST_F(PackageTest, NothingIsLeftBehind) {
  EXPECT_TRUE(failed(packArtifact(*module, kernels, options, at("no/such/a.fsdp"))));
  EXPECT_TRUE(failed(packArtifact(*module, kernels, options, directory)));
  EXPECT_NE(errors.find("it is a directory"), std::string::npos) << errors;
  EXPECT_EQ(countFiles(), 0u);
}

TEST_F(PackageTest, ReplacesAFile) {
  ASSERT_TRUE(succeeded(writeFile(at("a"), {'o', 'l', 'd'}, UnknownLoc::get(&context))));
  ASSERT_TRUE(succeeded(writeFile(at("a"), {'n', 'e', 'w'}, UnknownLoc::get(&context))));
  auto file = llvm::MemoryBuffer::getFile(at("a"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->getBuffer(), "new");
  EXPECT_EQ(countFiles(), 1u);
}
