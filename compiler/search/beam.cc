#include "compiler/search/beam.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/str_cat.h"
#include "proto/check/check.h"

namespace kiln::search {
namespace {

// Candidates of the first batch, whose times are not known.
constexpr double kFirstBatchMax = 4;
// Pairs are made of at most this many changes of each expanded setting: 15 pairs.
constexpr size_t kPairedChangesMax = 6;
// A change that makes the kernel slower than this is not worth a second one.
constexpr double kPairedSlowdownMax = 1.5;

// With a model, this share of a round's candidates is measured, and at least so many.
constexpr double kShareMeasured = 0.25;
constexpr size_t kMeasuredMin = 16;

constexpr std::string_view kEndingNames[] = {
    "no gain",          "roofline",  "no other settings",   "bound of candidates",
    "bound of seconds", "cancelled", "bound of rehearsals",
};

constexpr double kSecondsMax = std::numeric_limits<double>::infinity();

std::string PartOf(int part) { return part == kKernelPart ? "kernel" : StrCat("stage ", part); }

std::string ValueOf(const Values& values, Knob knob) {
  return values.Has(knob) ? PrintValue(knob, values[knob]) : "none";
}

void DescribePart(const Values& from, const Values& to, std::string* text) {
  for (const auto& [knob, value] : to.all()) {
    if (from.Has(knob) && from[knob] == value) continue;
    StrAppend(text, text->back() == ':' ? " " : ", ", RowOf(knob).name, " ", ValueOf(from, knob),
              " to ", PrintValue(knob, value));
    if (knob == Knob::kForm) return;  // the knobs of another form are others
  }
}

std::string Describe(const Setting& from, const Setting& to) {
  std::string text;
  for (const auto& [part, values] : to.parts) {
    const Values& before = from.parts.at(part);
    if (values == before) continue;
    StrAppend(&text, text.empty() ? "" : "; ", PartOf(part), ":");
    DescribePart(before, values, &text);
  }
  return text;
}

// Returns the only knob whose value differs, or nullptr.
const Knob* OnlyChange(const Values& from, const Values& to) {
  const Knob* only = nullptr;
  if (from.all().size() != to.all().size()) return nullptr;
  for (const auto& [knob, value] : to.all()) {
    if (from.Has(knob) && from[knob] == value) continue;
    if (only != nullptr || !from.Has(knob)) return nullptr;
    only = &knob;
  }
  return only;
}

// Returns the setting with both changes, unless they are about the same knob or one of them makes
// the other meaningless.
std::optional<Setting> Combine(const Setting& from, const Setting& one, const Setting& other) {
  Setting both = one;
  for (auto& [part, values] : both.parts) {
    const Values& before = from.parts.at(part);
    const Values& others = other.parts.at(part);
    if (others == before) continue;
    if (values == before) {
      values = others;
      continue;
    }
    const Knob* first = OnlyChange(before, values);
    const Knob* second = OnlyChange(before, others);
    if (first == nullptr || second == nullptr || *first == *second) return std::nullopt;
    values.Set(*second, others[*second]);
  }
  return both;
}

bool HasSameForms(const Setting& one, const Setting& other) {
  return absl::c_equal(one.parts, other.parts, [](const auto& a, const auto& b) {
    return a.first == kKernelPart || a.second.form() == b.second.form();
  });
}

class BeamSearch {
 public:
  BeamSearch(const Space& space, Measurer& measurer, const SearchOptions& options)
      : space_(space), measurer_(measurer), options_(options), start_(options.now()) {}

  absl::StatusOr<SearchResult> Run() {
    if (IsCancelled()) return absl::CancelledError("the search was cancelled before it began");
    if (const absl::Status status = MeasureHeuristic(); !status.ok()) return status;
    ReportProgress();
    while (!ended_) RunRound();
    return std::move(result_);
  }

 private:
  // A setting to try.
  struct Proposal {
    Candidate candidate;
    double predicted = 0;  // by the model
    size_t parent = 0;     // the trial of the setting that it was made from
    double cost = 0;       // those of a lower one are tried first
    // Expanded only if it is a gain on this: the better one of a pair's changes. Pairs without one
    // would fill the beam with variants of one setting.
    double seconds_to_beat = kSecondsMax;
  };
  // A measured setting.
  struct Trial {
    Candidate candidate;
    double predicted = 0;
    size_t parent = 0;
    size_t step = 0;  // index into result_.path
    Timing timing = {};
    bool closed = false;   // it is not to be expanded, or was
    bool refused = false;  // it is not to be chosen
  };

  SearchProgress& progress() { return result_.progress; }
  bool IsCancelled() const { return options_.cancelled != nullptr && options_.cancelled(); }
  void ReportProgress() {
    if (options_.on_progress != nullptr) options_.on_progress(progress());
  }

