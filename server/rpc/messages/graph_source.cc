#include "server/rpc/messages/graph_source.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/wire/wire.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"

namespace kiln::rpc {
namespace {

// A digest of a sequence of messages.
class Digest {
 public:
  // Adds the message's size, then the message with its maps sorted.
  void Add(const google::protobuf::Message& message) {
    bytes_.clear();
    {
      google::protobuf::io::StringOutputStream stream(&bytes_);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      message.SerializeToCodedStream(&coded);
    }
    // Without the sizes, different lists of nodes could give the same bytes.
    const uint64_t size = bytes_.size();
    digest_.Update({reinterpret_cast<const char*>(&size), sizeof(size)});
    digest_.Update(bytes_);
  }
  std::string Hex() { return digest_.FinishHex(); }

 private:
  Sha256 digest_;
  std::string bytes_;
};

// The digest of the graph without the source locations of its nodes, which do not change the
// program. Computed node by node, since a copy of a large graph would double its memory. `graph` is
// unchanged afterwards.
std::string KeyOf(v1::Graph& graph) {
  const int size = graph.nodes_size();
  Digest digest;
  for (v1::Node& node : *graph.mutable_nodes()) {
    std::string source;
    source.swap(*node.mutable_source());
    digest.Add(node);
    source.swap(*node.mutable_source());
  }
  google::protobuf::RepeatedPtrField<v1::Node> nodes;
  nodes.Swap(graph.mutable_nodes());
  digest.Add(graph);
  nodes.Swap(graph.mutable_nodes());
  KILN_CHECK(graph.nodes_size() == size && nodes.empty());
  return digest.Hex();
}

class WireGraph : public runtime::GraphSource {
 public:
  WireGraph(v1::Graph graph, std::string key, std::vector<runtime::Variable> variables,
            memory::Charge charge)
      : graph_(std::move(graph)),
        key_(std::move(key)),
        variables_(std::move(variables)),
        charge_(std::move(charge)) {}

  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return variables_; }
  std::string Wire() const override { return graph_.SerializeAsString(); }
  int64_t bytes() const override { return charge_.bytes(); }
  int64_t nodes() const override { return graph_.nodes_size(); }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings& bindings, const runtime::Grow& grow,
                                     ops::FormSizes* sizes) const override {
    graph::Limits limits;
    limits.grow = grow;
    return graph::FromProto(graph_, graph::Bindings(bindings.begin(), bindings.end()), limits,
                            sizes);
  }

 private:
  const v1::Graph graph_;
  const std::string key_;
  const std::vector<runtime::Variable> variables_;
  const memory::Charge charge_;
};

}  // namespace

// Counted here, because protobuf's reflection assumes the map layout of the library's build, which
// differs from a sanitizer's build.
int64_t BytesHeld(const v1::Graph& graph) {
  constexpr size_t kAttribute = 256;  // a map entry with its key and value
  size_t bytes = sizeof(v1::Graph) + 2 * graph.ByteSizeLong();
  for (const v1::Node& node : graph.nodes()) {
    bytes += sizeof(v1::Node) + kAttribute * node.attributes().size();
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> MakeGraphSource(
    v1::Graph graph, memory::Account& account) {
  auto charge = account.Reserve(memory::Use::kGraphs, BytesHeld(graph));
  if (!charge.ok()) return charge.status();
  auto variables = graph::Variables(graph);
  if (!variables.ok()) return variables.status();
  std::string key = KeyOf(graph);
  return std::make_shared<const WireGraph>(std::move(graph), std::move(key), *std::move(variables),
                                           *std::move(charge));
}

absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> UnpackGraphSource(
    absl::string_view wire, memory::Account& account) {
  v1::Graph graph;
  if (wire.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !graph.ParseFromArray(wire.data(), static_cast<int>(wire.size())))
    return absl::DataLossError("the graph of a program cannot be parsed");
  return MakeGraphSource(std::move(graph), account);
}

}  // namespace kiln::rpc
