//===- LibraryGemm.cpp - Contractions computed by a library -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The factors and the result must be matrices. Rows, columns and k have one digit
//     (GemmProblem.h) each, and each matrix is contiguous along one of its two digits.
//  2. All other inputs must be matrices with the shape of the result, or single rows with the width
//     of the result.
//  3. Identify the epilogue: compute its value at some points, in f64 and without intermediate
//     rounding, and compare it with the values of the supported epilogues. Epilogues consist of
//     sums, products, quotients and exponentials. Therefore two epilogues that have the same values
//     at these points are equal. The supported epilogues are the sum of all inputs, the GELU of
//     this sum, and the sum times the derivative of GELU.
//
// Two features of cuBLASLt are not used: scales, and gradients of a bias that are summed together
// with the product.
//
//===----------------------------------------------------------------------===//

#include "LibraryGemm.h"
#include "Codegen/Kernel/Gemm/GemmShared.h"
#include "GpuGemm.h"
#include "GpuGemmEpilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Required alignment, in elements, of the leading dimension of the matrix that holds the argument
/// of the activation.
static constexpr int64_t auxLeadingUnit = 8;

using Numbers = DenseMap<Value, double>;

/// Returns the result of a scalar op for the arguments `x`, or nothing if the op is unsupported.
static std::optional<double> apply(Operation &op, ArrayRef<double> x) {
  return llvm::TypeSwitch<Operation *, std::optional<double>>(&op)
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return x[0]; })
      .Case([&](arith::AddFOp) { return x[0] + x[1]; })
      .Case([&](arith::SubFOp) { return x[0] - x[1]; })
      .Case([&](arith::MulFOp) { return x[0] * x[1]; })
      .Case([&](arith::DivFOp) { return x[0] / x[1]; })
      .Case([&](arith::NegFOp) { return -x[0]; })
      .Case([&](math::FmaOp) { return x[0] * x[1] + x[2]; })
      .Case([&](math::TanhOp) { return std::tanh(x[0]); })
      .Case([&](math::ExpOp) { return std::exp(x[0]); })
      .Default(std::optional<double>());
}

/// Evaluates the body of an elementwise op for the given arguments. Records the value of each op of
/// the body, and the results, in `numbers`. Returns false if the op is unsupported.
static bool evaluate(linalg::LinalgOp op, ArrayRef<double> arguments, Numbers &numbers) {
  Block &body = op->getRegion(0).front();
  for (auto [argument, number] : llvm::zip(body.getArguments(), arguments))
    numbers[argument] = number;
  auto numberOf = [&](Value value) -> std::optional<double> {
    FloatAttr constant;
    if (matchPattern(value, m_Constant(&constant)))
      return constant.getValueAsDouble();
    auto found = numbers.find(value);
    return found == numbers.end() ? std::optional<double>() : found->second;
  };
  for (Operation &inner : body) {
    SmallVector<double> operands;
    for (Value operand : inner.getOperands()) {
      std::optional<double> number = numberOf(operand);
      if (!number)
        return false;
      operands.push_back(*number);
    }
    if (inner.hasTrait<OpTrait::IsTerminator>()) {
      for (auto [result, number] : llvm::zip_equal(op->getResults(), operands))
        numbers[result] = number;
      return true;
    }
    if (isa<arith::ConstantOp>(inner))
      continue;
    std::optional<double> number = apply(inner, operands);
    if (!number)
      return false;
    numbers[inner.getResult(0)] = *number;
  }
  return false;
}

/// Applies the unary maps of an access to a number.
static std::optional<double> evaluate(const Access &access, double number) {
  for (linalg::LinalgOp op : access.maps) {
    Numbers numbers;
    if (!evaluate(op, {number, 0}, numbers))
      return std::nullopt;
    number = numbers.lookup(op->getResult(0));
  }
  return number;
}

