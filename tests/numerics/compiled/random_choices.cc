#include "tests/numerics/compiled/random_choices.h"

#include <random>
#include <vector>

#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/sites.h"
#include "compiler/pipeline.h"

namespace kiln::numerics {

absl::StatusOr<std::string> RandomChoices(const graph::Graph& graph, const drivers::Target& target,
                                          const compiler::Options& options, uint64_t seed) {
  if (graph.sharding != nullptr) return "";
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, target, {"", "split_epilogues"}, options, &reports);
  if (!state.ok()) return state.status();
  std::mt19937_64 random(seed);
  // One site in eight, in two, or all.
  const uint64_t one_in[] = {8, 2, 1};
  const uint64_t rarity = one_in[random() % 3];
  partition::Choices choices;
  for (const partition::Site& site : partition::FindSites(state->graph, state->clusters, target)) {
    if (random() % rarity == 0) choices.values.emplace(site.value, site.choice);
    if (choices.values.size() == partition::kChoicesMax) break;
  }
  return choices.empty() ? "" : partition::Print(choices);
}

}  // namespace kiln::numerics
