// Fuzzes the decoder of graphs from the wire: whole random graphs, graphs with something changed,
// and damaged bytes.
#include "compiler/graph/error.h"
#include "compiler/graph/wire.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/check_graph.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

constexpr int kNodes = 12;

Outcome TryOne(Random& random) {
  v1::Graph proto = RandomGraph(random, kNodes);
  size_t kind = Below(random, 4);
  if (kind >= 2) MutateGraph(random, &proto);
  std::string bytes = proto.SerializeAsString();
  if (kind == 1) bytes = MutateBytes(random, bytes, bytes);
  graph::Bindings bindings;
  if (proto.variables_size() > 0 || OneIn(random, 16)) {
    bindings["n"] = static_cast<int64_t>(Below(random, 6));
  }
  absl::StatusOr<graph::Graph> result = graph::FromBytes(bytes, bindings);
  return CheckResult(result, graph::ErrorDetail(result.status(), "reason"));
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  google::protobuf::SetLogHandler(nullptr);  // damaged names are what we are here for
  return kiln::fuzz::Run(argc, argv, 0.2, kiln::fuzz::TryOne);
}
