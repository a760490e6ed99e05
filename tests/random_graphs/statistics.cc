#include "tests/random_graphs/statistics.h"

#include <algorithm>

#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/op_def.h"

namespace kiln::random_graphs {

void Statistics::Add(const Trial& trial) {
  const std::vector<const ir::Node*> nodes = ir::TopologicalOrder(trial.random.graph.outputs);
  ++graphs_;
  failures_ += !trial.failure.empty();
  nodes_ += nodes.size();
  highest_nodes_ = std::max(highest_nodes_, nodes.size());
  kernels_ += trial.kernels;
  slopes_ += trial.has_slope;
  for (const ir::Node* node : nodes) {
    ++ops_[std::string(ops::DefOf(node->op()).name)];
    ++dtypes_[static_cast<int>(node->dtype())];
  }
  for (const std::string& op : trial.random.ops) {
    if (ops::FindOp(op)->kind == ops::Kind::kComposite) ++ops_[op];
  }
  for (size_t i = 0; i < trial.random.graph.outputs.size(); ++i) {
    ++outputs_;
    const bool is_float32 = trial.random.graph.outputs[i]->dtype() == ir::DType::kFloat32;
    if (is_float32) tolerances_.push_back(trial.random.tolerances[i]);
  }
}

std::vector<std::string> Statistics::MissingOps() const {
  std::vector<std::string> missing;
  for (const ops::OpDef& op : ops::AllOps()) {
    const auto count = ops_.find(std::string(op.name));
    if (count == ops_.end()) missing.emplace_back(op.name);
  }
  return missing;
}

std::string Statistics::Summary() const {
  std::vector<double> sorted = tolerances_;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double part) {
    return sorted.empty() ? 0 : sorted[static_cast<size_t>(part * (sorted.size() - 1))];
  };
  std::string text = StrCat(
      graphs_, " graphs, ", failures_, " different; ", nodes_, " nodes (at most ", highest_nodes_,
      " in one), ", kernels_, " kernels compiled, ", outputs_, " outputs compared, slopes of ",
      slopes_, " graphs against finite differences\ntolerance of float32 outputs: median ",
      quantile(0.5), ", 90% below ", quantile(0.9), "\nnodes by dtype:");
  for (const ir::DType dtype : ir::kAllDTypes) {
    StrAppend(&text, " ", ir::Name(dtype), " ", dtypes_[static_cast<size_t>(dtype)]);
  }
  const std::vector<std::string> missing = MissingOps();
  StrAppend(&text, "\nops: ", ops::AllOps().size() - missing.size(), " of ", ops::AllOps().size(),
            missing.empty() ? "" : "; never:");
  for (const std::string& op : missing) StrAppend(&text, " ", op);
  return text;
}

}  // namespace kiln::random_graphs
