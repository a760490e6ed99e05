// Program: cut into slices, whole or with the other members of its gang.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "server/fairness/slices.h"
#include "server/runtime/program.h"

namespace kiln::runtime {
namespace {

// Before its first run a program is taken to run this much longer than its sizes say, and cut so.
constexpr double kGuessedTooShort = 16;
// A program is cut again when its kernels have been timed this much more often.
constexpr int64_t kCutAgain = 8;

}  // namespace

bool Program::IsSliced() const {
  if (compiled_.calls.size() + compiled_.copies.size() < 2) return false;
  const double most = device_.dispatcher().limits().slice_seconds;
  return predicted_seconds() * (runs() == 0 ? kGuessedTooShort : 1) > most;
}

double Program::first_seconds() const {
  if (!IsSliced()) return predicted_seconds();
  return std::min(predicted_seconds(), device_.dispatcher().limits().piece_seconds());
}

double Program::ScaleOf(double total) const {
  if (total == 0) return 1;
  return runs() == 0 ? kGuessedTooShort : predicted_seconds() / total;
}

std::vector<double> Program::CommandSeconds(int64_t* samples) const {
  std::vector<double> seconds = CallSeconds(samples);
  const double bytes_per_second = device_.info().target.rates.bytes_per_second;
  for (const compiler::CompiledProgram::Copy& copy : compiled_.copies)
    seconds.push_back(2 * static_cast<double>(copy.source.bytes) / bytes_per_second);
  const double scale = ScaleOf(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  for (double& each : seconds) each *= scale;
  return seconds;
}

std::vector<std::vector<double>> Program::GangCallSeconds(int64_t* samples) const {
  const std::vector<double> all = CallSeconds(samples);
  const std::vector<Gang::Member>& members = gang_->members();
  std::vector<std::vector<double>> seconds(members.size());
  double longest = 0;
  auto begin = all.begin();
  for (const int distinct : gang_->distinct()) {
    const auto end = begin + static_cast<int64_t>(members[distinct].compiled->calls.size());
    longest = std::max(longest, std::accumulate(begin, end, 0.0));
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i].compiled == members[distinct].compiled) seconds[i].assign(begin, end);
    begin = end;
  }
  const double scale = ScaleOf(longest);
  for (std::vector<double>& member : seconds)
    for (double& each : member) each *= scale;
  return seconds;
}

absl::StatusOr<std::shared_ptr<const Program::Pieces>> Program::CutNow(
    const std::shared_ptr<const Loaded>& loaded, int64_t* samples) const {
  auto pieces = std::make_shared<Pieces>();
  pieces->loaded = loaded;
  const drivers::CommandList all = Commands(*loaded);
  const double most = device_.dispatcher().limits().piece_seconds();
  for (const fairness::Slice& slice : fairness::Cut(CommandSeconds(samples), most)) {
    drivers::CommandList list{
        all.num_slots, {all.commands.begin() + slice.begin, all.commands.begin() + slice.end}};
    auto prepared = device_.device().Prepare(std::move(list));
    if (!prepared.ok()) return prepared.status();
    pieces->list.push_back({slice.seconds, *std::move(prepared)});
  }
  if (pieces->list.size() < 2) return nullptr;
  return pieces;
}

template <typename LoadedParts, typename Parts, typename MakePieces>
absl::StatusOr<std::shared_ptr<const Parts>> Program::CutAgainIfOld(
    const std::shared_ptr<const LoadedParts>& loaded, Cut<LoadedParts, Parts>* cut,
    const MakePieces& make_pieces) {
  int64_t samples = 0;
  {
    absl::MutexLock lock(&mutex_);
    samples = samples_;
  }
  const bool is_old = cut->samples == 0 ? samples > 0 : samples >= kCutAgain * cut->samples;
  if (cut->loaded == loaded && !is_old) return cut->pieces;
  int64_t counted = 0;
  auto pieces = make_pieces(&counted);
  if (!pieces.ok()) return pieces.status();
  *cut = {loaded, *std::move(pieces), counted};
  return cut->pieces;
}

absl::StatusOr<std::shared_ptr<const Program::Pieces>> Program::CutIntoPieces(
    const std::shared_ptr<const Loaded>& loaded) {
  if (!IsSliced()) return nullptr;
  absl::MutexLock lock(&loading_mutex_);
  return CutAgainIfOld(loaded, &cut_, [&](int64_t* samples) { return CutNow(loaded, samples); });
}

absl::StatusOr<std::shared_ptr<const Gang::Pieces>> Program::CutGangIntoPieces(
    const std::shared_ptr<const Gang::Loaded>& loaded) {
  if (!IsSliced()) return nullptr;
  absl::MutexLock lock(&loading_mutex_);
  return CutAgainIfOld(loaded, &gang_cut_, [&](int64_t* samples) {
    return gang_->Cut(loaded, GangCallSeconds(samples),
                      device_.dispatcher().limits().piece_seconds());
  });
}

}  // namespace kiln::runtime
