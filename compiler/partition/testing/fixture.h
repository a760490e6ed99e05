// Builds graphs and partitions them, for tests.
#ifndef KILN_COMPILER_PARTITION_TESTING_FIXTURE_H_
#define KILN_COMPILER_PARTITION_TESTING_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/builder.h"
#include "compiler/partition/partition.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"

namespace kiln::partition {

class PartitionFixture : public testing::Test {
 protected:
  using Node = const ir::Node*;

  PartitionFixture() : context_(std::make_shared<ir::Context>()), b_(*context_) {
    graph_.context = context_;
  }

  Node Input(ir::Shape shape, ir::DType dtype = ir::DType::kFloat32) {
    graph_.inputs.push_back({dtype, shape});
    return b_.Input(static_cast<int64_t>(graph_.inputs.size()) - 1, dtype, shape);
  }

  // Returns [rows, columns]: the product of two inputs with `depth` columns and rows.
  Node Product(int64_t rows, int64_t depth, int64_t columns) {
    const ir::Shape terms = {rows, depth, columns};
    Node a = b_.Expand(b_.Reshape(Input({rows, depth}), {rows, depth, 1}), terms);
    Node b = b_.Expand(b_.Reshape(Input({depth, columns}), {1, depth, columns}), terms);
    return b_.Reshape(b_.Sum(b_.Mul(a, b), {1}), {rows, columns});
  }

  Partition Fused(std::vector<Node> outputs) {
    graph_.outputs = std::move(outputs);
    std::vector<compiler::PassReport> reports;
    absl::StatusOr<compiler::PassState> state =
        compiler::RunPasses(graph_, target_, {"normalize", "partition"}, {}, &reports);
    EXPECT_TRUE(state.ok()) << state.status();
    return std::move(state->partition);
  }

  std::shared_ptr<ir::Context> context_;
  ops::Builder b_;
  graph::Graph graph_;
  drivers::Target target_;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_TESTING_FIXTURE_H_
