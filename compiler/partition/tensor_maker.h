// Makes tensor-level movement and reductions, for passes that rewrite graphs. A movement that
// changes nothing returns its operand.
#ifndef KILN_COMPILER_PARTITION_TENSOR_MAKER_H_
#define KILN_COMPILER_PARTITION_TENSOR_MAKER_H_

#include <vector>

#include "compiler/ir/node.h"

namespace kiln::partition {

class TensorMaker {
 public:
  using Ints = std::vector<int64_t>;

  explicit TensorMaker(ir::Context& context) : context_(context) {}

  const ir::Node* Reshape(const ir::Node* x, ir::Shape shape);
  const ir::Node* Permute(const ir::Node* x, const Ints& axes);
  // Moves one dimension to position `to` of the result.
  const ir::Node* MoveAxis(const ir::Node* x, int64_t from, int64_t to);
  const ir::Node* Expand(const ir::Node* x, ir::Shape shape);
  const ir::Node* Pad(const ir::Node* x, const Ints& padding);
  const ir::Node* Shrink(const ir::Node* x, const Ints& bounds);
  // Keeps the reduced dimensions with size 1; without axes it returns x.
  const ir::Node* Reduce(ir::Op op, const ir::Node* x, const Ints& axes);
  const ir::Node* Zeros(ir::DType dtype, const ir::Shape& shape);

 private:
  ir::Context& context_;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_TENSOR_MAKER_H_
