#include "tests/numerics/kernels/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/testing/executable_code.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/machine_codes.h"
#include "compiler/search/heuristics/heuristic.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ops::HostTensor;

// Small numbers of both signs, and occasional special ones.
HostTensor RandomTensor(DType dtype, int64_t elements, int seed, bool specials) {
  HostTensor tensor = HostTensor::Zeros(dtype, {elements});
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-4, 4);
  const double special[] = {0.0, -0.0, std::nan(""), INFINITY, -INFINITY, 1e30, -1e-40, 3e9, -7.5};
  for (int64_t i = 0; i < elements; ++i) {
    if (ir::IsFloat(dtype)) {
      tensor.SetFloat(i, specials && random() % 8 == 0 ? special[random() % 9] : uniform(random));
    } else if (dtype == DType::kBool) {
      tensor.SetInt(i, random() % 2);
    } else {
      const auto wild = static_cast<int64_t>((uint64_t{random()} << 32) ^ random());
      tensor.SetInt(i,
                    specials && random() % 4 == 0 ? wild : static_cast<int64_t>(random() % 13) - 6);
    }
  }
  return tensor;
}

std::vector<HostTensor> Globals(const kernel::Kernel& kernel, bool specials) {
  std::vector<HostTensor> globals;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kGlobal) continue;
    globals.push_back(RandomTensor(buffer.dtype, buffer.elements,
                                   static_cast<int>(globals.size()) + 1,
                                   specials && buffer.access == kernel::Access::kRead));
  }
  return globals;
}

// GuardedMemory begins at a multiple of 64 bytes, so this many bytes after a tensor are not on a
// guard page.
size_t Slack(const HostTensor& tensor) { return (64 - tensor.bytes.size() % 64) % 64; }
constexpr uint8_t kUntouched = 0xa5;

// Runs tasks one by one, between guard pages, in reverse order, each with new scratch full of ones:
// they must not depend on each other.
absl::Status RunImage(const absl::StatusOr<drivers::KernelImage>& image,
                      std::vector<HostTensor>* globals) {
  if (!image.ok()) return image.status();
  const ExecutableCode code(*image);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> arguments;
  for (HostTensor& tensor : *globals) {
    memory.push_back(std::make_unique<GuardedMemory>(tensor.bytes.size()));
    std::memcpy(memory.back()->data(), tensor.bytes.data(), tensor.bytes.size());
    std::memset(static_cast<char*>(memory.back()->data()) + tensor.bytes.size(), kUntouched,
                Slack(tensor));
    arguments.push_back(memory.back()->data());
  }
  const GuardedMemory scratch(image->scratch_bytes);
  const int64_t step = std::max<int64_t>(1, image->grid_size / 50);
  for (int64_t end = image->grid_size; end > 0; end -= std::min(end, step)) {
    std::memset(scratch.data(), 0xff, static_cast<size_t>(image->scratch_bytes));
    code.Run(arguments.data(), std::max<int64_t>(0, end - step), end, scratch.data());
  }
  for (size_t i = 0; i < globals->size(); ++i) {
    HostTensor& tensor = (*globals)[i];
    std::memcpy(tensor.bytes.data(), arguments[i], tensor.bytes.size());
    const auto* behind = static_cast<const uint8_t*>(arguments[i]) + tensor.bytes.size();
    if (std::any_of(behind, behind + Slack(tensor),
                    [](uint8_t byte) { return byte != kUntouched; }))
      return absl::InternalError(StrCat("wrote behind argument ", i));
  }
  return absl::OkStatus();
}

// Returns an empty text if the tensors agree.
std::string Difference(const HostTensor& want, const HostTensor& got, double tolerance) {
  for (int64_t i = 0; i < want.size(); ++i) {
    if (!ir::IsFloat(want.dtype)) {
      if (want.Int(i) != got.Int(i)) {
        return StrCat("element ", i, ": ", want.Int(i), " expected, is ", got.Int(i));
      }
      continue;
    }
    const double x = want.Float(i), y = got.Float(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    if (!(std::abs(x - y) <= tolerance * (1 + std::abs(x)))) {
      return StrCat("element ", i, ": ", x, " expected, is ", y);
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<InterpretedKernel> InterpretKernel(const kernel::Kernel& kernel, bool specials) {
  InterpretedKernel result;
  result.before = Globals(kernel, specials);
  result.after = result.before;
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : result.after) pointers.push_back(&tensor);
  if (absl::Status status = kernel::Interpret(kernel, pointers); !status.ok()) return status;
  return result;
}

absl::Status CompareWithInterpreter(const absl::StatusOr<InterpretedKernel>& interpreted,
                                    const absl::StatusOr<drivers::KernelImage>& image,
                                    double tolerance) {
  if (!interpreted.ok()) return interpreted.status();
  std::vector<HostTensor> got = interpreted->before;
  if (absl::Status status = RunImage(image, &got); !status.ok()) return status;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string difference = Difference(interpreted->after[i], got[i], tolerance);
    if (!difference.empty()) return absl::InternalError(StrCat("buffer ", i, ", ", difference));
  }
  return absl::OkStatus();
}

void ExpectMatches(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const drivers::Target& target,
                   const absl::StatusOr<InterpretedKernel>& interpreted, double tolerance,
                   const std::string& what) {
  const MachineCode& machine = **compiler::FindMachineCode(target.architecture);
  const auto image = CompileKernel(machine, kernel, schedule, target);
  EXPECT_EQ(CompareWithInterpreter(interpreted, image, tolerance), absl::OkStatus())
      << what << "\n"
      << schedule::Print(schedule);
}

void KernelsTest::ExpectRight(const std::string& kernel, const std::string& directives,
                              double tolerance) {
  const auto parsed = kernel::ParseKernel(kernel, context_);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto schedule = schedule::Parse(directives);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ExpectMatches(*parsed, *schedule, HostTarget(), InterpretKernel(*parsed), tolerance,
                kernel + directives);
}

void ExpectAllMatch(const kernel::Kernel& kernel, double tolerance, const std::string& what,
                    bool specials) {
  const auto interpreted = InterpretKernel(kernel, specials);
  ExpectMatches(kernel, {}, HostTarget(), interpreted, tolerance, what + " unscheduled");
  ExpectMatches(kernel, search::Choose(kernel, HostTarget()), HostTarget(), interpreted, tolerance,
                what);
}

}  // namespace kiln::codegen
