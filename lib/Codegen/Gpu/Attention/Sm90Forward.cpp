//===- Sm90Forward.cpp - Attention with wgmma -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each multiprocessor runs one block of threads, which processes several blocks of queries one
// after another. One warpgroup copies tiles (Sm90Producer.cpp). Two or three other warpgroups
// compute 64 rows each (Sm90Consumer.cpp).
//
// Sm90Orders.cpp chooses the order of the blocks of queries. Sm90Roles.cpp defines the order of the
// blocks of keys.
//
//===----------------------------------------------------------------------===//

#include "Sm90Orders.h"
#include "Sm90Roles.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static void initBarriers(Sm90Builder &b, const Sm90Problem &problem) {
  int64_t warps = problem.config.groups * Sm90Builder::groupThreads / 32;
  b.when(b.isEqual(b.thread(), 0), [&] {
    auto init = [&](int64_t which, int64_t count) {
      b.initBarrier(b.sharedAt(problem.places.barriers + which * Sm90Builder::barrierBytes), count);
    };
    init(Sm90Places::QueriesFull, 1);
    init(Sm90Places::QueriesEmpty, warps);
    for (int64_t i = 0; i < Sm90Places::stages; ++i) {
      init(Sm90Places::KeysFull + i, 1);
      init(Sm90Places::KeysEmpty + i, warps);
      init(Sm90Places::ValuesFull + i, 1);
      init(Sm90Places::ValuesEmpty + i, warps);
    }
    b.fenceBarriers();
  });
  b.barrier();
}

static void emitRoles(Sm90Builder &b, const Sm90Problem &problem) {
  int64_t groups = problem.config.groups;
  Value group = b.warpgroup();
  initBarriers(b, problem);
  b.when(
      b.isEqual(group, 0),
      [&] {
        giveRegisters(b, groups);
        b.when(b.isEqual(b.uniform(b.warp()), 0),
               [&] { b.when(b.isElected(), [&] { emitProducer(b, problem); }); });
      },
      [&] {
        takeRegisters(b, groups);
        emitConsumer(b, problem, b.sub(group, b.i32(1)));
      });
}

LogicalResult attention::lowerSm90Forward(func::FuncOp kernel, AttentionOp op,
                                          const Sm90Config &config, const GpuTarget &target,
                                          ModuleOp entries, GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  FailureOr<QueryOrder> order = chooseSm90Order(op, config, shape, target);
  if (failed(order))
    return failure();
  Sm90Problem problem{config,
                      shape,
                      op,
                      kernel,
                      *order,
                      false,
                      AttentionTiles(op).getKeyTiles(config.blockCols),
                      Sm90Places(config, shape)};
  GpuLaunch launch{
      info.info.name, problem.order.blocks, config.threads(), problem.places.bytes(), {}};
  launch.copyThreads = Sm90Builder::groupThreads;
  launch.cost = costOfForward(op, config, shape, problem.order, target);
  launch.maps = {mapOfHeads(kernel, op.getQ(), config.blockRows()),
                 mapOfHeads(kernel, op.getK(), config.blockCols),
                 mapOfHeads(kernel, op.getV(), config.blockCols)};
  if (std::optional<GpuTensorMap> output = mapOfResult(kernel, op.getO(), 16)) {
    problem.hasOutput = true;
    launch.maps.push_back(*output);
  }
  Sm90Builder b(op.getLoc(), op.getContext(), config.threads());
  b.enter(entries, kernel, launch.symbol, 1, /*scratch=*/false, launch.maps.size());
  emitRoles(b, problem);
  b.leave();
  info.launches.push_back(std::move(launch));
  return success();
}
