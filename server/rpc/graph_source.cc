#include "server/rpc/graph_source.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/evp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "compiler/graph/wire.h"

namespace kiln::rpc {
namespace {

// SHA-256 of the message with its maps in order, without what does not change the program: where
// its nodes were written.
std::string KeyOf(const v1::Graph& graph) {
  v1::Graph bare = graph;
  for (v1::Node& node : *bare.mutable_nodes()) node.clear_source();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    bare.SerializeToCodedStream(&coded);
  }
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
             EVP_sha256(), nullptr);
  digest.resize(size);
  return absl::BytesToHexString(digest);
}

class WireGraph : public runtime::GraphSource {
 public:
  WireGraph(v1::Graph graph, std::vector<runtime::Variable> variables)
      : graph_(std::move(graph)), key_(KeyOf(graph_)), variables_(std::move(variables)) {}

  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return variables_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings& bindings) const override {
    return graph::FromProto(graph_, graph::Bindings(bindings.begin(), bindings.end()));
  }

 private:
  const v1::Graph graph_;
  const std::string key_;
  const std::vector<runtime::Variable> variables_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> MakeGraphSource(v1::Graph graph) {
  auto variables = graph::Variables(graph);
  if (!variables.ok()) return variables.status();
  return std::make_shared<const WireGraph>(std::move(graph), *std::move(variables));
}

}  // namespace kiln::rpc
