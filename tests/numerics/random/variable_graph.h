// Graphs made by a function of the values of variables, and random ones.
#ifndef KILN_TESTS_NUMERICS_RANDOM_VARIABLE_GRAPH_H_
#define KILN_TESTS_NUMERICS_RANDOM_VARIABLE_GRAPH_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/builder.h"

namespace kiln::numerics {

// Builds a graph of ops by name; inputs are numbered in the order of creation.
struct Maker {
  // `sizes` may be null (compiler/ops/form_sizes.h).
  explicit Maker(ir::DType float_dtype, ops::FormSizes* sizes)
      : dtype(float_dtype), form_sizes(sizes) {
    graph.context = context;
  }

  // kInvalid: the float dtype.
  const ir::Node* Input(const ir::Shape& shape, ir::DType wanted = ir::DType::kInvalid);
  // Ends the process if the op refuses its operands.
  const ir::Node* Make(std::string_view op, std::vector<const ir::Node*> operands,
                       const ops::Attributes& attributes = {},
                       ir::DType declared = ir::DType::kInvalid);
  static std::vector<int64_t> List(std::initializer_list<int64_t> values) { return values; }

  const ir::DType dtype;
  ops::FormSizes* const form_sizes;
  std::shared_ptr<ir::Context> context = std::make_shared<ir::Context>();
  ops::Builder b{*context, form_sizes};
  graph::Graph graph;
  int made = 0;
};

// Makes a graph of some steps of all kinds, and gradients through them. The steps depend only on
// the seed; every size is a * n + b, and at least 1 for n >= 1.
void MakeVariableGraph(Maker& maker, uint64_t seed, int64_t n, int steps);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_VARIABLE_GRAPH_H_
