#include "tests/full_size/lanes.h"

#include <string>

#include "drivers/cpu/host.h"

namespace kiln::full_size {
namespace {

std::string FeaturesOf(int lanes) { return lanes == 4 ? "sse4.2" : lanes == 8 ? "avx2" : "avx512"; }

}  // namespace

std::vector<int> ExecutableLanes() {
  std::vector<int> executable;
  for (const int lanes : {4, 8, 16}) {
    if (drivers::cpu::DetectTarget(1, FeaturesOf(lanes)).ok()) executable.push_back(lanes);
  }
  return executable;
}

drivers::Target TargetWith(int lanes, int compute_units) {
  return *drivers::cpu::DetectTarget(compute_units, FeaturesOf(lanes));
}

}  // namespace kiln::full_size
