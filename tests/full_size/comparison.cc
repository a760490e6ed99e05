#include "tests/full_size/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/str_cat.h"
#include "compiler/machine_codes.h"
#include "tests/full_size/sample.h"

namespace kiln::full_size {
namespace {

using codegen::ExecutableCode;
using codegen::GuardedMemory;
using kernel::Access;

constexpr int kUnwritten = 0xa5;
// In place of a bound: the plain schedule did not compute this element.
constexpr double kNotComputed = -1;
// The number of parts in which a schedule's tasks run.
constexpr int64_t kParts = 8;
// Compared as bytes first, which is enough for most blocks.
constexpr int64_t kBlockElements = 1024;

bool IsInput(const kernel::Buffer& buffer) {
  return buffer.memory == kernel::Memory::kGlobal && buffer.access == Access::kRead;
}

// The distance to the next multiple of 64, where a guard page may begin.
int64_t SlackOf(int64_t bytes) { return (64 - bytes % 64) % 64; }

// The smallest positive number of a float dtype narrower than float64; otherwise 0.
double SmallestOf(ir::DType dtype) {
  if (dtype == ir::DType::kFloat64) return 0;
  const ir::FloatFormat& format = ir::FormatOf(dtype);
  return std::ldexp(1, format.exponent_min() - format.mantissa_bits);
}

}  // namespace

Comparison::Comparison(const kernel::Kernel& kernel, ir::Context& context,
                       ComparisonOptions options)
    : kernel_(kernel),
      options_(options),
      bounded_(WithErrorBounds(kernel, context, /*whole_inputs=*/true)),
      globals_(bounded_.bound_of.size()) {
  input_kind_.integer_bound = kernel::IntegerBound(kernel);
  if (!bounded_.has_long_sum) return;
  // Repeated roundings of a few whole values add up in one direction; see error_bound.h.
  bounded_ = WithErrorBounds(kernel, context, /*whole_inputs=*/false);
  input_kind_.whole = false;
}

Comparison::~Comparison() = default;

bool Comparison::exact() const {
  return std::all_of(bounded_.is_exact.begin(), bounded_.is_exact.end(),
                     [](bool exact) { return exact; });
}

int64_t Comparison::BytesOf(const kernel::Buffer& buffer) const {
  return buffer.elements * ir::SizeOf(buffer.dtype);
}

void Comparison::FillInputs() {
  inputs_.clear();
  for (size_t i = 0; i < globals_; ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    inputs_.push_back(nullptr);
    if (!IsInput(buffer)) continue;
    const int64_t bytes = BytesOf(buffer);
    auto memory = std::make_unique<GuardedMemory>(bytes);
    kernel::FillRandom(buffer.dtype, buffer.elements, input_kind_, options_.seed * 100 + i,
                       memory->data());
    // Reads beyond the end get NaN.
    std::memset(static_cast<char*>(memory->data()) + bytes, 0xff,
                static_cast<size_t>(SlackOf(bytes)));
    memory->Protect();
    inputs_.back() = std::move(memory);
  }
}

std::unique_ptr<GuardedMemory> Comparison::NewOutput(int buffer, GuardedMemory::Edge edge) const {
  const kernel::Buffer& like = kernel_.buffers[buffer];
  const int64_t bytes = BytesOf(like);
  auto memory = std::make_unique<GuardedMemory>(bytes, edge);
  std::memset(memory->data(), kUnwritten, static_cast<size_t>(bytes + SlackOf(bytes)));
  if (like.access == Access::kUpdate) {
    kernel::FillRandom(like.dtype, like.elements, input_kind_, options_.seed * 100 + buffer,
                       memory->data());
  }
  return memory;
}

absl::Status Comparison::MakeReference(const drivers::Target& target) {
  absl::Status status = ComputeReference(target);
  if (!status.ok() || !HasNan()) return status;
  // Probably a logarithm or root of a negative input. NaN equals NaN, so such elements would prove
  // nothing.
  input_kind_.positive = true;
  return ComputeReference(target);
}

absl::Status Comparison::ComputeReference(const drivers::Target& target) {
  FillInputs();
  // A scatter's steps depend on one another, so none can be left out.
  const bool scatters =
      std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                  [](const auto& stage) { return !stage.ordered_ranges.empty(); });
  complete_ = scatters || kernel::CountPoints(kernel_) <= options_.reference_points;
  const schedule::Schedule plain = complete_ ? schedule::Schedule{} : PointByPoint(kernel_);
  auto image = codegen::CompileKernel(**compiler::FindMachineCode(target.architecture),
                                      bounded_.kernel, plain, target);
  if (!image.ok()) return image.status();
  reference_.clear();
  std::vector<void*> arguments;
  for (size_t i = 0; i < bounded_.kernel.buffers.size(); ++i) {
    const kernel::Buffer& buffer = bounded_.kernel.buffers[i];
    if (buffer.memory != kernel::Memory::kGlobal) break;
    reference_.push_back(nullptr);
    if (IsInput(buffer)) {
      arguments.push_back(inputs_[i]->data());
      continue;
    }
    if (i < globals_) {
      reference_.back() = NewOutput(static_cast<int>(i), GuardedMemory::Edge::kEnd);
    } else {
      reference_.back() = std::make_unique<GuardedMemory>(BytesOf(buffer));
      std::fill_n(static_cast<double*>(reference_.back()->data()), buffer.elements, kNotComputed);
    }
    arguments.push_back(reference_.back()->data());
  }
  const GuardedMemory scratch(image->scratch_bytes);
  RunReference(ExecutableCode(*image), image->grid_size, arguments.data(), scratch.data());
  return absl::OkStatus();
}

