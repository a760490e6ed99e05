#include "compiler/search/testing/random_setting.h"

#include <vector>

namespace kiln::search {
namespace {

constexpr int kSteps = 4;
constexpr int kAttempts = 4;

}  // namespace

Setting Scattered(const Space& space, Setting setting, std::mt19937_64& random) {
  for (const auto& [part, knob] : space.Knobs(setting)) {
    if (knob.knob == Knob::kForm || random() % 3 != 0) continue;
    setting.parts[part].Set(knob.knob, knob.values[random() % knob.values.size()]);
  }
  return setting;
}

Setting RandomSetting(const Space& space, std::mt19937_64& random) {
  Setting here = space.heuristic();
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Setting> neighbours = space.Neighbours(here);
    if (neighbours.empty()) break;
    const Setting& next = neighbours[random() % neighbours.size()];
    if (space.Write(next).ok()) here = next;
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Setting there = Scattered(space, here, random);
    if (space.Write(there).ok()) return there;
  }
  return here;
}

}  // namespace kiln::search
