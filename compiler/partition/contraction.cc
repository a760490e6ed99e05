#include "compiler/partition/contraction.h"

#include <algorithm>
#include <cstdint>

#include "compiler/ir/dtype.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// Returns how often the view `factor` repeats the elements of its source.
double Repetition(const Node* factor) {
  double repetition = 1;
  while (IsMovement(factor) || factor->op() == Op::kCast) {
    const Node* operand = factor->operand(0);
    const auto elements = std::max<int64_t>(1, ir::NumElements(operand->shape()));
    repetition *=
        static_cast<double>(ir::NumElements(factor->shape())) / static_cast<double>(elements);
    factor = operand;
  }
  return repetition;
}

// A pad also makes a view larger than its source, but rarely by half.
bool Repeats(const Node* factor) { return Repetition(factor) > 1.5; }

}  // namespace

const Node* ProductOf(const Node* reduction) {
  if (reduction->op() != Op::kReduceSum) return nullptr;
  const Node* value = reduction->operand(0);
  while (value->op() == Op::kCast || IsMovement(value)) value = value->operand(0);
  return value->op() == Op::kMul ? value : nullptr;
}

bool IsContraction(const Node* node) {
  const Node* product = ProductOf(node);
  // If one factor is read only once, like the matrix in a matrix-vector product, tiles save no
  // reads of it: memory bandwidth is the limit and the sum is fused like any other reduction.
  return product != nullptr && Repeats(product->operand(0)) && Repeats(product->operand(1));
}

double TileSide(const Node* contraction) {
  const Node* product = ProductOf(contraction);
  return std::min(Repetition(product->operand(0)), Repetition(product->operand(1)));
}

}  // namespace kiln::partition
