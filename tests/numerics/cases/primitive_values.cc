#include "tests/numerics/cases/primitive_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/ir/dtype.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;
using ops::OpDef;

// Critical values: ends of ranges, halves, and their neighbours.
std::vector<double> SpecialValues(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  std::vector<double> values = {0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 127, 128, 255, 256};
  if (!ir::IsFloat(dtype)) {
    values.insert(values.end(), {1e4, 1e9, 1e18, std::numeric_limits<double>::infinity()});
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    values.insert(values.end(), {0.5, 1.5, 2.5, 0.1, 3.14159265, 1e-3, 1e-30, 1e-42, 1e30, 1e300,
                                 65504, 65520, 448, 464, 57344, 61440, kInfinity});
    for (int bits : {7, 8, 15, 16, 24, 31, 32, 53, 63, 64}) {
      const double power = std::ldexp(1, bits);
      values.insert(values.end(), {power, power * (1 - 0x1p-20), power * (1 + 0x1p-20)});
    }
    values.push_back(std::nan(""));
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// Sets an element to the pattern `bits`, truncated to the dtype.
void SetBits(HostTensor& tensor, int64_t i, uint64_t bits) {
  if (tensor.dtype == DType::kBool) bits &= 1;
  std::memcpy(tensor.bytes.data() + i * ir::SizeOf(tensor.dtype), &bits, ir::SizeOf(tensor.dtype));
}

}  // namespace

std::vector<DType> AllDTypes() { return {std::begin(ir::kAllDTypes), std::end(ir::kAllDTypes)}; }

std::vector<HostTensor> Values(DType dtype, int operands) {
  const int size = ir::SizeOf(dtype);
  const int64_t patterns = dtype == DType::kBool ? 2 : int64_t{1} << std::min(8 * size, 16);
  const std::vector<double> special = SpecialValues(dtype);
  const auto specials = static_cast<int64_t>(special.size());
  const int64_t exhaustive = operands == 1 && size <= 2   ? patterns
                             : operands == 2 && size == 1 ? patterns * patterns
                                                          : 0;
  const int64_t edges = operands == 1 ? specials : specials * specials;
  const int64_t count = exhaustive > 0 ? exhaustive + 3 : edges + kManyValues;
  std::vector<HostTensor> tensors(operands, HostTensor::Zeros(dtype, {count}));
  std::mt19937_64 random(static_cast<uint64_t>(dtype) * 1000 + operands);
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < operands; ++k) {
      if (exhaustive > 0) {
        SetBits(tensors[k], i, static_cast<uint64_t>(k == 0 ? i % patterns : i / patterns));
      } else if (i >= edges) {
        SetBits(tensors[k], i, random());
      } else {
        const HostTensor value =
            HostTensor::Of(dtype, {}, {special[k == 0 ? i % specials : i / specials]});
        std::memcpy(tensors[k].bytes.data() + i * size, value.bytes.data(), size);
      }
    }
  }
  return tensors;
}

Closeness ClosenessOf(const OpDef& op, DType dtype) {
  switch (op.op) {
    case ir::Op::kExp2:
    case ir::Op::kLog2:
    case ir::Op::kSin:
    case ir::Op::kPow:
      return {ir::IsShortFloat(dtype) ? 1 : 2, true};
    case ir::Op::kMax:
    case ir::Op::kMin:
    case ir::Op::kReduceMax:
      return {0, false};  // with zeros of both signs, either
    default:
      return {};
  }
}

bool Admits(const OpDef& op, DType dtype) {
  std::vector<DType> dtypes(op.operands.size(), dtype);
  if (op.special_operand >= 0) dtypes[op.special_operand] = DType::kBool;
  return ops::InferDType(op, dtypes, DType::kInvalid).ok();
}

}  // namespace kiln::numerics