  void End(Ending ending) {
    if (!ended_) result_.ending = ending;
    ended_ = true;
  }

  absl::Status MeasureHeuristic() {
    const auto schedule = space_.Write(space_.heuristic());
    if (!schedule.ok()) return schedule.status();
    const Candidate heuristic{space_.heuristic(), *schedule};
    IsNew(Print(heuristic.setting));
    IsNew(schedule::Print(heuristic.schedule));
    ++progress().tried;
    const auto timings = Measure(nullptr, {&heuristic, 1});
    KILN_CHECK_EQ(timings.size(), size_t{1});
    if (!timings[0].ok()) return timings[0].status();
    progress().heuristic_seconds = timings[0]->seconds;
    if (HasModel())
      heuristic_features_ = space_.FeaturesOf(heuristic.schedule).value_or(Features());
    Record({.candidate = heuristic, .predicted = Predict(heuristic.schedule)}, timings[0]);
    result_.path[0].change = "the heuristic's";
    SetBest(trials_[0]);
    return absl::OkStatus();
  }

  void SetBest(const Trial& trial) {
    result_.best = {trial.candidate, trial.timing};
    result_.path[trial.step].was_best = true;
    progress().best_seconds = trial.timing.seconds;
    const double near = std::max(options_.roofline_share, trial.timing.noise);
    if (trial.timing.seconds * (1 - near) <= options_.roofline_seconds) End(Ending::kRoofline);
  }

  void RunRound() {
    ++progress().round;
    const int tried = progress().tried;
    bool gained = progress().round == 1 && Try(ProposeStarts());
    const std::vector<size_t> beam = TakeBeam();
    const size_t first = trials_.size();
    gained |= Try(ProposeNeighbours(beam));
    gained |= Try(ProposePairs(beam, first));
    if (progress().tried == tried) End(Ending::kExhausted);
    rounds_without_gain_ = gained ? 0 : rounds_without_gain_ + 1;
    if (rounds_without_gain_ >= options_.rounds_without_gain) End(Ending::kNoGain);
  }

  // Takes the fastest settings that were not expanded yet.
  std::vector<size_t> TakeBeam() {
    std::vector<size_t> open;
    for (size_t i = 0; i < trials_.size(); ++i) {
      if (!trials_[i].closed && !trials_[i].refused) open.push_back(i);
    }
    SortByTime(&open);
    open.resize(std::min(open.size(), static_cast<size_t>(std::max(options_.width, 1))));
    for (const size_t member : open) trials_[member].closed = true;
    return open;
  }

  void SortByTime(std::vector<size_t>* trials) const {
    absl::c_stable_sort(*trials, [this](size_t a, size_t b) {
      return trials_[a].timing.seconds < trials_[b].timing.seconds;
    });
  }

  std::vector<Proposal> ProposeStarts() {
    std::vector<Proposal> proposals;
    for (const Setting& start : options_.starts) {
      std::vector<std::string> ignored;
      if (MayAsk(start)) Propose(space_.Complete(start, &ignored), 0, &proposals);
    }
    return proposals;
  }

  std::vector<Proposal> ProposeNeighbours(const std::vector<size_t>& beam) {
    std::vector<Proposal> proposals;
    for (const size_t member : beam) {
      const std::vector<Setting> neighbours = space_.Neighbours(SettingOf(member));
      std::vector<const Setting*> legal;
      std::vector<const Setting*> illegal;
      for (const Setting& neighbour : neighbours) {
        (Propose(neighbour, member, &proposals) ? legal : illegal).push_back(&neighbour);
      }
      for (const Setting* change : illegal) {
        for (const Setting* remedy : legal) {
          auto both = Combine(SettingOf(member), *change, *remedy);
          if (both) Propose(*std::move(both), member, &proposals);
        }
      }
    }
    // It matters if the search is cut short.
    absl::c_stable_sort(proposals, [](const auto& a, const auto& b) { return a.cost < b.cost; });
    if (!HasModel()) return proposals;
    const auto share = static_cast<size_t>(kShareMeasured * static_cast<double>(proposals.size()));
    const size_t measured = std::min(proposals.size(), std::max(share, kMeasuredMin));
    progress().skipped += static_cast<int>(proposals.size() - measured);
    proposals.resize(measured);
    return proposals;
  }

  // Combines the best changes of each member of the beam; `first`: the first trial of this round.
  std::vector<Proposal> ProposePairs(const std::vector<size_t>& beam, size_t first) {
    std::vector<Proposal> proposals;
    for (const size_t member : beam) {
      const std::vector<size_t> changes = BestChanges(member, first);
      for (size_t b = 1; b < changes.size(); ++b) {
        for (size_t a = 0; a < b; ++a) {
          auto both = Combine(SettingOf(member), SettingOf(changes[a]), SettingOf(changes[b]));
          const size_t before = proposals.size();
          if (both) Propose(*std::move(both), member, &proposals);
          if (proposals.size() > before) {
            proposals.back().seconds_to_beat = trials_[changes[a]].timing.seconds;
          }
        }
      }
    }
    return proposals;
  }

