#include "compiler/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/round_factors.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/stages.h"
#include "compiler/graph/verify.h"
#include "compiler/graph/widen.h"
#include "compiler/kernel/lower.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/build_partition.h"
#include "compiler/partition/cluster/cluster.h"
#include "compiler/partition/cluster/fuse_horizontally.h"
#include "compiler/partition/cluster/merge_rows.h"
#include "compiler/partition/cluster/split_epilogues.h"
#include "compiler/partition/memory/commit_last.h"
#include "compiler/partition/memory/order_groups.h"
#include "compiler/partition/normalize/normalize.h"
#include "compiler/partition/scatter/prepare_scatters.h"
#include "compiler/pass_timer.h"
#include "compiler/shard/padding.h"
#include "compiler/shard/send_order.h"
#include "compiler/shard/shard.h"

namespace kiln::compiler {
namespace {

template <graph::Graph (*rewrite)(const graph::Graph&)>
absl::Status Rewrite(PassState& state, const drivers::Target& target) {
  state.graph = rewrite(state.graph);
  return absl::OkStatus();
}

template <graph::Graph (*rewrite)(const graph::Graph&, const drivers::Target&)>
absl::Status RewriteFor(PassState& state, const drivers::Target& target) {
  state.graph = rewrite(state.graph, target);
  return absl::OkStatus();
}

template <void (*change)(partition::Clustering*)>
absl::Status Change(PassState& state, const drivers::Target& target) {
  change(&state.clusters);
  return absl::OkStatus();
}

absl::Status Differentiate(PassState& state, const drivers::Target& target) {
  absl::StatusOr<graph::Graph> result = autodiff::Differentiate(state.graph);
  if (!result.ok()) return result.status();
  state.graph = *std::move(result);
  // The device of a gradient whose value depends on no input is only known now.
  const bool has_stages = state.graph.sharding != nullptr && state.graph.sharding->stages;
  return has_stages ? graph::FindHomes(state.graph).status() : absl::OkStatus();
}

absl::Status Shard(PassState& state, const drivers::Target& target) {
  if (state.graph.sharding == nullptr) return absl::OkStatus();
  if (!shard::ComesOutEven(state.graph)) {
    return absl::InternalError("a size that the mesh does not divide reached the pass \"shard\"");
  }
  if (absl::Status few = shard::CheckSends(state.graph); !few.ok()) return few;
  state.sharded = shard::Shard(state.graph);
  return absl::OkStatus();
}

// Returns whether the index arithmetic of kernels can prove that a task accesses only its own part
// of every value that it keeps.
bool LocalsLower(const partition::Partition& partition) {
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    if (partition.groups[i].locals.empty()) continue;
    if (!kernel::Lower(partition, static_cast<int>(i), context).ok()) return false;
  }
  return true;
}

absl::Status Cluster(PassState& state, const drivers::Target& target) {
  partition::ChosenValues chosen;
  if (!state.choices.text.empty() && state.choices.refusal.empty()) {
    const absl::StatusOr<partition::Choices> choices = partition::ParseChoices(state.choices.text);
    if (choices.ok()) {
      chosen = partition::ChosenValues(*choices, state.graph);
    } else {
      state.choices.refusal = std::string(choices.status().message());
    }
  }
  state.clusters = partition::MakeClusters(state.graph, target, chosen);
  const bool has_tiles = absl::c_any_of(
      state.clusters.clusters, [](const partition::Cluster& cluster) { return cluster.tiled; });
  // Tiles are found by digits of loops, which can express more than index arithmetic can prove.
  if (has_tiles && !LocalsLower(partition::BuildPartition(state.graph, state.clusters, target))) {
    drivers::Target without_tiles = target;
    without_tiles.limits.shared_bytes_per_block = 0;
    state.clusters = partition::MakeClusters(state.graph, without_tiles, std::move(chosen));
  }
  return absl::OkStatus();
}

absl::Status BuildPartition(PassState& state, const drivers::Target& target) {
  state.partition = partition::BuildPartition(state.graph, state.clusters, target);
  return absl::OkStatus();
}

absl::Status OrderGroups(PassState& state, const drivers::Target& target) {
  partition::OrderGroups(&state.partition);
  return absl::OkStatus();
}

absl::Status UpdateInPlace(PassState& state, const drivers::Target& target) {
  // The threads of a block make their accesses at once, so their kernels do not work in place.
  state.updates_in_place = target.limits.threads_per_block == 1;
  if (!state.updates_in_place) return absl::OkStatus();
  return partition::CommitLast(state.graph, target, &state.partition);
}

absl::Status PlanMemory(PassState& state, const drivers::Target& target) {
  auto memory = partition::PlanMemory(state.partition, target);
  if (!memory.ok()) return memory.status();
  state.memory = *std::move(memory);
  return absl::OkStatus();
}

constexpr bool kRequired = false;
constexpr bool kOptional = true;

constexpr Pass kPasses[] = {
    // First: simplification does not change a graph with gradient requests.
    {"differentiate", PassLevel::kGraph, kRequired, Differentiate},
    // Before simplify, which removes the unnecessary casts that it adds.
    {"widen", PassLevel::kGraph, kRequired, Rewrite<graph::Widen>},
    // Before normalize, which merges a contraction and a sum over it into one sum. Not optional: a
    // graph that asks for tf32 must give the same results on every device.
    {"round_factors", PassLevel::kGraph, kRequired, Rewrite<graph::RoundFactors>},
    {"simplify", PassLevel::kGraph, kOptional, Rewrite<graph::Simplify>},
    // After simplify, which expects whole tensors; shard requires sizes that divide evenly.
    {"pad_shards", PassLevel::kGraph, kRequired, Rewrite<shard::PadShards>},
    // After simplify, which expects whole tensors; before all passes that depend on sizes, which
    // are local from here on.
    {"shard", PassLevel::kGraph, kRequired, Shard},
    {"normalize", PassLevel::kGraph, kOptional, RewriteFor<partition::Normalize>},
    // Separate from normalize, which may be disabled: clustering and lowering handle only this form
    // of scatters.
    {"prepare_scatters", PassLevel::kGraph, kRequired, RewriteFor<partition::PrepareScatters>},
    // A value joins at most one cluster. The next two passes merge clusters that this leaves apart.
    {"cluster", PassLevel::kClusters, kRequired, Cluster},
    {"merge_rows", PassLevel::kClusters, kOptional, Change<partition::MergeRows>},
    {"fuse_horizontally", PassLevel::kClusters, kOptional, Change<partition::FuseHorizontally>},
    {"split_epilogues", PassLevel::kClusters, kOptional, Change<partition::SplitEpilogues>},
    {"partition", PassLevel::kPartition, kRequired, BuildPartition},
    {"order_groups", PassLevel::kPartition, kOptional, OrderGroups},
    // After order_groups, whose order it changes.
    {"update_in_place", PassLevel::kPartition, kOptional, UpdateInPlace},
    // After order_groups, since the order is the plan's time axis.
    {"plan_memory", PassLevel::kMemory, kRequired, PlanMemory},
    {"lower", PassLevel::kKernels, kRequired},
    // Without it every kernel is one task of serial scalar loops.
    {"schedule", PassLevel::kKernels, kOptional},
    {"emit", PassLevel::kKernels, kRequired},
};

// Verifies only the part of the state that a pass of this level changes.
absl::Status Verify(PassLevel level, const PassState& state) {
  switch (level) {
    case PassLevel::kGraph:
      return state.sharded ? shard::Verify(*state.sharded) : graph::Verify(state.graph);
    case PassLevel::kClusters:
      return partition::Verify(state.clusters);
    case PassLevel::kPartition:
      return partition::Verify(state.partition, state.graph);
    case PassLevel::kMemory:
      return partition::Verify(state.memory, state.partition);
    case PassLevel::kKernels:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

std::string Print(PassLevel level, const PassState& state) {
  switch (level) {
    case PassLevel::kGraph:
      return state.sharded ? shard::Print(*state.sharded) : graph::Print(state.graph);
    case PassLevel::kClusters:
      return partition::Print(state.clusters);
    case PassLevel::kPartition:
      return partition::Print(state.partition);
    case PassLevel::kMemory:
      return partition::Print(state.memory);
    case PassLevel::kKernels:
      return "";
  }
  return "";
}

absl::Status Run(const Pass& pass, const drivers::Target& target, const Options& options,
                 PassState& state, std::vector<PassReport>* reports) {
  PassTimer timer(pass.name, options, reports);
  // The passes after an optional pass accept the state with and without it.
  if (timer.disabled()) return absl::OkStatus();
  if (absl::Status status = pass.run(state, target); !status.ok()) return status;
  if (options.verify) {
    if (absl::Status legal = Verify(pass.level, state); !legal.ok()) {
      return absl::InternalError(
          absl::StrCat("after pass ", std::string(pass.name), ": ", legal.message()));
    }
  }
  timer.Stop();
  if (timer.dumped()) timer.SetText(Print(pass.level, state));
  return absl::OkStatus();
}

// Sets the choices for the graph that the partitioner gets.
void LookUpChoices(const drivers::Target& target, const Options& options, PassState* state) {
  if (!options.choices) return;
  state->choices.key = partition::GraphKey(state->graph);
  state->choices.text = options.choices(state->choices.key, target).value_or("");
}

absl::StatusOr<absl::Span<const Pass>> Select(PassRange range) {
  const Pass* first = std::begin(kPasses);
  const Pass* last = std::end(kPasses);
  // Without a name, the last pass that works on the state.
  while (last[-1].level == PassLevel::kKernels) --last;
  if (!range.first.empty()) {
    const absl::StatusOr<const Pass*> found = FindPass(range.first);
    if (!found.ok()) return found.status();
    first = *found;
  }
  if (!range.last.empty()) {
    const absl::StatusOr<const Pass*> found = FindPass(range.last);
    if (!found.ok()) return found.status();
    last = *found + 1;
  }
  // Only a graph can be the start; later passes need the results of those before them.
  if (first->level != PassLevel::kGraph) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pass ", std::string(first->name),
                     " does not work on graphs; run everything up to it instead"));
  }
  if (last[-1].level == PassLevel::kKernels) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pass ", std::string(last[-1].name), " works on one kernel at a time"));
  }
  return absl::MakeConstSpan(first, std::max(first, last) - first);
}

}  // namespace

