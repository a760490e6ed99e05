#include "tests/full_size/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "compiler/ir/walk.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::full_size {
namespace {

using ir::DType;

constexpr int64_t kBoundMin = 2;
constexpr int64_t kBoundMax = 1 << 20;
// The number of distinct values that are not whole.
constexpr int64_t kDistinct = 1 << 14;

// SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Returns a few values of the dtype, as consecutive bytes.
std::vector<uint8_t> ValuesToDraw(DType dtype, const InputKind& kind) {
  std::vector<double> values;
  if (ir::IsFloat(dtype)) {
    const double sign = kind.positive ? 1 : -1;
    for (int64_t i = 0; i < (kind.whole ? 2 : kDistinct); ++i) {
      const double value = kind.whole
                               ? static_cast<double>(1 + i)
                               : 0.5 + std::ldexp(static_cast<double>(Mix(i) >> 11), -53) * 1.5;
      values.push_back(value);
      values.push_back(sign * value);
    }
  } else {
    const int64_t integer_max = dtype == DType::kBool    ? 2
                                : ir::SizeOf(dtype) == 1 ? 100
                                : ir::SizeOf(dtype) == 2 ? 10'000
                                                         : kBoundMax;
    for (int64_t i = 0; i < std::min(kind.integer_bound, integer_max); ++i) {
      values.push_back(static_cast<double>(i));
    }
  }
  return ops::HostTensor::Of(dtype, {static_cast<int64_t>(values.size())}, values).bytes;
}

template <typename Word>
void Draw(const std::vector<uint8_t>& values, int64_t elements, uint64_t seed, void* data) {
  const auto* from = reinterpret_cast<const Word*>(values.data());
  const uint64_t count = values.size() / sizeof(Word);
  auto* to = static_cast<Word*>(data);
  for (int64_t i = 0; i < elements; ++i) {
    // A hash of the index instead of a generator with state: fast, and independent of the order of
    // elements.
    to[i] = from[Mix(seed + static_cast<uint64_t>(i)) % count];
  }
}

}  // namespace

int64_t IntegerBound(const kernel::Kernel& kernel) {
  int64_t longest = kBoundMin;
  int64_t compared = 0;
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Store& store : stage.stores) {
      for (const ir::Node* node : ir::TopologicalOrder({{store.index, store.value, store.valid}})) {
        if (node->op() == ir::Op::kRange) {
          longest = std::max(longest, node->attr<ir::RangeAttr>().extent);
        }
        if (node->op() != ir::Op::kCmpLt || node->operand(1)->op() != ir::Op::kConst ||
            !ir::IsInteger(node->operand(1)->dtype())) {
          continue;
        }
        compared = std::max(compared, node->operand(1)->attr<ir::ConstValue>().AsInt());
      }
    }
  }
  return std::clamp(compared > 1 ? compared : longest, kBoundMin, kBoundMax);
}

void FillRandom(DType dtype, int64_t elements, const InputKind& kind, uint64_t seed, void* data) {
  const std::vector<uint8_t> values = ValuesToDraw(dtype, kind);
  seed = Mix(seed);
  switch (ir::SizeOf(dtype)) {
    case 1:
      return Draw<uint8_t>(values, elements, seed, data);
    case 2:
      return Draw<uint16_t>(values, elements, seed, data);
    case 4:
      return Draw<uint32_t>(values, elements, seed, data);
    default:
      return Draw<uint64_t>(values, elements, seed, data);
  }
}

double ElementAt(DType dtype, const void* data, int64_t i) {
  if (dtype == DType::kFloat32) return static_cast<const float*>(data)[i];
  if (dtype == DType::kFloat64) return static_cast<const double*>(data)[i];
  const int64_t size = ir::SizeOf(dtype);
  // Kept between calls, since there are many elements.
  thread_local ops::HostTensor one;
  if (one.dtype != dtype) one = ops::HostTensor::Zeros(dtype, {});
  std::memcpy(one.bytes.data(), static_cast<const char*>(data) + i * size,
              static_cast<size_t>(size));
  return one.Number(0);
}

}  // namespace kiln::full_size
