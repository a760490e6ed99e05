// Fuzzes the reader of saved sessions with damaged descriptions of random ones. An accepted
// description must be the same after writing and reading it again.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

using sessions::Checkpoint;
using Kind = Checkpoint::Value::Kind;

constexpr int kCheckpoints = 64;

// Valid for every tensor.
sessions::RequestedPlacement RandomPlacement(Random& random) {
  if (OneIn(random, 2)) return {.device = "cpu:1"};
  auto placement = std::make_shared<buffers::Placement>();
  placement->devices = {"cpu:0", "cpu:1"};
  placement->mesh.axes = {{"data", 2}, {"model", 1}};
  return {.sharding = std::move(placement)};
}

Checkpoint::Value RandomValue(Random& random) {
  if (OneIn(random, 4)) return {.kind = Kind::kFailed, .error = absl::InternalError("failed")};
  Checkpoint::Value value{.kind = Kind::kBytes};
  value.type.dtype = static_cast<ir::DType>(1 + Below(random, ir::kNumDTypes - 1));
  for (size_t rank = Below(random, 4); rank > 0; --rank)
    value.type.shape.push_back(static_cast<int64_t>(Below(random, 5)));
  if (OneIn(random, 2)) value.placement = RandomPlacement(random);
  return value;
}

// Adds a waiting run of existing values, with a new result.
void AddRun(Random& random, Checkpoint* checkpoint) {
  sessions::SavedRun run;
  run.bindings["n"] = static_cast<int64_t>(Below(random, 100)) - 50;
  for (size_t inputs = Below(random, 3); inputs > 0; --inputs)
    run.inputs.push_back(Below(random, checkpoint->values.size()));
  run.results.push_back(checkpoint->values.size());
  checkpoint->values.push_back({.kind = Kind::kPending});
  checkpoint->pending.push_back({++checkpoint->executed, std::move(run)});
}

Checkpoint RandomCheckpoint(Random& random) {
  Checkpoint checkpoint;
  checkpoint.identity.number = 1 + static_cast<int64_t>(Below(random, 1000));
  checkpoint.identity.id = "an id";
  checkpoint.identity.lease = absl::Seconds(Below(random, 1000));
  checkpoint.user = "ann";
  checkpoint.generation = Below(random, 3);
  if (OneIn(random, 2))
    checkpoint.parked = sessions::Park{"night", absl::Seconds(60), {{"weights", 1}}};
  checkpoint.device = "cpu:0";
  auto origin = std::make_shared<sessions::ProgramOrigin>();
  origin->wire = "a graph";
  if (OneIn(random, 2)) origin->devices = {"cpu:1", "cpu:0"};
  checkpoint.origins.push_back(std::move(origin));
  checkpoint.values.push_back(RandomValue(random));
  for (size_t values = Below(random, 8); values > 0; --values)
    checkpoint.values.push_back(RandomValue(random));
  for (size_t answers = Below(random, 4); answers > 0; --answers)
    checkpoint.answers.push_back({.sequence = ++checkpoint.executed, .digest = "digest"});
  for (size_t runs = Below(random, 4); runs > 0; --runs) AddRun(random, &checkpoint);
  if (OneIn(random, 2))
    checkpoint.pending.push_back({++checkpoint.executed, sessions::SavedRead{0}});
  if (OneIn(random, 2))
    checkpoint.pending.push_back({++checkpoint.executed, sessions::SavedBarrier{}});
  if (OneIn(random, 2)) {
    checkpoint.pending.push_back(
        {++checkpoint.executed, sessions::SavedMove{.source = 0,
                                                    .target = checkpoint.values.size(),
                                                    .placement = RandomPlacement(random)}});
    checkpoint.values.push_back({.kind = Kind::kPending});
  }
  for (size_t i = 0; i < checkpoint.values.size(); ++i) {
    checkpoint.used_handles.Insert(2 * i + 1);
    checkpoint.handles.emplace_back(2 * i + 1, i);
  }
  checkpoint.used_programs.Insert(1);
  checkpoint.programs.push_back({.number = 1});
  checkpoint.blobs.push_back({.name = "blob", .size = static_cast<int64_t>(Below(random, 100))});
  return checkpoint;
}

std::vector<std::string> MakeCorpus() {
  std::vector<std::string> all;
  for (Random random(2026); all.size() < kCheckpoints;)
    all.push_back(sessions::Encode(RandomCheckpoint(random)));
  return all;
}

Outcome TryOne(Random& random) {
  static const std::vector<std::string>& corpus = *new std::vector<std::string>(MakeCorpus());
  std::string bytes = corpus[Below(random, corpus.size())];
  if (!OneIn(random, 8)) bytes = MutateBytes(random, bytes, corpus[Below(random, corpus.size())]);
  const auto checkpoint = sessions::Decode(bytes);
  if (!checkpoint.ok()) {
    if (absl::IsDataLoss(checkpoint.status())) return {"refused", {}};
    return {"refused", absl::StrCat("refused otherwise: ", checkpoint.status().ToString())};
  }
  const std::string again = sessions::Encode(*checkpoint);
  const auto second = sessions::Decode(again);
  if (!second.ok() || sessions::Encode(*second) != again)
    return {"accepted", "what was accepted is refused or changed when it is read again"};
  return {"accepted", {}};
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.05, kiln::fuzz::TryOne); }
