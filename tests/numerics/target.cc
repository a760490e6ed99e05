#include "tests/numerics/target.h"

#include "drivers/cpu/host.h"

namespace kiln::numerics {
namespace {

std::string& Words() {
  static std::string& words = *new std::string;
  return words;
}

}  // namespace

absl::Status SetCpuFeatures(const std::string& words) {
  const auto target = drivers::cpu::DetectTarget(1, words);
  if (target.ok()) Words() = words;
  return target.status();
}

const std::string& CpuFeatures() { return Words(); }

const drivers::Target& HostTarget() {
  static const drivers::Target& target =
      *new drivers::Target(*drivers::cpu::DetectTarget(2, CpuFeatures()));
  return target;
}

}  // namespace kiln::numerics
