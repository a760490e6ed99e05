// Values made longer or shorter at the ends of dimensions.
#ifndef KILN_COMPILER_SHARD_FIT_H_
#define KILN_COMPILER_SHARD_FIT_H_

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ops/builder.h"

namespace kiln::shard {

// Not thread-safe, as its Builder.
class Fitter {
 public:
  explicit Fitter(ops::Builder& builder) : builder_(builder) {}

  // A value of that shape with x's elements as far as both go; what is beyond x's end is
  // unspecified. What is repeated, counted or made of such values is made anew; all else is cut and
  // padded, which moves what is split there.
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
