// Program: cutting into slices, alone or with the other members of its gang.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "server/fairness/slices.h"
#include "server/runtime/program.h"

namespace kiln::runtime {
namespace {

// Before its first run, a program is assumed to run this many times as long as its sizes suggest.
constexpr double kGuessedTooShort = 16;
// A run with variables in dimensions is assumed to take at most this many times as long as those
// before it.
constexpr double kVariesBy = 16;
// A program is cut again when its kernels have been timed this many times as often.
constexpr int64_t kCutAgain = 8;

// Returns the points of the kernel's grid; 1 if the kernel cannot run a part of it.
int64_t PointsOf(const compiler::CompiledProgram& program, size_t call) {
  const drivers::KernelImage& image = program.kernels[program.calls[call].kernel].image;
  return image.runs_parts ? image.grid_size : 1;
}

}  // namespace

drivers::CommandList CommandsOf(const drivers::CommandList& all,
                                absl::Span<const fairness::CommandPart> parts) {
  drivers::CommandList list{all.num_slots, {}, all.host_slots};
  for (const fairness::CommandPart& part : fairness::Join(parts)) {
    list.commands.push_back(all.commands[part.command]);
    auto* launch = std::get_if<drivers::LaunchCommand>(&list.commands.back());
    if (launch != nullptr && launch->kernel->image().runs_parts)
      launch->points = drivers::GridRange{part.begin, part.end};
  }
  return list;
}

std::vector<int64_t> CallPoints(const compiler::CompiledProgram& program) {
  std::vector<int64_t> points;
  for (size_t call = 0; call < program.calls.size(); ++call)
    points.push_back(PointsOf(program, call));
  return points;
}

bool Program::MayEndEarly(bool varies) const {
  const fairness::QueueLimits& limits = device_.dispatcher().limits();
  if (gang_ != nullptr || !device_.device().yields() || !std::isfinite(limits.slice_seconds))
    return false;
  if (runs() == 0) return true;
  return varies ? fairness::MayTakeASlice(predicted_seconds(), limits, kVariesBy)
                : fairness::MayTakeASlice(predicted_seconds(), limits);
}

bool Program::IsSliced() const {
  const double seconds_max = device_.dispatcher().limits().slice_seconds;
  return predicted_seconds() * (runs() == 0 ? kGuessedTooShort : 1) > seconds_max;
}

double Program::first_seconds(bool varies) const {
  const fairness::QueueLimits& limits = device_.dispatcher().limits();
  if (MayEndEarly(varies)) return limits.slice_seconds;
  const bool is_cut = !device_.device().yields() && IsSliced();
  return is_cut ? std::min(predicted_seconds(), limits.piece_seconds()) : predicted_seconds();
}

double Program::ScaleOf(double total) const {
  if (total == 0) return 1;
  return runs() == 0 ? kGuessedTooShort : predicted_seconds() / total;
}

std::vector<fairness::CommandCost> Program::CommandCosts(int64_t* samples) const {
  std::vector<double> seconds = CallSeconds(samples);
  const double bytes_per_second = device_.info().target.rates.bytes_per_second;
  for (const compiler::CompiledProgram::Copy& copy : compiled_.copies)
    seconds.push_back(2 * static_cast<double>(copy.source.bytes) / bytes_per_second);
  const double scale = ScaleOf(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  std::vector<fairness::CommandCost> costs;
  for (const double each : seconds) {
    const size_t call = costs.size();
    const bool is_call = call < compiled_.calls.size();
    costs.push_back({each * scale, is_call ? PointsOf(compiled_, call) : 1});
  }
  return costs;
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
  const double seconds_max = device_.dispatcher().limits().piece_seconds();
  const std::vector<fairness::CommandPart> parts =
      fairness::Split(CommandCosts(samples), seconds_max);
  for (const fairness::Slice& slice : fairness::Cut(fairness::SecondsOf(parts), seconds_max)) {
    const auto part = absl::MakeSpan(parts).subspan(slice.begin, slice.end - slice.begin);
    auto prepared = device_.device().Prepare(CommandsOf(all, part));
    if (!prepared.ok()) return prepared.status();
    pieces->list.push_back({slice.seconds, part.front().command, *std::move(prepared)});
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
  if (device_.device().yields() || !IsSliced()) return nullptr;
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