void Comparison::RunReference(const ExecutableCode& code, int64_t grid_size, void* const* arguments,
                              void* scratch) {
  if (complete_) {
    code.Run(arguments, 0, grid_size, scratch);
  } else {
    for (const auto& [begin, end] :
         SampleTasks(kernel_, options_.reference_points, options_.seed)) {
      code.Run(arguments, begin, end, scratch);
    }
  }
  largest_.assign(globals_, 0);
  for (size_t i = 0; i < globals_; ++i) {
    const int bound = bounded_.bound_of[i];
    if (bound < 0 || bounded_.is_exact[i]) continue;
    const auto* bounds = static_cast<const double*>(reference_[bound]->data());
    for (int64_t k = 0; k < kernel_.buffers[i].elements; ++k) {
      if (std::isfinite(bounds[k])) largest_[i] = std::max(largest_[i], bounds[k]);
    }
  }
}

bool Comparison::HasNan() const {
  for (size_t i = 0; i < globals_; ++i) {
    const int bound = bounded_.bound_of[i];
    if (bound < 0 || !ir::IsFloat(kernel_.buffers[i].dtype)) continue;
    const auto* bounds = static_cast<const double*>(reference_[bound]->data());
    for (int64_t k = 0; k < kernel_.buffers[i].elements; ++k) {
      if (bounds[k] == kNotComputed) continue;
      const double value = kernel::ElementAt(kernel_.buffers[i].dtype, reference_[i]->data(), k);
      if (!std::isfinite(bounds[k]) || !std::isfinite(value)) return true;
    }
  }
  return false;
}

std::string Comparison::Check(const schedule::Schedule& schedule, const drivers::Target& target) {
  const auto image = codegen::CompileKernel(**compiler::FindMachineCode(target.architecture),
                                            kernel_, schedule, target);
  return image.ok() ? CheckImage(*image) : image.status().ToString();
}

std::string Comparison::CheckImage(const drivers::KernelImage& image) {
  const ExecutableCode code(image);
  // Guard pages are at one end in one run and at the other end in the next.
  const auto edge = first_.empty() ? GuardedMemory::Edge::kEnd : GuardedMemory::Edge::kBegin;
  Memory outputs;
  std::vector<void*> arguments;
  for (size_t i = 0; i < globals_; ++i) {
    outputs.push_back(inputs_[i] == nullptr ? NewOutput(static_cast<int>(i), edge) : nullptr);
    arguments.push_back((inputs_[i] == nullptr ? outputs.back() : inputs_[i])->data());
  }
  const GuardedMemory scratch(image.scratch_bytes);
  const int64_t step = std::max<int64_t>(1, (image.grid_size + kParts - 1) / kParts);
  // Runs the last tasks first, since a kernel must not depend on the order of its tasks.
  for (int64_t end = image.grid_size; end > 0; end -= std::min(end, step)) {
    // NaN, which shows if scratch is read before it was written.
    std::memset(scratch.data(), 0xff, static_cast<size_t>(image.scratch_bytes));
    code.Run(arguments.data(), std::max<int64_t>(0, end - step), end, scratch.data());
  }
  for (size_t i = 0; i < globals_; ++i) {
    if (outputs[i] == nullptr) continue;
    const int64_t bytes = BytesOf(kernel_.buffers[i]);
    const auto* behind = static_cast<const uint8_t*>(outputs[i]->data()) + bytes;
    if (std::any_of(behind, behind + SlackOf(bytes), [](int byte) { return byte != kUnwritten; })) {
      return StrCat("writes behind buffer ", i);
    }
    const std::string difference = Compare(static_cast<int>(i), outputs[i]->data());
    if (!difference.empty()) return difference;
  }
  if (first_.empty()) first_ = std::move(outputs);
  return "";
}

