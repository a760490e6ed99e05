// Makes random graphs step by step. Internal to numerics/random.
#ifndef KILN_TESTS_NUMERICS_RANDOM_GENERATOR_H_
#define KILN_TESTS_NUMERICS_RANDOM_GENERATOR_H_

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ops/builder.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/random/graph.h"
#include "tests/numerics/random/sensitivity.h"

namespace kiln::numerics {

struct Value {
  const ir::Node* node = nullptr;  // null: nothing was made
  // A compiled program must give exactly these bits: inputs, and results of ops that only move,
  // compare or count exact values. Arithmetic is exact as long as the numbers have few digits.
  bool exact = false;
  Measured measured = {};
};

class Generator {
 public:
  explicit Generator(const RandomGraphOptions& options);

  // Adds one value.
  void Step();
  RandomGraph Finish();
  RandomGraph FinishWithGradients();

 private:
  using Attributes = ops::Attributes;
  using Node = ir::Node;
  using Fits = std::function<bool(const Value&)>;

  // Returns a number in [0, count). The library's distributions differ between implementations.
  size_t Draw(size_t count) { return random_() % count; }
  bool Coin() { return Draw(2) == 0; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Draw(static_cast<size_t>(high - low + 1)));
  }
  int64_t ElementsMax() const;
  ir::Shape RandomShape();
  int64_t RandomSize();
  ir::DType FloatDType();
  ir::DType IntegerDType();
  ir::DType AnyDType();

  // generator.cc: values.
  Value NewInput(ops::HostTensor data);
  Value NewInput(ir::DType dtype, const ir::Shape& shape);
  double RandomNumber(ir::DType dtype, bool fine);
  Value Pick(const Fits& fits);
  Value PickFloat();
  Value PickInt();
  Value PickAny();
  Value Partner(const Value& x);
  bool Accept(Value& value);
  void MarkUsed(const Node* node);
  bool HasGoodNumbers(const Value& value) const;
  RandomGraph Result();

  // arithmetic.cc
  Value FloatUnary();
  Value FloatBinary();
  Value Integer();
  Value Choice();
  Value Reduction();
  Value Contraction();
  Value Conversion();
  Value Source();
  Value Positive(const Value& x);
  const Node* Fenced(const Node* product);
  Value Apply(const char* name, std::vector<const Node*> operands, const Attributes& attributes);

  // movement.cc
  Value Movement();
  Value View(const Value& x);
  Value Sliding();
  Value Gathering();
  Value GatheringElements(const Value& x, int64_t axis);
  const Node* AroundRange(const Node* raw, int64_t size);
  ir::ScatterMode RandomMode();

  // case.cc: a case of the table, applied to values of the graph.
  Value Graft();
  bool MayHaveZeros(const Node* node);
  bool IsFinite(const Node* node);
  Case Varied(Case test_case);
  void VaryShapes(Case& test_case);
  void VaryAttributes(Case& test_case);

  // fit.cc: operands for a case.
  Value Fitted(const OperandSpec& spec, ir::DType dtype, bool exact, int position);
  Value Near(const OperandSpec& spec, ir::DType dtype, int position);
  Value InDType(const Value& x, ir::DType dtype);
  const Node* InShape(const Node* x, const ir::Shape& shape);
  Value InRange(const Value& x, const OperandSpec& spec, bool exact);
  Value AroundCase(const Value& x, const OperandSpec& spec, int position);

  static int64_t Rank(const Value& x) { return static_cast<int64_t>(x.node->shape().size()); }

  const RandomGraphOptions options_;
  std::mt19937_64 random_;
  graph::Graph graph_;
  ops::Builder builder_;
  std::vector<ops::HostTensor> data_;
  std::vector<const Node*> inputs_;
  std::vector<Value> values_;
  std::vector<std::string> ops_;
  std::string grafted_;                    // the row the last graft applied
  absl::flat_hash_set<const Node*> used_;  // values that other values depend on
  Sensitivity sensitivity_;
};

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_GENERATOR_H_
