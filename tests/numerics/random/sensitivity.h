// Measures how far rounding may change the values of a graph, i.e. its condition.
//
// Every node is evaluated as in the interpreter, and four more times with each result of rounded
// arithmetic moved by a few units in its last place, at random (Monte Carlo arithmetic: Parker,
// "Monte Carlo arithmetic", 1997). The differences between compiled programs and the interpreter
// (sums in another order, fused multiplications and additions, polynomials for functions) are of
// that size. So if the evaluations agree, a compiled program that differs is wrong. In the last
// evaluation, sums that cancel completely are zero. Numbers with few digits, whose sums and
// products are exact, are not moved.
#ifndef KILN_TESTS_NUMERICS_RANDOM_SENSITIVITY_H_
#define KILN_TESTS_NUMERICS_RANDOM_SENSITIVITY_H_

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Measured properties of a value.
struct Measured {
  double largest = 0;  // of |finite elements|
  double spread = 0;   // largest |moved - value| / (1 + |value|); infinite if one is NaN, or if an
                       // integer or bool differs
  int64_t not_finite = 0;  // number of elements
  bool has_zero = false;
  bool is_short = false;  // all finite elements are multiples of 2^-10 below 2^12
};

// Returns true for a multiple of 2^-10 below 2^12: float32 represents sums of a thousand of them
// exactly.
bool IsShort(double value);

class Sensitivity {
 public:
  explicit Sensitivity(uint64_t seed) : random_(seed) {}

  // Adds the value of the next input, by InputAttr::index.
  void AddInput(ops::HostTensor value) { inputs_.push_back(std::move(value)); }

  // Returns the node, unless its value is known, and all nodes without a known value that it
  // depends on, operands first.
  std::vector<const ir::Node*> Unknown(const ir::Node* node) const;
  // Computes their values. Returns the interpreter's errors.
  absl::Status Evaluate(const ir::Node* node);

  // Requires: the node was evaluated.
  Measured Measure(const ir::Node* node) const;
  const ops::HostTensor& Value(const ir::Node* node) const { return values_.at(node)[0]; }

 private:
  // The first one is not moved. Two moved ones detect nothing if their moves happen to cancel, as
  // those of two factors do in about one of twenty products.
  static constexpr int kEvaluations = 5;
  static constexpr int kCollapsed = 4;  // the one in which pure rounding errors are zero
  using Values = std::array<ops::HostTensor, kEvaluations>;

  absl::Status EvaluateNode(const ir::Node* node);
  void Move(const ir::Node* node, absl::Span<const ops::HostTensor* const> operands, bool collapses,
            ops::HostTensor& result);

  std::mt19937_64 random_;
  std::vector<ops::HostTensor> inputs_;
  absl::flat_hash_map<const ir::Node*, Values> values_;
};

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_SENSITIVITY_H_
