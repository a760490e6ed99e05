#include "compiler/kernel/sample_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "compiler/ir/walk.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::kernel {
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

// Returns a few values to draw from.
std::vector<double> ValuesToDraw(DType dtype, const InputKind& kind) {
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
  return values;
}

std::vector<uint8_t> BytesOf(DType dtype, const std::vector<double>& values) {
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

void DrawFrom(const std::vector<double>& numbers, DType dtype, int64_t elements, uint64_t seed,
              void* data) {
  const std::vector<uint8_t> values = BytesOf(dtype, numbers);
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

// Few, so that most sums of thousands of terms have none.
constexpr size_t kOrdinaryForEachSpecial = 2000;

// Makes ordinary numbers so many that special ones are rare.
void AddSpecial(const std::vector<double>& special, std::vector<double>* numbers) {
  const std::vector<double> ordinary = *numbers;
  while (numbers->size() < special.size() * kOrdinaryForEachSpecial) {
    numbers->insert(numbers->end(), ordinary.begin(), ordinary.end());
  }
  numbers->insert(numbers->end(), special.begin(), special.end());
}

std::vector<double> SpecialOf(Sample sample, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!ir::IsFloat(dtype)) return {};
  if (sample == Sample::kInfinities) return {kInfinity, -kInfinity};
  if (sample != Sample::kOdd) return {};
  const double normal = std::ldexp(1, ir::FormatOf(dtype).exponent_min());
  const double subnormal = std::ldexp(normal, -ir::FormatOf(dtype).mantissa_bits);
  return {std::numeric_limits<double>::quiet_NaN(), normal, -normal, subnormal, -subnormal};
}

// Returns whether the node is whole for whole inputs, without rounding.
bool IsWholeNode(const ir::Node* node) {
  switch (node->op()) {
    case ir::Op::kConst:
      return !ir::IsFloat(node->dtype()) || std::trunc(node->attr<ir::ConstValue>().AsDouble()) ==
                                                node->attr<ir::ConstValue>().AsDouble();
    case ir::Op::kAdd:
    case ir::Op::kSub:
    case ir::Op::kMul:
    case ir::Op::kNeg:
    case ir::Op::kMax:
    case ir::Op::kMin:
    case ir::Op::kWhere:
    case ir::Op::kLoad:
    case ir::Op::kCast:
      return true;
    default:
      return !ir::IsFloat(node->dtype());
  }
}

bool LoadsLocal(const Kernel& kernel, const ir::Node* node) {
  return node->op() == ir::Op::kLoad &&
         kernel.buffers[static_cast<size_t>(node->attr<ir::IntAttr>().value)].memory ==
             Memory::kLocal;
}

}  // namespace

int64_t IntegerBound(const Kernel& kernel) {
  int64_t longest = kBoundMin;
  int64_t compared = 0;
  for (const Stage& stage : kernel.stages) {
    for (const Store& store : stage.stores) {
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
  DrawFrom(ValuesToDraw(dtype, kind), dtype, elements, seed, data);
}

absl::Span<const Sample> Samples() {
  static constexpr Sample kSamples[] = {Sample::kRandom, Sample::kPositive, Sample::kOdd,
                                        Sample::kInfinities, Sample::kEqual};
  return kSamples;
}

std::string_view NameOf(Sample sample) {
  static constexpr std::string_view kNames[] = {"random", "positive", "odd", "infinite", "equal"};
  return kNames[static_cast<size_t>(sample)];
}

void FillSample(Sample sample, DType dtype, int64_t elements, int64_t integer_bound, bool whole,
                uint64_t seed, void* data) {
  if (sample == Sample::kEqual) {
    return DrawFrom({dtype == DType::kBool ? 1.0 : 2.0}, dtype, elements, seed, data);
  }
  std::vector<double> numbers = ValuesToDraw(
      dtype,
      {.whole = whole, .positive = sample == Sample::kPositive, .integer_bound = integer_bound});
  if (sample == Sample::kOdd && ir::IsFloat(dtype)) numbers.insert(numbers.end(), {0.0, -0.0});
  const std::vector<double> special = SpecialOf(sample, dtype);
  if (!special.empty()) AddSpecial(special, &numbers);
  DrawFrom(numbers, dtype, elements, seed, data);
}

void Perturb(DType dtype, int64_t elements, double relative, uint64_t seed, void* data) {
  if (!ir::IsFloat(dtype)) return;
  seed = Mix(seed);
  const auto size = static_cast<size_t>(ir::SizeOf(dtype));
  ops::HostTensor one = ops::HostTensor::Zeros(dtype, {});
  for (int64_t i = 0; i < elements; ++i) {
    const double share =
        std::ldexp(static_cast<double>(Mix(seed + static_cast<uint64_t>(i)) >> 11), -52) - 1;
    char* element = static_cast<char*>(data) + static_cast<size_t>(i) * size;
    one.SetFloat(0, ElementAt(dtype, element, 0) * (1 + relative * share));
    std::memcpy(element, one.bytes.data(), size);
  }
}

bool HasExactSums(const Kernel& kernel) {
  for (const Stage& stage : kernel.stages) {
    for (const Store& store : stage.stores) {
      for (const ir::Node* node : ir::TopologicalOrder({&store.value, 1})) {
        if (node->op() != ir::Op::kReduce || !ir::IsFloat(node->dtype())) continue;
        const ir::Node* summed = node->operand(0);
        for (const ir::Node* term : ir::TopologicalOrder({&summed, 1})) {
          if (!IsWholeNode(term) || LoadsLocal(kernel, term)) return false;
        }
      }
    }
  }
  return true;
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

}  // namespace kiln::kernel
