//===- HloContractions.cpp - Products and reductions of StableHLO -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers ops with reduction loops to linalg.generic:
//
// - dot_general: loops over dimensions of the result (batch, left, right) and contracted dimensions
// - convolution: loops over result dimensions, window dimensions and input features. The input is
//   padded first, and groups of features become a separate dimension.
// - reduce, reduce_window: loops over result dimensions, and over reduced or window dimensions
//
// A sum of products begins with zero, and has the type of the result. A reduction begins with its
// init value.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "fsdp/IR/Reshape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr auto parallel = utils::IteratorType::parallel;
static constexpr auto reduction = utils::IteratorType::reduction;

static Value buildZeros(OpBuilder &b, Location loc, RankedTensorType type) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

/// Converts a scalar to the wider float or integer type `to`.
static Value widen(OpBuilder &b, Location loc, Value value, Type to) {
  if (value.getType() == to)
    return value;
  if (isa<FloatType>(to))
    return arith::ExtFOp::create(b, loc, to, value);
  return arith::ExtSIOp::create(b, loc, to, value);
}

/// Builds a generic that computes out[..] += lhs[..] * rhs[..], where `out` is initially zero.
static Value buildProduct(OpBuilder &b, Location loc, RankedTensorType type, Value lhs, Value rhs,
                          ArrayRef<AffineMap> maps, ArrayRef<utils::IteratorType> loops) {
  Type element = type.getElementType();
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange(type), ValueRange{lhs, rhs}, buildZeros(b, loc, type), maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value l = widen(b, loc, args[0], element), r = widen(b, loc, args[1], element), sum;
        if (isa<FloatType>(element))
          sum = arith::AddFOp::create(b, loc, args[2], arith::MulFOp::create(b, loc, l, r));
        else
          sum = arith::AddIOp::create(b, loc, args[2], arith::MulIOp::create(b, loc, l, r));
        linalg::YieldOp::create(b, loc, sum);
      });
  return generic.getResult(0);
}

/// Verifies that the result's type can hold sums of products of the operands' elements.
static LogicalResult checkElements(Operation *op) {
  Type lhs = tensorOf(op->getOperand(0)).getElementType(),
       rhs = tensorOf(op->getOperand(1)).getElementType(),
       to = tensorOf(op->getResult(0)).getElementType();
  bool sameKind = isa<FloatType>(lhs) == isa<FloatType>(to) && lhs == rhs;
  unsigned from = lhs.getIntOrFloatBitWidth(), into = to.getIntOrFloatBitWidth();
  if (sameKind && !lhs.isInteger(1) && (lhs == to || from < into))
    return success();
  return op->emitError("expected operands of one type and a result of this or a wider type, found ")
         << lhs << ", " << rhs << " and " << to;
}

