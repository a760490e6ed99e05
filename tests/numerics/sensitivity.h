// How far rounding may move the values of a graph: its condition, measured.
//
// Every node is evaluated as the interpreter does, and four times more with each result of rounded
// arithmetic moved by a few units of its last place, at random (a Monte Carlo arithmetic: Parker,
// "Monte Carlo arithmetic", 1997). What compiled programs do otherwise than the interpreter (sums
// in another order, fused multiplications and additions, polynomials for functions) is of that
// size, so where the evaluations stay together a program that strays is wrong. In the last
// one sums in which everything cancels are zero. Numbers of few digits, whose sums and products are
// exact, are not moved.
#ifndef KILN_TESTS_NUMERICS_SENSITIVITY_H_
#define KILN_TESTS_NUMERICS_SENSITIVITY_H_

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// What is known of a value.
struct Measured {
  double largest = 0;  // of |finite elements|
  double spread = 0;   // largest |moved - value| / (1 + |value|); infinite where one is NaN, or an
                       // integer or bool differs
  int64_t not_finite = 0;  // elements
  bool has_zero = false;
  bool is_short = false;  // all finite elements are multiples of 2^-10 below 2^12
};

// Whether a number is a multiple of 2^-10 below 2^12: float32 has room for sums of a thousand.
bool IsShort(double value);

class Sensitivity {
 public:
  explicit Sensitivity(uint64_t seed) : random_(seed) {}

  // The value of the next input, by InputAttr::index.
  void AddInput(ops::HostTensor value) { inputs_.push_back(std::move(value)); }

  // The node, if its value is not known yet, and what it needs of that kind, operands first.
  std::vector<const ir::Node*> Unknown(const ir::Node* node) const;
  // Makes them known. An error of the interpreter's.
  absl::Status Evaluate(const ir::Node* node);

  // Of a node that was evaluated.
  Measured Measure(const ir::Node* node) const;
  const ops::HostTensor& Value(const ir::Node* node) const { return values_.at(node)[0]; }

 private:
  // The first one unmoved. Two moved ones see nothing where their moves happen to cancel, as those
  // of two factors do once in some twenty products.
  static constexpr int kEvaluations = 5;
  static constexpr int kCollapsed = 4;  // the one in which what is only rounding is zero
  using Values = std::array<ops::HostTensor, kEvaluations>;

  absl::Status EvaluateNode(const ir::Node* node);
  void Move(const ir::Node* node, absl::Span<const ops::HostTensor* const> operands, bool collapses,
            ops::HostTensor& result);

  std::mt19937_64 random_;
  std::vector<ops::HostTensor> inputs_;
  absl::flat_hash_map<const ir::Node*, Values> values_;
};

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_SENSITIVITY_H_
