// Fuzzes the parser of graphs in text form with damaged prints of random graphs.
#include "compiler/graph/text.h"
#include "compiler/graph/wire/wire.h"
#include "tests/fuzz/check_graph.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

constexpr int kTexts = 64;
constexpr int kNodes = 12;

std::vector<std::string> MakeCorpus() {
  std::vector<std::string> texts;
  for (Random random(2026); texts.size() < kTexts;) {
    v1::Graph proto = RandomGraph(random, kNodes);
    absl::StatusOr<graph::Graph> graph = graph::FromProto(proto, {});
    if (graph.ok()) texts.push_back(graph::Print(*graph));
  }
  return texts;
}

Outcome TryOne(Random& random) {
  static const std::vector<std::string>& corpus = *new std::vector<std::string>(MakeCorpus());
  std::string text = corpus[Below(random, corpus.size())];
  const std::string& other = corpus[Below(random, corpus.size())];
  text = OneIn(random, 8) ? MutateBytes(random, text, other) : MutateText(random, text, other);
  return CheckResult(graph::Parse(text), "rejected");
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.02, kiln::fuzz::TryOne); }
