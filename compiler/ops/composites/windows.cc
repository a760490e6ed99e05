#include "compiler/ops/composites/windows.h"

#include <vector>

namespace kiln::ops {

const ir::Node* PadSpatial(Builder& b, const ir::Node* x, const Sliding& sliding) {
  std::vector<int64_t> padding(2 * (x->shape().size() - sliding.rank()), 0);
  for (size_t i = 0; i < sliding.rank(); ++i) {
    padding.insert(padding.end(), {sliding.before[i], sliding.after[i]});
  }
  return b.Pad(x, padding);
}

const ir::Node* Windows(Builder& b, const ir::Node* x, const Sliding& sliding) {
  const auto first = static_cast<int64_t>(x->shape().size() - sliding.rank());
  for (size_t i = 0; i < sliding.rank(); ++i) {
    // Each window appends its dimension, so the spatial axes keep their indices.
    x = b.Window(x, first + static_cast<int64_t>(i), sliding.size[i], sliding.stride[i],
                 sliding.dilation[i]);
  }
  return x;
}

}  // namespace kiln::ops
