// Program: how its runs are cut into pieces.
#include "server/fairness/slices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "proto/check/check.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {
namespace {

// Before its first run, a program is assumed to run this many times as long as its sizes suggest.
constexpr double kGuessedTooShort = 16;
// A run with variables in dimensions is assumed to take at most this many times as long as those
// before it.
constexpr double kVariesBy = 16;
// A program is cut again when its kernels have been timed this many times as often.
constexpr int64_t kCutAgain = 8;

}  // namespace

bool Program::MayEndEarly(bool varies) const {
  const fairness::QueueLimits& limits = device().dispatcher().limits();
  if (!yields() || !std::isfinite(limits.slice_seconds)) return false;
  if (runs() == 0) return true;
  return varies ? fairness::MayTakeASlice(predicted_seconds(), limits, kVariesBy)
                : fairness::MayTakeASlice(predicted_seconds(), limits);
}

bool Program::IsSliced() const {
  const double seconds_max = device().dispatcher().limits().slice_seconds;
  return predicted_seconds() * (runs() == 0 ? kGuessedTooShort : 1) > seconds_max;
}

double Program::first_seconds(bool varies) const {
  const fairness::QueueLimits& limits = device().dispatcher().limits();
  if (MayEndEarly(varies)) return limits.slice_seconds;
  const bool is_cut = !sharded_.is_joint() && !yields() && IsSliced();
  return is_cut ? std::min(predicted_seconds(), limits.piece_seconds()) : predicted_seconds();
}

double Program::ScaleOf(double total) const {
  if (total == 0) return 1;
  return runs() == 0 ? kGuessedTooShort : predicted_seconds() / total;
}

std::vector<std::vector<fairness::CommandCost>> Program::CommandCosts(int64_t* samples) const {
  const std::vector<double> seconds = CallSeconds(samples);
  std::vector<std::vector<fairness::CommandCost>> costs(sharded_.size());
  double longest = 0;
  auto next = seconds.begin();
  for (const int distinct : sharded_.distinct()) {
    const compiler::CompiledProgram& compiled = sharded_.compiled(distinct);
    const double bytes_per_second = sharded_.device(distinct).info().target.rates.bytes_per_second;
    std::vector<fairness::CommandCost> own;
    double total = 0;
    for (const compiler::KernelCall& call : compiled.calls)
      own.push_back({*next++, PointsOf(compiled, call)});
    for (const compiler::CompiledProgram::Copy& copy : compiled.copies)
      own.push_back({2 * static_cast<double>(copy.source.bytes) / bytes_per_second, 1});
    for (const fairness::CommandCost& cost : own) total += cost.seconds;
    longest = std::max(longest, total);
    for (int i = 0; i < sharded_.size(); ++i)
      if (&sharded_.compiled(i) == &compiled) costs[i] = own;
  }
  KILN_CHECK(next == seconds.end());
  const double scale = ScaleOf(longest);
  for (std::vector<fairness::CommandCost>& member : costs)
    for (fairness::CommandCost& cost : member) cost.seconds *= scale;
  return costs;
}

absl::StatusOr<std::shared_ptr<const Pieces>> Program::CutIntoPieces(
    const std::shared_ptr<const LoadedProgram>& loaded) {
  if (yields() || !IsSliced()) return nullptr;
  absl::MutexLock lock(&loading_mutex_);
  int64_t samples = 0;
  {
    absl::MutexLock times(&mutex_);
    samples = samples_;
  }
  const bool is_old = cut_.samples == 0 ? samples > 0 : samples >= kCutAgain * cut_.samples;
  if (cut_.loaded == loaded && !is_old) return cut_.pieces;
  const std::vector<std::vector<fairness::CommandCost>> costs = CommandCosts(&samples);
  auto pieces = CutLists(sharded_, loaded, costs, device().dispatcher().limits().piece_seconds());
  if (!pieces.ok()) return pieces.status();
  cut_ = {loaded, *std::move(pieces), samples};
  return cut_.pieces;
}

}  // namespace kiln::runtime
