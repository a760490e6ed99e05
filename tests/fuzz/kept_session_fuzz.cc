// Fuzzes the reader of saved sessions with damaged descriptions of random ones. An accepted
// description must be the same after writing and reading it again.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/sessions/image.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

using sessions::SessionImage;
using Kind = SessionImage::Value::Kind;

constexpr int kImages = 64;

// Valid for every tensor.
sessions::Place RandomPlace(Random& random) {
  if (OneIn(random, 2)) return {.device = "cpu:1"};
  auto placement = std::make_shared<buffers::Placement>();
  placement->devices = {"cpu:0", "cpu:1"};
  placement->mesh.axes = {{"data", 2}, {"model", 1}};
  return {.placement = std::move(placement)};
}

SessionImage::Value RandomValue(Random& random) {
  if (OneIn(random, 4)) return {.kind = Kind::kFailed, .error = absl::InternalError("failed")};
  SessionImage::Value value{.kind = Kind::kBytes};
  value.type.dtype = static_cast<ir::DType>(1 + Below(random, ir::kNumDTypes - 1));
  for (size_t rank = Below(random, 4); rank > 0; --rank)
    value.type.shape.push_back(static_cast<int64_t>(Below(random, 5)));
  if (OneIn(random, 2)) value.place = RandomPlace(random);
  return value;
}

// Adds a waiting run of existing values, with a new result.
void AddRun(Random& random, SessionImage* image) {
  SessionImage::Run run;
  run.bindings["n"] = static_cast<int64_t>(Below(random, 100)) - 50;
  for (size_t inputs = Below(random, 3); inputs > 0; --inputs)
    run.inputs.push_back(Below(random, image->values.size()));
  run.results.push_back(image->values.size());
  image->values.push_back({.kind = Kind::kPending});
  image->pending.push_back({++image->executed, std::move(run)});
}

SessionImage RandomImage(Random& random) {
  SessionImage image;
  image.identity.number = 1 + static_cast<int64_t>(Below(random, 1000));
  image.identity.id = "an id";
  image.identity.lease = absl::Seconds(Below(random, 1000));
  image.user = "ann";
  image.generation = Below(random, 3);
  if (OneIn(random, 2))
    image.detached = SessionImage::Detached{"night", absl::Seconds(60), {{"weights", 1}}};
  image.device = "cpu:0";
  auto origin = std::make_shared<sessions::ProgramOrigin>();
  origin->wire = "a graph";
  if (OneIn(random, 2)) origin->devices = {"cpu:1", "cpu:0"};
  image.origins.push_back(std::move(origin));
  image.values.push_back(RandomValue(random));
  for (size_t values = Below(random, 8); values > 0; --values)
    image.values.push_back(RandomValue(random));
  for (size_t answers = Below(random, 4); answers > 0; --answers)
    image.answers.push_back({.sequence = ++image.executed, .digest = "digest"});
  for (size_t runs = Below(random, 4); runs > 0; --runs) AddRun(random, &image);
  if (OneIn(random, 2)) image.pending.push_back({++image.executed, SessionImage::Read{0}});
  if (OneIn(random, 2)) image.pending.push_back({++image.executed, SessionImage::Barrier{}});
  if (OneIn(random, 2)) {
    image.pending.push_back({++image.executed, SessionImage::Move{.source = 0,
                                                                  .target = image.values.size(),
                                                                  .place = RandomPlace(random)}});
    image.values.push_back({.kind = Kind::kPending});
  }
  for (size_t i = 0; i < image.values.size(); ++i) {
    image.used_handles.Insert(2 * i + 1);
    image.handles.emplace_back(2 * i + 1, i);
  }
  image.used_programs.Insert(1);
  image.programs.push_back({.number = 1});
  image.blobs.push_back({.name = "blob", .size = static_cast<int64_t>(Below(random, 100))});
  return image;
}

std::vector<std::string> MakeCorpus() {
  std::vector<std::string> all;
  for (Random random(2026); all.size() < kImages;)
    all.push_back(sessions::Encode(RandomImage(random)));
  return all;
}

Outcome TryOne(Random& random) {
  static const std::vector<std::string>& corpus = *new std::vector<std::string>(MakeCorpus());
  std::string bytes = corpus[Below(random, corpus.size())];
  if (!OneIn(random, 8)) bytes = MutateBytes(random, bytes, corpus[Below(random, corpus.size())]);
  const auto image = sessions::Decode(bytes);
  if (!image.ok()) {
    if (absl::IsDataLoss(image.status())) return {"refused", {}};
    return {"refused", absl::StrCat("refused otherwise: ", image.status().ToString())};
  }
  const std::string again = sessions::Encode(*image);
  const auto second = sessions::Decode(again);
  if (!second.ok() || sessions::Encode(*second) != again)
    return {"accepted", "what was accepted is refused or changed when it is read again"};
  return {"accepted", {}};
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.05, kiln::fuzz::TryOne); }
