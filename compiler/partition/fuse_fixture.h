// A graph in the making, for tests of what fusion does with it.
#ifndef KILN_COMPILER_PARTITION_FUSE_FIXTURE_H_
#define KILN_COMPILER_PARTITION_FUSE_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/builder.h"
#include "compiler/partition/fuse.h"
#include "gtest/gtest.h"

namespace kiln::partition {

class FuseFixture : public testing::Test {
 protected:
  using Node = const ir::Node*;

  FuseFixture() : context_(std::make_shared<ir::Context>()), b_(*context_) {
    graph_.context = context_;
  }

  Node Input(ir::Shape shape, ir::DType dtype = ir::DType::kFloat32) {
    graph_.inputs.push_back({dtype, shape});
    return b_.Input(static_cast<int64_t>(graph_.inputs.size()) - 1, dtype, shape);
  }

  // [rows, columns]: the product of two inputs that have `depth` columns and rows.
  Node Product(int64_t rows, int64_t depth, int64_t columns) {
    const ir::Shape terms = {rows, depth, columns};
    Node a = b_.Expand(b_.Reshape(Input({rows, depth}), {rows, depth, 1}), terms);
    Node b = b_.Expand(b_.Reshape(Input({depth, columns}), {1, depth, columns}), terms);
    return b_.Reshape(b_.Sum(b_.Mul(a, b), {1}), {rows, columns});
  }

  Partition Fused(std::vector<Node> outputs) {
    graph_.outputs = std::move(outputs);
    absl::StatusOr<Partition> partition = Fuse(graph_);
    EXPECT_TRUE(partition.ok()) << partition.status();
    EXPECT_EQ(Verify(*partition, graph_), absl::OkStatus());
    return *std::move(partition);
  }

  std::shared_ptr<ir::Context> context_;
  ops::Builder b_;
  graph::Graph graph_;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_FUSE_FIXTURE_H_