  std::vector<size_t> BestChanges(size_t member, size_t first) const {
    const double seconds_max = trials_[member].timing.seconds * kPairedSlowdownMax;
    std::vector<size_t> changes;
    for (size_t i = first; i < trials_.size(); ++i) {
      const Trial& trial = trials_[i];
      if (trial.parent != member || trial.refused || trial.timing.seconds > seconds_max) continue;
      changes.push_back(i);
    }
    SortByTime(&changes);
    changes.resize(std::min(changes.size(), kPairedChangesMax));
    return changes;
  }

  const Setting& SettingOf(size_t trial) const { return trials_[trial].candidate.setting; }

  // Adds the setting unless it, or its schedule, is not new, or it is not legal. Returns false if
  // it is known to be illegal.
  bool Propose(Setting setting, size_t parent, std::vector<Proposal>* proposals) {
    if (!IsNew(Print(setting))) {
      ++progress().duplicates;
      return true;
    }
    if (!MayAsk(setting)) return false;
    auto schedule = space_.Write(setting);
    if (!schedule.ok()) {
      ++progress().rejected;
      return false;
    }
    if (!IsNew(schedule::Print(*schedule))) {
      ++progress().duplicates;
      return true;
    }
    const double predicted = Predict(*schedule);
    // Both are relative to the same parent.
    const double cost = HasModel() ? trials_[parent].timing.seconds *
                                         std::exp(predicted - trials_[parent].predicted)
                                   : PredictedCost(setting, parent);
    proposals->push_back({.candidate = {std::move(setting), *std::move(schedule)},
                          .predicted = predicted,
                          .parent = parent,
                          .cost = cost});
    return true;
  }

  bool MayAsk(const Setting& setting) {
    if (!options_.rehearse) return true;
    // A rehearsal may take long.
    if (ended_ || !MayGoOn()) return false;
    const absl::Status rehearsed = options_.rehearse(setting);
    if (rehearsed.ok()) return true;
    ++progress().rejected;
    if (!absl::IsInvalidArgument(rehearsed) && ++rehearsals_lost_ >= kRehearsalsLostMax)
      End(Ending::kRehearsals);
    return false;
  }

  // Returns whether this text of a setting or of a schedule was not seen before. Keeps only hashes:
  // at worst a setting is not tried.
  bool IsNew(const std::string& text) {
    return seen_.insert(std::hash<std::string>()(text)).second;
  }

  bool HasModel() const { return options_.model != nullptr && !options_.model->empty(); }

  // Returns the logarithm of the schedule's time over the heuristic's by the model; 0 without one.
  double Predict(const schedule::Schedule& schedule) const {
    if (!HasModel() || heuristic_features_.empty()) return 0;
    const auto features = space_.FeaturesOf(schedule);
    return features.ok() ? options_.model->Predict(heuristic_features_, *features) : 0;
  }

  // Returns the parent's time, changed in proportion if the heuristic's models know both settings.
  double PredictedCost(const Setting& setting, size_t parent) const {
    const Setting& from = SettingOf(parent);
    const double seconds = trials_[parent].timing.seconds;
    if (!HasSameForms(setting, from)) return seconds;
    const auto before = space_.Estimate(from);
    const auto after = space_.Estimate(setting);
    return before && after && *before > 0 ? seconds * *after / *before : seconds;
  }

  // Measures the proposals and confirms those that seem to be a gain. Returns whether one is.
  bool Try(std::vector<Proposal> proposals) {
    const size_t first = trials_.size();
    absl::Span<Proposal> left(proposals);
    while (!left.empty() && MayGoOn()) {
      const auto count =
          std::min({left.size(), static_cast<size_t>(std::max(options_.batch, 1)), FitInTime(),
                    static_cast<size_t>(options_.candidates_max - progress().tried)});
      MeasureBatch(left.first(count));
      left.remove_prefix(count);
      ReportProgress();
    }
    const bool gained = ConfirmGains(first);
    if (gained) ReportProgress();
    return gained;
  }

  bool MayGoOn() {
    if (IsCancelled()) End(Ending::kCancelled);
    if (progress().tried >= options_.candidates_max) End(Ending::kCandidates);
    if (options_.now() - start_ >= absl::Seconds(options_.seconds_max)) End(Ending::kSeconds);
    return !ended_;
  }