HloResult fsdp::lowerDotGeneral(OpBuilder &b, Operation *op) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(op->getAttr("dot_dimension_numbers"));
  if (op->getNumOperands() != 2 || (!dict && op->hasAttr("dot_dimension_numbers")))
    return op->emitError("expected two operands and 'dot_dimension_numbers'");
  if (op->hasAttr("algorithm"))
    return op->emitError("'") << op->getName()
                              << "' with the attribute 'algorithm' is not supported; remove "
                                 "DotAlgorithm from the model";
  auto get = [&](StringRef name) {
    return dict ? getInts(op, name, {}, dict) : SmallVector<int64_t>();
  };
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  RankedTensorType left = tensorOf(lhs), right = tensorOf(rhs), to = tensorOf(op->getResult(0));
  SmallVector<int64_t> batch[2] = {get("lhs_batching_dimensions"), get("rhs_batching_dimensions")},
                       sums[2] = {get("lhs_contracting_dimensions"),
                                  get("rhs_contracting_dimensions")};
  SmallVector<int64_t> shape;
  RankedTensorType types[2] = {left, right};
  for (unsigned side : {0, 1}) {
    SmallVector<int64_t> used(batch[side]);
    llvm::append_range(used, sums[side]);
    if (failed(
            checkDims(op, side ? "rhs dimensions" : "lhs dimensions", used, types[side].getRank())))
      return failure();
  }
  if (failed(checkCount(op, "rhs_batching_dimensions", batch[1].size(), batch[0].size())) ||
      failed(checkCount(op, "rhs_contracting_dimensions", sums[1].size(), sums[0].size())) ||
      failed(checkElements(op)))
    return failure();
  for (auto &pairs : {std::pair(&batch[0], &batch[1]), std::pair(&sums[0], &sums[1])})
    for (auto [l, r] : llvm::zip(*pairs.first, *pairs.second))
      if (left.getDimSize(l) != right.getDimSize(r))
        return op->emitError("expected dimension ")
               << l << " of the left and " << r
               << " of the right operand to have the same size, found " << left.getDimSize(l)
               << " and " << right.getDimSize(r);
  // Create one loop per dimension. `exprs` contains one list per operand. Element i of the list is
  // the loop of dimension i of the operand.
  SmallVector<AffineExpr> exprs[2];
  unsigned loop = 0;
  for (unsigned side : {0, 1})
    exprs[side].resize(types[side].getRank());
  for (auto [l, r] : llvm::zip(batch[0], batch[1])) {
    exprs[0][l] = exprs[1][r] = b.getAffineDimExpr(loop++);
    shape.push_back(left.getDimSize(l));
  }
  for (unsigned side : {0, 1})
    for (int64_t dim = 0; dim < types[side].getRank(); ++dim)
      if (!exprs[side][dim] && !llvm::is_contained(sums[side], dim)) {
        exprs[side][dim] = b.getAffineDimExpr(loop++);
        shape.push_back(types[side].getDimSize(dim));
      }
  SmallVector<utils::IteratorType> loops(loop, parallel);
  for (auto [l, r] : llvm::zip(sums[0], sums[1])) {
    exprs[0][l] = exprs[1][r] = b.getAffineDimExpr(loop++);
    loops.push_back(reduction);
  }
  if (failed(checkShape(op, shape)))
    return failure();
  MLIRContext *context = op->getContext();
  SmallVector<AffineMap> maps{AffineMap::get(loop, 0, exprs[0], context),
                              AffineMap::get(loop, 0, exprs[1], context),
                              AffineMap::getMultiDimIdentityMap(shape.size(), context)};
  maps[2] = AffineMap::get(loop, 0, maps[2].getResults(), context);
  return SmallVector<Value>{buildProduct(b, op->getLoc(), to, lhs, rhs, maps, loops)};
}

namespace {
/// The dimension numbers and the windows of a convolution. Each list has one entry per spatial
/// dimension.
struct Convolution {
  struct Side {
    /// Numbers of the batch and feature dimensions, or of the input and output feature dimensions.
    int64_t first, second;
    SmallVector<int64_t> spatial;
  };
  Side input, kernel, output;
  SmallVector<int64_t> strides, low, high, dilation, reversal;
  int64_t groups = 1;
};
} // namespace