/// Returns the values that the kernel stores for given inputs: the result of the contraction is
/// `root`, and the value of load i is numbers[variables[i]]. Returns an empty list if an op is
/// unsupported.
static SmallVector<double> evaluateStores(const Problem &problem, double root,
                                          ArrayRef<int> variables, ArrayRef<double> numbers) {
  Numbers known;
  known[problem.root()] = root;
  for (const MapStep &map : problem.maps) {
    SmallVector<double> arguments;
    for (auto [i, load] : llvm::enumerate(map.loadOf)) {
      // If an operand's value is not used, 0 stands for the value.
      double number = 0;
      if (load >= 0) {
        std::optional<double> loaded =
            evaluate(problem.loads[load].access, numbers[variables[load]]);
        if (!loaded)
          return {};
        number = *loaded;
      } else if (auto found = known.find(problem.key(linalg::LinalgOp(map.op)->getOperand(i)));
                 found != known.end()) {
        number = found->second;
      }
      arguments.push_back(number);
    }
    if (!evaluate(map.op, arguments, known))
      return {};
  }
  SmallVector<double> stored;
  for (const StoreStep &store : problem.stores) {
    auto found = known.find(store.value);
    if (found == known.end())
      return {};
    stored.push_back(found->second);
  }
  return stored;
}

static double gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double geluGradient(double x) {
  double scale = std::sqrt(2 / M_PI), t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

namespace {
/// A tensor that the kernel reads in addition to the factors.
struct Variable {
  const Operand *operand;
  bool isRow;
  bool isInit;
};

class Reader {
public:
  explicit Reader(Problem &problem) : problem(problem) {}
  std::optional<GpuProduct> read();

private:
  bool readSizes();
  std::optional<GpuMatrix> readMatrix(const Operand &operand, int rows, int cols);
  bool isRow(const Operand &operand) const;
  bool readFactors();
  bool collectVariables();
  int addVariable(const Operand &operand, bool isInit);
  /// Returns true if, at every point of the comparison, all values that the kernel stores equal the
  /// values that `expect` returns.
  bool agrees(function_ref<SmallVector<double>(double, ArrayRef<double>)> expect) const;
  bool readForm();
  bool placeVariables(size_t result);
  bool areTypesKnown() const;

  Problem &problem;
  GpuProduct product;
  int batch = 0, m = 0, n = 0, k = 0;
  SmallVector<Variable> variables;
  SmallVector<int> loads; ///< for each load of the kernel, the index of its tensor in `variables`
};
} // namespace

bool Reader::readSizes() {
  for (auto [role, digit, size] :
       {std::tuple(Role::Batch, &batch, &product.batches), std::tuple(Role::M, &m, &product.m),
        std::tuple(Role::N, &n, &product.n), std::tuple(Role::K, &k, &product.k)}) {
    SmallVector<int> digits = problem.digitsOf(role);
    if (digits.size() != 1)
      return false;
    *digit = digits.front();
    *size = problem.digits[digits.front()].size;
  }
  return true;
}

std::optional<GpuMatrix> Reader::readMatrix(const Operand &operand, int rows, int cols) {
  const Access &access = operand.access;
  if (access.binding < 0)
    return std::nullopt;
  int64_t numRows = problem.digits[rows].size, numCols = problem.digits[cols].size;
  int64_t rowStride = numRows > 1 ? operand.strides[rows] : numCols,
          colStride = numCols > 1 ? operand.strides[cols] : 1;
  GpuMatrix matrix;
  matrix.binding = access.binding;
  matrix.type = getStorageType(access.elementType);
  matrix.offset = access.offset * matrix.type.getIntOrFloatBitWidth() / 8;
  matrix.batchStride = product.batches > 1 ? operand.strides[batch] : 0;
  if (colStride == 1 && rowStride >= numCols) {
    matrix.leading = rowStride;
  } else {
    matrix.leading = numCols > 1 ? colStride : numRows;
    matrix.isTransposed = true;
    if ((numRows > 1 && rowStride != 1) || matrix.leading < numRows)
      return std::nullopt;
  }
  return matrix;
}

bool Reader::isRow(const Operand &operand) const {
  bool goesDown = (product.m > 1 && operand.strides[m] != 0) ||
                  (product.batches > 1 && operand.strides[batch] != 0);
  return !goesDown && (product.n == 1 || operand.strides[n] == 1);
}

bool Reader::readFactors() {
  if (!problem.lhs.access.maps.empty() || !problem.rhs.access.maps.empty())
    return false;
  std::optional<GpuMatrix> lhs = readMatrix(problem.lhs, m, k), rhs = readMatrix(problem.rhs, k, n);
  if (!lhs || !rhs)
    return false;
  product.lhs = *lhs;
  product.rhs = *rhs;
  return true;
}

int Reader::addVariable(const Operand &operand, bool isInit) {
  for (auto [i, variable] : llvm::enumerate(variables))
    if (variable.operand->access.binding == operand.access.binding &&
        variable.operand->access.offset == operand.access.offset &&
        variable.operand->strides == operand.strides && !isInit && !variable.isInit)
      return i;
  variables.push_back({&operand, isRow(operand), isInit});
  return variables.size() - 1;
}

bool Reader::collectVariables() {
  if (!startsFromZero(problem))
    addVariable(problem.init, true);
  for (const Operand &load : problem.loads) {
    if (load.access.binding < 0)
      return false;
    loads.push_back(addVariable(load, false));
  }
  return llvm::all_of(
      variables, [](const Variable &variable) { return variable.operand->access.binding >= 0; });
}

bool Reader::agrees(function_ref<SmallVector<double>(double, ArrayRef<double>)> expect) const {
  constexpr int points = 32;
  constexpr double tolerance = 1e-5;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(-3, 3);
  for (int i = 0; i < points; ++i) {
    double products = draw(random), root = products;
    SmallVector<double> numbers;
    for (const Variable &variable : variables) {
      numbers.push_back(draw(random));
      if (!variable.isInit)
        continue;
      std::optional<double> first = evaluate(variable.operand->access, numbers.back());
      if (!first)
        return false;
      root += *first;
    }
    SmallVector<double> stored = evaluateStores(problem, root, loads, numbers),
                        wanted = expect(products, numbers);
    if (stored.size() != wanted.size())
      return false;
    for (auto [found, expected] : llvm::zip_equal(stored, wanted))
      if (!(std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected))))
        return false;
  }
  return true;
}

