// Graphs for tests of the runtime, without a client.
#ifndef KILN_SERVER_RUNTIME_TESTING_COPY_SOURCE_H_
#define KILN_SERVER_RUNTIME_TESTING_COPY_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/errors/errors.h"
#include "server/runtime/cache/graph_source.h"

namespace kiln::testing {

// A graph of `count` floats: the input itself. The key may differ between equal graphs.
class CopySource : public runtime::GraphSource {
 public:
  CopySource(std::string key, int64_t count) : key_(std::move(key)), count_(count) {}
  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings&, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    if (count_ < 0) return absl::InvalidArgumentError("node 0: negative");
    graph::Graph graph;
    graph.context = std::make_shared<ir::Context>();
    graph.inputs.push_back({ir::DType::kFloat32, {count_}});
    graph.outputs.push_back(
        graph.context->Get(ir::Op::kInput, ir::DType::kFloat32, {count_}, {}, ir::InputAttr{0}));
    return graph;
  }

 private:
  const std::string key_;
  const int64_t count_;
  const std::vector<runtime::Variable> none_;
};

// A graph of n ** power floats: the input itself.
class VariableCopySource : public runtime::GraphSource {
 public:
  explicit VariableCopySource(int64_t power, int64_t max = 8)
      : key_(std::string(power, 'n')), power_(power), variables_({{"n", 1, max}}) {}
  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return variables_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings& bindings, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    int64_t count = 1;
    for (int64_t i = 0; i < power_; ++i) count *= bindings.at("n");
    return CopySource("", count).Build({}, {}, nullptr);
  }

 private:
  const std::string key_;
  const int64_t power_;
  const std::vector<runtime::Variable> variables_;
};

// Until Free, host memory is enough only for graphs of one float.
class ShortOfMemory : public VariableCopySource {
 public:
  ShortOfMemory() : VariableCopySource(1) {}
  void Free() { short_ = false; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings& bindings, const runtime::Grow& grow,
                                     ops::FormSizes* sizes) const override {
    if (bindings.at("n") == 1 || !short_) return VariableCopySource::Build(bindings, grow, sizes);
    return errors::WithReason(absl::ResourceExhaustedError("no room"), "HOST_MEMORY");
  }

 private:
  std::atomic<bool> short_{true};
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_RUNTIME_TESTING_COPY_SOURCE_H_
