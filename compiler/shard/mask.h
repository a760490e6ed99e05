// Replaces elements past the end of a tensor by values that do not change results.
#ifndef KILN_COMPILER_SHARD_MASK_H_
#define KILN_COMPILER_SHARD_MASK_H_

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "compiler/ops/builder.h"

namespace kiln::shard {

// Not thread-safe, because its Builder is not. Elements are selected, never multiplied by 0: the
// padding may be NaN.
class Masker {
 public:
  explicit Masker(ops::Builder& builder) : builder_(builder) {}

  // Returns x with the reduction's identity from `size` on along a dimension.
  const ir::Node* Identity(const ir::Node* x, int64_t dim, int64_t size, ir::Op reduction);

  // Returns x with `value`, a scalar, from `size` on along a dimension.
  const ir::Node* Replace(const ir::Node* x, int64_t dim, int64_t size, const ir::Node* value);

 private:
  const ir::Node* Zero(const ir::Node* x, int64_t dim, int64_t size);
  const ir::Node* ZeroBelow(const ir::Node* x, int64_t dim, int64_t size);
  const ir::Node* ZeroExpand(const ir::Node* x, int64_t dim, int64_t size);
  const ir::Node* ZeroReshape(const ir::Node* x, int64_t dim, int64_t size);
  const ir::Node* ZeroHere(const ir::Node* x, int64_t dim, int64_t size);

  ops::Builder& builder_;
  absl::flat_hash_map<std::tuple<const ir::Node*, int64_t, int64_t>, const ir::Node*> known_;
};

// Returns whether the node multiplies two views that repeat elements, as a matmul or a convolution
// does.
bool IsOuterProduct(const ir::Node* node);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_MASK_H_