/// Identifies the epilogue. Sets the activation and the matrix that holds its argument.
bool Reader::readForm() {
  auto sum = [](double products, ArrayRef<double> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), products);
  };
  using Form = SmallVector<double>;
  if (problem.stores.size() == 1) {
    if (agrees([&](double products, ArrayRef<double> numbers) {
          return Form{sum(products, numbers)};
        }))
      return placeVariables(0);
    product.activation = GpuActivation::Gelu;
    if (agrees([&](double products, ArrayRef<double> numbers) {
          return Form{gelu(sum(products, numbers))};
        }))
      return placeVariables(0);
    product.activation = GpuActivation::GeluGradient;
    return variables.size() == 1 && !variables.front().isInit &&
           agrees([&](double products, ArrayRef<double> numbers) {
             return Form{products * geluGradient(numbers.front())};
           }) &&
           placeVariables(0);
  }
  if (problem.stores.size() != 2)
    return false;
  product.activation = GpuActivation::Gelu;
  for (size_t result : {0, 1}) {
    auto both = [&](double products, ArrayRef<double> numbers) {
      double argument = sum(products, numbers);
      return result == 0 ? Form{gelu(argument), argument} : Form{argument, gelu(argument)};
    };
    if (!agrees(both))
      continue;
    product.aux = readMatrix(problem.stores[1 - result].dest, m, n);
    return product.aux && placeVariables(result);
  }
  return false;
}

