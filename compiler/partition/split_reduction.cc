#include "compiler/partition/split_reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/partition/limits.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;

namespace {

// Results of the first reduction at most, and the elements that go into each at least.
constexpr int64_t kMaxParts = 1024;
constexpr int64_t kMinPart = 64;

// The number of parts in which an axis of this size is cut: itself where that is a good number; 0
// if there is none.
int64_t PartsOf(int64_t size, int64_t total) {
  for (int64_t parts = std::min(size, kMaxParts); parts >= kEnoughPoints; --parts) {
    if (size % parts == 0 && total / parts >= kMinPart) return parts;
  }
  return 0;
}

}  // namespace

const Node* SplitReduction(ir::Context& context, const Node* node) {
  if (!IsReduction(node) || ir::NumElements(node->shape()) >= kEnoughPoints) return node;
  const Node* x = node->operand(0);
  const int64_t total = ir::NumElements(x->shape()) / ir::NumElements(node->shape());
  if (ir::NumElements(x->shape()) <= kSmallWork) return node;
  std::vector<int64_t> axes = node->attr<ir::IntsAttr>().values;
  // The leading axis first, which leaves what is contiguous to the first reduction.
  std::sort(axes.begin(), axes.end());
  for (const int64_t axis : axes) {
    const int64_t size = x->shape()[axis];
    const int64_t parts = PartsOf(size, total);
    if (parts == 0) continue;
    TensorMaker make(context);
    ir::Shape cut = x->shape();
    cut[axis] = parts;
    cut.insert(cut.begin() + axis + 1, size / parts);
    std::vector<int64_t> inner;
    for (const int64_t other : axes) {
      if (other != axis) inner.push_back(other < axis ? other : other + 1);
    }
    inner.push_back(axis + 1);
    std::sort(inner.begin(), inner.end());
    const Node* first = make.Reduce(node->op(), make.Reshape(x, std::move(cut)), inner);
    ir::Shape joined = node->shape();
    joined[axis] = parts;
    return make.Reduce(node->op(), make.Reshape(first, std::move(joined)), {axis});
  }
  return node;
}

}  // namespace kiln::partition