  // As many candidates as can be measured in the time that is left, and one at least.
  size_t FitInTime() const {
    if (seconds_each_ <= 0) return std::numeric_limits<size_t>::max();
    const double left = options_.seconds_max - absl::ToDoubleSeconds(options_.now() - start_);
    // The heuristic's time says little about the others': a vendor's compiler may know its code.
    const double fit_max = trials_.size() > 1 ? 1e9 : kFirstBatchMax;
    return static_cast<size_t>(std::clamp(left / seconds_each_, 1.0, fit_max));
  }

  std::vector<absl::StatusOr<Timing>> Measure(const Measured* incumbent,
                                              absl::Span<const Candidate> candidates) {
    const absl::Time begin = options_.now();
    auto timings = measurer_.Measure(incumbent, candidates);
    seconds_each_ =
        absl::ToDoubleSeconds(options_.now() - begin) / static_cast<double>(candidates.size());
    return timings;
  }

  void MeasureBatch(absl::Span<Proposal> batch) {
    std::vector<Candidate> candidates;
    for (const Proposal& proposal : batch) candidates.push_back(proposal.candidate);
    const auto timings = Measure(&result_.best, candidates);
    KILN_CHECK_EQ(timings.size(), candidates.size());
    progress().tried += static_cast<int>(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool worthwhile =
          timings[i].ok() && IsGain(*timings[i], batch[i].seconds_to_beat, options_.gain_min);
      Record({.candidate = std::move(candidates[i]),
              .predicted = batch[i].predicted,
              .parent = batch[i].parent,
              .closed = !worthwhile},
             timings[i]);
    }
  }

  void Record(Trial trial, const absl::StatusOr<Timing>& timing) {
    trial.step = result_.path.size();
    const Setting& from = trials_.empty() ? trial.candidate.setting : SettingOf(trial.parent);
    result_.path.push_back({.round = progress().round,
                            .setting = trial.candidate.setting,
                            .parent = trials_.empty() ? 0 : trials_[trial.parent].step,
                            .change = Describe(from, trial.candidate.setting),
                            .timing = timing});
    if (timing.ok()) {
      trial.timing = *timing;
      trials_.push_back(std::move(trial));
    } else {
      ++progress().failed;
    }
  }

  bool ConfirmGains(size_t first) {
    std::vector<size_t> fastest;
    for (size_t i = first; i < trials_.size(); ++i) fastest.push_back(i);
    SortByTime(&fastest);
    bool gained = false;
    for (const size_t trial : fastest) {
      // After a bound, what has been found is still worth its confirmation.
      if (IsCancelled()) End(Ending::kCancelled);
      if (result_.ending == Ending::kCancelled && ended_) break;
      if (IsGainOnBest(trials_[trial].timing)) gained |= Confirm(trial);
    }
    return gained;
  }

  bool IsGainOnBest(const Timing& timing) const {
    return IsGain(timing, result_.best.timing.seconds, options_.gain_min);
  }

  // Returns whether the trial is the new best.
  bool Confirm(size_t number) {
    Trial& trial = trials_[number];
    const auto timing = measurer_.Confirm(result_.best, trial.candidate);
    result_.path[trial.step].timing = timing;
    if (!timing.ok()) {
      trial.refused = true;
      ++progress().failed;
      return false;
    }
    trial.timing = *timing;
    if (!IsGainOnBest(trial.timing)) return false;
    trial.closed = false;
    SetBest(trial);
    return true;
  }

  const Space& space_;
  Measurer& measurer_;
  const SearchOptions& options_;
  const absl::Time start_;
  Features heuristic_features_;  // if there is a model
  absl::flat_hash_set<size_t> seen_;
  std::vector<Trial> trials_;
  SearchResult result_;
  int rounds_without_gain_ = 0;
  int rehearsals_lost_ = 0;
  bool ended_ = false;
  double seconds_each_ = 0;  // of the candidates that were measured last
};

}  // namespace

std::string_view EndingName(Ending ending) { return kEndingNames[static_cast<size_t>(ending)]; }

bool IsGain(const Timing& challenger, double incumbent_seconds, double gain_min) {
  return challenger.seconds < incumbent_seconds * (1 - std::max(gain_min, challenger.noise));
}

absl::StatusOr<SearchResult> FindSetting(const Space& space, Measurer& measurer,
                                         const SearchOptions& options) {
  return BeamSearch(space, measurer, options).Run();
}

std::string PrintPath(const SearchResult& result) {
  std::string text;
  for (const SearchStep& step : result.path) {
    StrAppend(&text, "round ", step.round, ": ", step.change, ": ");
    if (step.timing.ok()) {
      StrAppend(&text, step.timing->seconds * 1e6, " us", step.was_best ? ", the best so far" : "");
    } else {
      StrAppend(&text, std::string(step.timing.status().message()));
    }
    StrAppend(&text, "\n");
  }
  return StrCat(text, "ended: ", EndingName(result.ending), "\n");
}

}  // namespace kiln::search
