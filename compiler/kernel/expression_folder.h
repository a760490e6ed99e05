// Makes index and condition nodes and folds constants, so that substituted loops leave simple
// expressions. Sums keep the order in which they are made (except in dividends that are split),
// since code generators compute the outer loops' part of a sum first. IndexMath (index.h) instead
// gives equal sums one form.
#ifndef KILN_COMPILER_KERNEL_EXPRESSION_FOLDER_H_
#define KILN_COMPILER_KERNEL_EXPRESSION_FOLDER_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

class ExpressionFolder {
 public:
  explicit ExpressionFolder(ir::Context& context) : context_(context) {}

  const ir::Node* Int(int64_t value);
  const ir::Node* Bool(bool value);
  const ir::Node* Range(int64_t id, int64_t extent);
  const ir::Node* Add(const ir::Node* a, const ir::Node* b);
  const ir::Node* Mul(const ir::Node* a, int64_t factor);
  // Returns a / divisor, rounded down. Requires: divisor >= 1.
  const ir::Node* Quotient(const ir::Node* a, int64_t divisor);
  const ir::Node* Less(const ir::Node* a, const ir::Node* b);
  const ir::Node* Equal(const ir::Node* a, const ir::Node* b);
  // Null means true, as in Store::valid; the result is null if both are.
  const ir::Node* And(const ir::Node* a, const ir::Node* b);
  const ir::Node* Where(const ir::Node* condition, const ir::Node* a, const ir::Node* b);
  const ir::Node* Load(ir::DType dtype, int buffer, const ir::Node* index, const ir::Node* valid);

  // Returns the node with these parts, simplified where int64 and bool operands are constants.
  const ir::Node* Make(const ir::Node* like, std::vector<const ir::Node*> operands);

  using Map = absl::flat_hash_map<const ir::Node*, const ir::Node*>;
  // Returns `root` with the keys of `memo` replaced. Adds all nodes seen to `memo`, so that it can
  // be used again with the same replacements. Null stays null.
  const ir::Node* Substitute(const ir::Node* root, Map* memo);

  ir::Context& context() { return context_; }

 private:
  const ir::Node* Divide(ir::Op op, const ir::Node* dividend, const ir::Node* divisor);
  std::optional<std::pair<int64_t, Division>> LowDigit(const Sum& sum, int64_t divisor);
  const ir::Node* FromSum(const Sum& sum);
  // Returns true if a < b holds for all values of the ranges, false if for none; otherwise nothing.
  std::optional<bool> DecideLess(const ir::Node* a, const ir::Node* b);

  ir::Context& context_;
  IndexBounds bounds_;
};

// Returns whether the node is an int64 or bool constant, and its value.
bool IsConstant(const ir::Node* node, int64_t* value);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_EXPRESSION_FOLDER_H_
