#include "tests/stand_ins/cuda/ptx/touched.h"

#include <algorithm>

namespace kiln::stand_ins::ptx {

void AddRange(std::vector<Range>& ranges, uint64_t begin, uint64_t end, size_t ranges_max) {
  if (begin >= end) return;
  auto first = std::lower_bound(ranges.begin(), ranges.end(), begin,
                                [](const Range& range, uint64_t at) { return range.end < at; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= end; ++last) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
  }
  if (last - first == 1) {
    *first = Range{begin, end};
  } else {
    ranges.insert(ranges.erase(first, last), Range{begin, end});
  }
  if (ranges.size() > ranges_max) ranges = {{ranges.front().begin, ranges.back().end}};
}

}  // namespace kiln::stand_ins::ptx
