#include "compiler/search/partial_sums.h"

#include <cstdint>

namespace kiln::search {
namespace {

constexpr int64_t kSums = 16;
constexpr int64_t kSumsOfLongSums = 64;
constexpr int64_t kLongReduction = 4096;

}  // namespace

std::vector<int> CutSums(std::vector<int> reduce, ScheduleWriter* writer) {
  if (reduce.empty()) return reduce;
  const int64_t extent = writer->extent(reduce.back());
  const int64_t sums = extent >= kLongReduction ? kSumsOfLongSums : kSums;
  if (extent < sums) return reduce;
  const auto [outer, inner] = writer->Split(reduce.back(), sums);
  writer->Bind(inner, schedule::Binding::kUnroll);
  writer->Partial(inner);
  reduce.back() = outer;
  reduce.push_back(inner);
  return reduce;
}

}  // namespace kiln::search