absl::Span<const Pass> Passes() { return kPasses; }

absl::StatusOr<const Pass*> FindPass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  const std::string names = absl::StrJoin(
      kPasses, ", ", [](std::string* out, const Pass& pass) { out->append(pass.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown pass \"", std::string(name), "\"; the passes are ", names));
}

absl::Status CheckPassNames(const Options& options) {
  for (const std::string& name : options.disabled_passes) {
    const absl::StatusOr<const Pass*> pass = FindPass(name);
    if (!pass.ok()) return pass.status();
    if ((*pass)->optional) continue;
    return absl::InvalidArgumentError(absl::StrCat("cannot switch off the pass \"", name,
                                                   "\": results would be wrong without it"));
  }
  for (const std::string& name : options.dumped_passes) {
    if (const auto pass = FindPass(name); !pass.ok()) return pass.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<PassState> RunPasses(const graph::Graph& graph, const drivers::Target& target,
                                    PassRange range, const Options& options,
                                    std::vector<PassReport>* reports) {
  if (absl::Status names = CheckPassNames(options); !names.ok()) return names;
  const absl::StatusOr<absl::Span<const Pass>> passes = Select(range);
  if (!passes.ok()) return passes.status();
  PassState state;
  state.graph = graph;
  for (const Pass& pass : *passes) {
    if (state.sharded) {
      return absl::InvalidArgumentError(
          absl::StrCat("a graph on a mesh becomes several graphs, but ", std::string(pass.name),
                       " works on one; end with \"shard\""));
    }
    if (pass.run == Cluster) LookUpChoices(target, options, &state);
    if (absl::Status status = Run(pass, target, options, state, reports); !status.ok())
      return status;
  }
  return state;
}

}  // namespace kiln::compiler