bool Reader::placeVariables(size_t result) {
  std::optional<GpuMatrix> written = readMatrix(problem.stores[result].dest, m, n);
  if (!written || written->isTransposed)
    return false;
  product.result = *written;
  for (const Variable &variable : variables) {
    std::optional<GpuMatrix> &place = product.activation == GpuActivation::GeluGradient
                                          ? product.aux
                                      : variable.isRow ? product.bias
                                                       : product.addend;
    if (place)
      return false;
    place = readMatrix(*variable.operand, m, n);
    // Describe a single row as a matrix whose rows are all at the same address.
    if (!place && variable.isRow) {
      place = GpuMatrix();
      place->binding = variable.operand->access.binding;
      place->type = getStorageType(variable.operand->access.elementType);
      place->offset = variable.operand->access.offset * place->type.getIntOrFloatBitWidth() / 8;
    }
    if (!place || place->isTransposed)
      return false;
    if (variable.isRow)
      place->leading = product.n;
  }
  return areTypesKnown();
}

bool Reader::areTypesKnown() const {
  Type factor = product.lhs.type, result = product.result.type;
  bool isHalf = factor.isBF16() || factor.isF16();
  if (product.rhs.type != factor || !(isHalf || factor.isF32()) ||
      !(result == factor || (isHalf && result.isF32())))
    return false;
  for (const std::optional<GpuMatrix> *other : {&product.addend, &product.bias, &product.aux})
    if (*other && (*other)->type != result)
      return false;
  bool hasActivation = product.activation != GpuActivation::None;
  if (hasActivation && (result != factor || product.batches > 1))
    return false;
  if (product.bias && product.batches > 1)
    return false;
  if (product.aux && (product.aux->leading % auxLeadingUnit != 0 || product.aux->isTransposed ||
                      product.aux->binding == product.result.binding))
    return false;
  if (product.aux && product.addend && product.aux->binding == product.addend->binding)
    return false;
  auto overwrites = [&](const GpuMatrix &read) {
    return read.binding == product.result.binding ||
           (product.aux && read.binding == product.aux->binding);
  };
  return !overwrites(product.lhs) && !overwrites(product.rhs) &&
         !(product.bias && overwrites(*product.bias));
}

std::optional<GpuProduct> Reader::read() {
  if (!readSizes() || !readFactors() || !collectVariables() || !readForm())
    return std::nullopt;
  return product;
}

std::optional<GpuProduct> gemm::readAsLibraryProduct(func::FuncOp kernel, const GpuTarget &target) {
  if (target.gemm != GemmSource::CublasLt)
    return std::nullopt;
  FailureOr<Problem> problem = analyseTileable(kernel);
  // The library would multiply f32 factors as f32.
  if (failed(problem) ||
      (target.f32Products == F32Products::TF32 && getValueType(problem->lhs.access).isF32()))
    return std::nullopt;
  orient(*problem);
  return Reader(*problem).read();
}

void gemm::lowerToLibraryProduct(func::FuncOp kernel, const GpuProduct &product,
                                 const GpuTarget &target, GpuKernel &info) {
  GpuLaunch launch;
  launch.symbol = kernel.getName().str();
  launch.product = product;
  // The library's kernel is taken to cost as much as the generated one.
  std::string reason;
  if (FailureOr<Problem> problem = analyseTileable(kernel); succeeded(problem))
    if (FailureOr<GpuPlan> plan = makeGpuPlan(*problem, kernel, target, reason); succeeded(plan)) {
      launch.cost = costOf(*problem, *plan);
      if (plan->splits > 1) {
        GpuCost sums = costOfPartSums(*problem, *plan);
        launch.cost.clocks += sums.clocks;
        launch.cost.bytes += sums.bytes;
      }
    }
  info.launches.push_back(launch);
  info.scratchBytes = target.gemmWorkspace;
}