/// Reads the attributes of a convolution, and verifies them.
static FailureOr<Convolution> readConvolution(Operation *op) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(op->getAttr("dimension_numbers"));
  if (!dict || op->getNumOperands() != 2)
    return op->emitError("expected two operands and the attribute 'dimension_numbers'");
  RankedTensorType types[] = {tensorOf(op->getOperand(0)), tensorOf(op->getOperand(1)),
                              tensorOf(op->getResult(0))};
  Convolution c;
  int64_t rank = types[0].getRank();
  auto read = [&](StringRef prefix, StringRef first, StringRef second, RankedTensorType type,
                  Convolution::Side &side) {
    auto get = [&](StringRef name) { return getInts(op, (prefix + name).str(), {}, dict); };
    SmallVector<int64_t> all = get(first);
    llvm::append_range(all, get(second));
    side.spatial = get("_spatial_dimensions");
    llvm::append_range(all, side.spatial);
    if (type.getRank() != rank || failed(checkCount(op, prefix, all.size(), rank)) || rank < 2 ||
        failed(checkDims(op, prefix, all, rank)))
      return failure();
    side.first = all[0];
    side.second = all[1];
    return success();
  };
  if (failed(read("input", "_batch_dimension", "_feature_dimension", types[0], c.input)) ||
      failed(read("kernel", "_input_feature_dimension", "_output_feature_dimension", types[1],
                  c.kernel)) ||
      failed(read("output", "_batch_dimension", "_feature_dimension", types[2], c.output)))
    return op->emitError("expected operands and a result of one rank, and all their dimensions");
  size_t count = c.input.spatial.size();
  SmallVector<int64_t> ones(count, 1), zeros(count, 0);
  c.strides = getInts(op, "window_strides", ones);
  c.dilation = getInts(op, "rhs_dilation", ones);
  c.reversal = getInts(op, "window_reversal", zeros);
  SmallVector<int64_t> padding = getInts(op, "padding", SmallVector<int64_t>(2 * count, 0));
  SmallVector<int64_t> inputDilation = getInts(op, "lhs_dilation", ones);
  SmallVector<int64_t> groups = getInts(op, "feature_group_count", {1});
  if (getInts(op, "batch_group_count", {1}) != ArrayRef<int64_t>{1})
    return op->emitError("'") << op->getName()
                              << "' with 'batch_group_count' above 1 is not supported; write a "
                                 "convolution for each group";
  if (inputDilation != ones)
    return op->emitError("'") << op->getName()
                              << "' with a dilated input (a transposed convolution) is not "
                                 "supported; write it as an upsampling and a convolution";
  if (failed(checkCount(op, "window_strides", c.strides.size(), count)) ||
      failed(checkCount(op, "rhs_dilation", c.dilation.size(), count)) ||
      failed(checkCount(op, "window_reversal", c.reversal.size(), count)) ||
      failed(checkCount(op, "padding", padding.size(), 2 * count)) ||
      failed(checkCount(op, "feature_group_count", groups.size(), 1)) || failed(checkElements(op)))
    return failure();
  c.groups = groups[0];
  for (size_t i = 0; i < count; ++i) {
    c.low.push_back(padding[2 * i]);
    c.high.push_back(padding[2 * i + 1]);
    constexpr int64_t most = 1 << 20;
    if (c.strides[i] < 1 || c.dilation[i] < 1 || c.low[i] < 0 || c.high[i] < 0 ||
        std::max({c.strides[i], c.dilation[i], c.low[i], c.high[i]}) > most)
      return op->emitError(
          "expected strides and dilations of at least 1 and padding of at least 0");
  }
  auto size = [&](unsigned which, int64_t dim) { return types[which].getDimSize(dim); };
  int64_t features = size(0, c.input.second);
  if (c.groups < 1 || features % c.groups || size(1, c.kernel.second) % c.groups ||
      size(1, c.kernel.first) * c.groups != features)
    return op->emitError("expected features of the input (")
           << features << ") and of the kernel (" << size(1, c.kernel.first) << ") that agree with "
           << c.groups << " groups";
  SmallVector<int64_t> shape(rank);
  shape[c.output.first] = size(0, c.input.first);
  shape[c.output.second] = size(1, c.kernel.second);
  for (size_t i = 0; i < count; ++i) {
    int64_t window = (size(1, c.kernel.spatial[i]) - 1) * c.dilation[i] + 1;
    int64_t padded = size(0, c.input.spatial[i]) + c.low[i] + c.high[i];
    shape[c.output.spatial[i]] = padded < window ? 0 : (padded - window) / c.strides[i] + 1;
  }
  if (failed(checkShape(op, shape)))
    return failure();
  return c;
}

/// Pads dimensions of `x` with `scalar`.
static Value buildPadded(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> dims,
                         ArrayRef<int64_t> low, ArrayRef<int64_t> high, Value scalar) {
  RankedTensorType type = tensorOf(x);
  SmallVector<int64_t> before(type.getRank(), 0), after(type.getRank(), 0), shape(type.getShape());
  for (auto [dim, l, h] : llvm::zip(dims, low, high)) {
    before[dim] = l;
    after[dim] = h;
    shape[dim] += l + h;
  }
  if (ArrayRef(shape) == type.getShape())
    return x;
  return tensor::PadOp::create(b, loc, type.clone(shape), x,
                               getAsIndexOpFoldResult(b.getContext(), before),
                               getAsIndexOpFoldResult(b.getContext(), after), scalar);
}

/// Views dimension `dim` as two dimensions. The first has size `groups` and counts the groups.
static Value splitGroups(OpBuilder &b, Location loc, Value x, int64_t dim, int64_t groups) {
  SmallVector<int64_t> shape(tensorOf(x).getShape());
  shape[dim] /= groups;
  shape.insert(shape.begin() + dim, groups);
  return buildReshape(b, loc, x, shape);
}

