// Fuzzes the decoder of graphs from the wire: whole random graphs, graphs with changes, and damaged
// bytes.
#include "compiler/graph/error.h"
#include "compiler/graph/wire/wire.h"
#include "google/protobuf/stubs/logging.h"
#include "kiln/v1/graph.pb.h"
#include "tests/fuzz/check_graph.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

constexpr int kNodes = 12;
constexpr int kCorpus = 512;

// A new graph is expensive, since it is checked after every node; most inputs are damaged copies of
// one of these.
const v1::Graph& FromCorpus(Random& random) {
  static const auto& corpus = *new std::vector<v1::Graph>([] {
    std::vector<v1::Graph> graphs;
    Random own(2026);
    for (int i = 0; i < kCorpus; ++i) graphs.push_back(RandomGraph(own, kNodes));
    return graphs;
  }());
  return corpus[Below(random, corpus.size())];
}

struct Input {
  std::string bytes;
  graph::Bindings bindings;
};

Input MakeInput(Random& random) {
  bool fresh = OneIn(random, 32);
  v1::Graph proto = fresh ? RandomGraph(random, kNodes) : FromCorpus(random);
  Input input;
  if ((proto.variables_size() > 0) != OneIn(random, 32)) {
    input.bindings["n"] = OneIn(random, 8) ? 5 : 1 + static_cast<int64_t>(Below(random, 4));
  }
  bool damage_bytes = !fresh && OneIn(random, 3);
  if (!fresh && !damage_bytes) MutateGraph(random, &proto);
  input.bytes = proto.SerializeAsString();
  if (damage_bytes) {
    input.bytes = MutateBytes(random, input.bytes, FromCorpus(random).SerializeAsString());
  }
  return input;
}

Outcome TryOne(Random& random) {
  Input input = MakeInput(random);
  v1::Graph proto;
  if (!proto.ParseFromString(input.bytes)) return {"no message", std::nullopt};
  absl::StatusOr<graph::Graph> result = graph::FromProto(proto, input.bindings);
  return CheckResult(result, graph::ErrorDetail(result.status(), "reason"));
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  google::protobuf::SetLogHandler(nullptr);  // damaged names are expected here
  return kiln::fuzz::Run(argc, argv, 0.08, kiln::fuzz::TryOne);
}
