#include "compiler/ops/form_sizes.h"

#include <algorithm>

namespace kiln::ops {

SizeRange FormSizes::Next(int64_t size) {
  const std::pair<int, int> key = {node_, next_++};
  const SizeRange own = {size, size};
  if (grows_) {
    SizeRange& range = ranges_.try_emplace(key, own).first->second;
    range = {std::min(range.least, size), std::max(range.most, size)};
    return range;
  }
  const auto known = ranges_.find(key);
  if (known == ranges_.end()) return own;
  const SizeRange& range = known->second;
  return range.least <= size && size <= range.most ? range : own;
}

}  // namespace kiln::ops