HloResult fsdp::lowerConvolution(OpBuilder &b, Operation *op) {
  FailureOr<Convolution> read = readConvolution(op);
  if (failed(read))
    return failure();
  Convolution &c = *read;
  Location loc = op->getLoc();
  RankedTensorType to = tensorOf(op->getResult(0));
  Value x = op->getOperand(0), kernel = op->getOperand(1);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(tensorOf(x).getElementType()));
  x = buildPadded(b, loc, x, c.input.spatial, c.low, c.high, zero);
  size_t count = c.input.spatial.size();
  bool grouped = c.groups > 1;
  // Loops: batch, [group,] output feature, output positions, input feature, window positions.
  unsigned next = 0;
  auto loop = [&] { return b.getAffineDimExpr(next++); };
  AffineExpr batch = loop(), group = grouped ? loop() : AffineExpr(), feature = loop();
  SmallVector<AffineExpr> positions, window;
  for (size_t i = 0; i < count; ++i)
    positions.push_back(loop());
  SmallVector<utils::IteratorType> loops(next, parallel);
  AffineExpr inputFeature = loop();
  for (size_t i = 0; i < count; ++i)
    window.push_back(loop());
  loops.resize(next, reduction);
  SmallVector<AffineExpr> in(count + 2), weights(count + 2), out(count + 2);
  in[c.input.first] = batch;
  in[c.input.second] = inputFeature;
  weights[c.kernel.first] = inputFeature;
  weights[c.kernel.second] = feature;
  out[c.output.first] = batch;
  out[c.output.second] = feature;
  for (size_t i = 0; i < count; ++i) {
    int64_t last = tensorOf(kernel).getDimSize(c.kernel.spatial[i]) - 1;
    AffineExpr at = c.reversal[i] ? last - window[i] : window[i];
    in[c.input.spatial[i]] = positions[i] * c.strides[i] + at * c.dilation[i];
    weights[c.kernel.spatial[i]] = window[i];
    out[c.output.spatial[i]] = positions[i];
  }
  RankedTensorType type = to;
  if (grouped) {
    x = splitGroups(b, loc, x, c.input.second, c.groups);
    kernel = splitGroups(b, loc, kernel, c.kernel.second, c.groups);
    in.insert(in.begin() + c.input.second, group);
    weights.insert(weights.begin() + c.kernel.second, group);
    out.insert(out.begin() + c.output.second, group);
    SmallVector<int64_t> shape(to.getShape());
    shape[c.output.second] /= c.groups;
    shape.insert(shape.begin() + c.output.second, c.groups);
    type = to.clone(shape);
  }
  MLIRContext *context = op->getContext();
  SmallVector<AffineMap> maps{AffineMap::get(next, 0, in, context),
                              AffineMap::get(next, 0, weights, context),
                              AffineMap::get(next, 0, out, context)};
  Value product = buildProduct(b, loc, type, x, kernel, maps, loops);
  return SmallVector<Value>{buildReshape(b, loc, product, to.getShape())};
}

/// Verifies the operands of a reduction (values and init values), and verifies that the results
/// have `shape`.
static LogicalResult checkReduction(Operation *op, ArrayRef<int64_t> shape) {
  unsigned count = op->getNumResults();
  for (unsigned i = 0; i < count; ++i) {
    RankedTensorType value = tensorOf(op->getOperand(i)),
                     init = tensorOf(op->getOperand(count + i)), to = tensorOf(op->getResult(i));
    if (init.getRank() != 0 || init.getElementType() != value.getElementType() ||
        to.getElementType() != value.getElementType() ||
        value.getShape() != tensorOf(op->getOperand(0)).getShape() || to.getShape() != shape)
      return op->emitError(
                 "expected values of one shape, scalars of their types to start from, and "
                 "results of shape [")
             << shape << "]";
  }
  return success();
}

/// Builds the loops of a reduction whose body is the region of `op`.
static HloResult buildReduction(OpBuilder &b, Operation *op, ValueRange inputs,
                                ArrayRef<AffineMap> maps, ArrayRef<utils::IteratorType> loops) {
  Location loc = op->getLoc();
  unsigned count = op->getNumResults();
  SmallVector<Value> inits;
  for (unsigned i = 0; i < count; ++i) {
    RankedTensorType type = tensorOf(op->getResult(i));
    Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    Value start = getScalar(b, loc, op->getOperand(count + i));
    inits.push_back(linalg::FillOp::create(b, loc, start, empty).getResult(0));
  }
  HloResult results = failure();
  auto generic = linalg::GenericOp::create(
      b, loc, op->getResultTypes(), inputs, inits, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        // The region's arguments are first the partial results, then the values.
        SmallVector<Value> arguments(args.take_back(count));
        llvm::append_range(arguments, args.take_front(count));
        results = lowerBody(b, op, arguments);
        if (succeeded(results) &&
            TypeRange(ValueRange(*results)) != TypeRange(args.take_back(count)))
          results = op->emitError("expected a region that returns scalars of the results' types");
        linalg::YieldOp::create(b, loc,
                                succeeded(results) ? ValueRange(*results) : args.take_back(count));
      });
  if (failed(results))
    return failure();
  return SmallVector<Value>(generic.getResults());
}

