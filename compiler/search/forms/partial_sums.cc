#include "compiler/search/forms/partial_sums.h"

#include <algorithm>

#include "compiler/search/forms/forms.h"

namespace kiln::search {
namespace {

constexpr int64_t kSums = 16;
constexpr int64_t kSumsOfLongSums = 64;
constexpr int64_t kLongReduction = 4096;

}  // namespace

int64_t StartPartialSums(int64_t extent) {
  const int64_t sums = extent >= kLongReduction ? kSumsOfLongSums : kSums;
  return extent < sums ? 1 : sums;
}

KnobValues PartialSumsKnob(int64_t extent) {
  return Powers(Knob::kPartialSums, 1, std::clamp<int64_t>(extent, 1, kSumsOfLongSums));
}

std::vector<int> CutSums(std::vector<int> reduce, int64_t sums, ScheduleWriter* writer) {
  if (sums == 1) return reduce;
  const auto [outer, inner] = writer->Split(reduce.back(), sums);
  writer->Bind(inner, schedule::Binding::kUnroll);
  writer->Partial(inner);
  reduce.back() = outer;
  reduce.push_back(inner);
  return reduce;
}

}  // namespace kiln::search
