// Resizes values at the ends of their dimensions.
#ifndef KILN_COMPILER_SHARD_FIT_H_
#define KILN_COMPILER_SHARD_FIT_H_

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ops/builder.h"

namespace kiln::shard {

// Not thread-safe, because its Builder is not.
class Fitter {
 public:
  explicit Fitter(ops::Builder& builder) : builder_(builder) {}

  // Returns a value of that shape with x's elements as far as both shapes reach; elements past x's
  // end are unspecified. Iotas, expands and values computed from them are rebuilt in the new size;
  // all others are cut and padded, which moves data between devices along split dimensions.
  const ir::Node* Fit(const ir::Node* x, const ir::Shape& shape);

 private:
  const ir::Node* MadeAnew(const ir::Node* x, const ir::Shape& shape, int depth);
  const ir::Node* Compute(const ir::Node* x, const ir::Shape& shape, int depth);
  const ir::Node* Elementwise(const ir::Node* x, const ir::Shape& shape, int depth);
  const ir::Node* Expanded(const ir::Node* x, const ir::Shape& shape);
  const ir::Node* Permuted(const ir::Node* x, const ir::Shape& shape, int depth);
  const ir::Node* Reshaped(const ir::Node* x, const ir::Shape& shape, int depth);

  ops::Builder& builder_;
  absl::flat_hash_map<std::pair<const ir::Node*, ir::Shape>, const ir::Node*> known_;
};

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_FIT_H_