HloResult fsdp::lowerReduce(OpBuilder &b, Operation *op) {
  unsigned count = op->getNumResults();
  if (failed(checkCount(op, "operands", op->getNumOperands(), 2 * count)))
    return failure();
  RankedTensorType from = tensorOf(op->getOperand(0));
  SmallVector<int64_t> dims = getInts(op, "dimensions"), shape;
  if (failed(checkDims(op, "dimensions", dims, from.getRank())))
    return failure();
  SmallVector<AffineExpr> kept;
  SmallVector<utils::IteratorType> loops(from.getRank(), parallel);
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    if (llvm::is_contained(dims, dim)) {
      loops[dim] = reduction;
      continue;
    }
    kept.push_back(b.getAffineDimExpr(dim));
    shape.push_back(from.getDimSize(dim));
  }
  if (failed(checkReduction(op, shape)))
    return failure();
  SmallVector<AffineMap> maps(count, b.getMultiDimIdentityMap(from.getRank()));
  maps.append(count, AffineMap::get(from.getRank(), 0, kept, op->getContext()));
  return buildReduction(b, op, op->getOperands().take_front(count), maps, loops);
}

HloResult fsdp::lowerReduceWindow(OpBuilder &b, Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() != 2)
    return op->emitError("expected one operand, one init value and one result");
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  RankedTensorType from = tensorOf(x), to = tensorOf(op->getResult(0));
  unsigned rank = from.getRank();
  SmallVector<int64_t> ones(rank, 1), zeros(rank, 0);
  SmallVector<int64_t> sizes = getInts(op, "window_dimensions"),
                       strides = getInts(op, "window_strides", ones),
                       dilation = getInts(op, "window_dilations", ones),
                       padding = getInts(op, "padding", SmallVector<int64_t>(2 * rank, 0));
  if (getInts(op, "base_dilations", ones) != ones)
    return op->emitError("'") << op->getName()
                              << "' with 'base_dilations' above 1 is not supported; write it as an "
                              << "upsampling and a pooling";
  if (failed(checkCount(op, "window_dimensions", sizes.size(), rank)) ||
      failed(checkCount(op, "window_strides", strides.size(), rank)) ||
      failed(checkCount(op, "window_dilations", dilation.size(), rank)) ||
      failed(checkCount(op, "padding", padding.size(), 2 * rank)))
    return failure();
  SmallVector<int64_t> low, high, shape, windowShape,
      all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  SmallVector<AffineExpr> in, out, window;
  SmallVector<utils::IteratorType> loops(rank, parallel);
  for (unsigned i = 0; i < rank; ++i) {
    low.push_back(padding[2 * i]);
    high.push_back(padding[2 * i + 1]);
    constexpr int64_t most = 1 << 20;
    if (sizes[i] < 1 || strides[i] < 1 || dilation[i] < 1 || low[i] < 0 || high[i] < 0 ||
        std::max({sizes[i], strides[i], dilation[i], low[i], high[i]}) > most)
      return op->emitError(
          "expected windows, strides and dilations of at least 1 and padding of at "
          "least 0");
    int64_t padded = from.getDimSize(i) + low[i] + high[i];
    int64_t extent = (sizes[i] - 1) * dilation[i] + 1;
    shape.push_back(padded < extent ? 0 : (padded - extent) / strides[i] + 1);
    AffineExpr at = b.getAffineDimExpr(i) * strides[i];
    out.push_back(b.getAffineDimExpr(i));
    if (sizes[i] > 1) {
      AffineExpr inner = b.getAffineDimExpr(rank + window.size());
      window.push_back(inner);
      windowShape.push_back(sizes[i]);
      at = at + inner * dilation[i];
      loops.push_back(reduction);
    }
    in.push_back(at);
  }
  if (failed(checkReduction(op, shape)))
    return failure();
  // An additional operand with the shape of the window determines the extents of the loops over the
  // window.
  Value init = getScalar(b, loc, op->getOperand(1));
  x = buildPadded(b, loc, x, all, low, high, init);
  Value extent = tensor::EmptyOp::create(b, loc, windowShape, to.getElementType());
  MLIRContext *context = op->getContext();
  unsigned count = rank + window.size();
  SmallVector<AffineMap> maps{AffineMap::get(count, 0, in, context),
                              AffineMap::get(count, 0, window, context),
                              AffineMap::get(count, 0, out, context)};
  if (window.empty())
    return buildReduction(b, op, x, {maps[0], maps[2]}, loops);
  return buildReduction(b, op, ValueRange{x, extent}, maps, loops);
}