std::string Comparison::Compare(int buffer, const void* got) {
  const kernel::Buffer& like = kernel_.buffers[buffer];
  const int64_t size = ir::SizeOf(like.dtype);
  auto equal = [&](const std::unique_ptr<GuardedMemory>& other, int64_t begin, int64_t end) {
    return std::memcmp(static_cast<const char*>(got) + begin * size,
                       static_cast<const char*>(other->data()) + begin * size,
                       static_cast<size_t>((end - begin) * size)) == 0;
  };
  for (int64_t begin = 0; begin < like.elements; begin += kBlockElements) {
    const int64_t end = std::min(begin + kBlockElements, like.elements);
    if (complete_ && equal(reference_[buffer], begin, end)) {
      compared_ += end - begin;
      continue;
    }
    // The first schedule's result has already been compared with the plain one's.
    if (!complete_ && !first_.empty() && equal(first_[buffer], begin, end)) {
      compared_ += CountComputed(buffer, begin, end);
      continue;
    }
    if (!complete_ && first_.empty() && CountComputed(buffer, begin, end) == 0) continue;
    std::string difference = CompareElements(buffer, got, begin, end);
    if (!difference.empty()) return difference;
  }
  return "";
}

// Returns how many of these elements the plain schedule computed.
int64_t Comparison::CountComputed(int buffer, int64_t begin, int64_t end) const {
  const int bound = bounded_.bound_of[buffer];
  if (bound < 0) return end - begin;
  const auto* bounds = static_cast<const double*>(reference_[bound]->data());
  return end - begin - std::count(bounds + begin, bounds + end, kNotComputed);
}

// Returns the allowed difference of an element from `want`; negative if the correct value is
// unknown.
double Comparison::Tolerance(int buffer, int64_t element, double want) const {
  const int bound = bounded_.bound_of[buffer];
  if (bound < 0) {
    // A scatter: its steps are ordered, so that only a fused rounding can differ.
    constexpr double kRelative = 1e-4;
    return bounded_.is_exact[buffer] ? 0 : kRelative * (1 + std::abs(want));
  }
  return static_cast<const double*>(reference_[bound]->data())[element];
}

std::string Comparison::CompareElements(int buffer, const void* got, int64_t begin, int64_t end) {
  const kernel::Buffer& like = kernel_.buffers[buffer];
  for (int64_t i = begin; i < end; ++i) {
    double want = kernel::ElementAt(like.dtype, reference_[buffer]->data(), i);
    double bound = Tolerance(buffer, i, want);
    const char* what = "the plain schedule";
    if (bound == kNotComputed && complete_) {
      bound = 0;  // unchanged
    } else if (bound == kNotComputed) {
      if (first_.empty()) continue;
      if (largest_[buffer] == 0 && !bounded_.is_exact[buffer]) {
        ++skipped_;  // the elements that the plain schedule computed have no bound
        continue;
      }
      want = kernel::ElementAt(like.dtype, first_[buffer]->data(), i);
      // No bound was computed for this element, so the largest of the buffer is used, doubled
      // because neither of the two values is the plain schedule's.
      bound = 2 * largest_[buffer];
      what = "another schedule";
    } else {
      ++compared_;
    }
    if (!std::isfinite(bound)) {
      ++skipped_;
      continue;
    }
    const double is = kernel::ElementAt(like.dtype, got, i);
    if (is == want || (std::isnan(is) && std::isnan(want))) continue;
    const double tolerance = ir::IsFloat(like.dtype) ? 2 * bound + SmallestOf(like.dtype) : bound;
    if (bound > 0 && std::abs(is - want) <= tolerance) continue;
    return StrCat("buffer ", buffer, " element ", i, " of ", like.elements, ": is ", is, ", ", what,
                  " gives ", want, ", bound ", bound);
  }
  return "";
}

}  // namespace kiln::full_size
