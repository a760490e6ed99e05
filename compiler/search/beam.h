// A beam search for the fastest setting of a kernel, starting from the heuristic's.
//
// Each round expands a few settings, the beam. It measures their neighbours, which differ in one
// knob, and neighbours with a second change without which the first is not legal: a wider tile may
// have to be lower. Then it measures pairs of the changes that did best alone, since two knobs may
// only help together. The best settings measured so far that were not expanded yet are the next
// round's beam. The search knows no device: a Measurer compiles, runs and compares.
#ifndef KILN_COMPILER_SEARCH_BEAM_H_
#define KILN_COMPILER_SEARCH_BEAM_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/model/cost_model.h"
#include "compiler/search/space.h"

namespace kiln::search {

// A legal setting. The schedule is the space's for it.
struct Candidate {
  Setting setting;
  schedule::Schedule schedule;
};

struct Timing {
  double seconds = 0;  // of one run
  // The comparison with the incumbent may be wrong by this share of `seconds`.
  double noise = 0;
};

struct Measured {
  Candidate candidate;
  Timing timing;
};

class Measurer {
 public:
  virtual ~Measurer() = default;

  // Measures each candidate quickly, to order them: returns its timing, or why it cannot be chosen.
  // `incumbent` is the best so far. Timings are on its scale: a machine that has become slower must
  // not make all candidates look slow. Null: the only candidate is the first of the search, which
  // sets the scale.
  virtual std::vector<absl::StatusOr<Timing>> Measure(const Measured* incumbent,
                                                      absl::Span<const Candidate> candidates) = 0;

  // Measures a candidate that seemed faster than the incumbent once more: thoroughly, independently
  // of its first timing, and with a comparison of its results with known ones. The fastest of many
  // is otherwise often the luckiest, or one that computes something else.
  virtual absl::StatusOr<Timing> Confirm(const Measured& incumbent, const Candidate& candidate) = 0;
};

struct SearchProgress {
  int round = 0;  // from 1; 0 while the heuristic's setting is measured
  double heuristic_seconds = 0;
  double best_seconds = 0;
  int tried = 0;       // candidates given to the measurer
  int failed = 0;      // those of them that cannot be chosen
  int rejected = 0;    // settings that are not legal
  int duplicates = 0;  // settings whose schedule was seen before
  int skipped = 0;     // candidates that the model thinks slow
};

struct SearchOptions {
  int width = 4;  // of the beam
  // Rounds without a gain before the search ends. The neighbours of a setting that is about as fast
  // as the best may be faster.
  int rounds_without_gain = 2;
  // Tried in the first round beside the heuristic's setting: those of similar kernels, for example.
  // Knobs and loops that the space does not have are ignored.
  std::vector<Setting> starts = {};
  // Orders the candidates of a round; those that it thinks slow are not measured. Null: the
  // heuristic's estimate orders them, and all are measured. Outlives the search.
  const CostModel* model = nullptr;
  int candidates_max = 2000;
  double seconds_max = 60;
  // A measured batch, or fewer candidates if no more fit into the time that is left: the bounds,
  // `cancelled` and `on_progress` are looked at between batches.
  int batch = 16;
  // A gain below this share of the time never counts, nor one below the noise.
  double gain_min = 0.01;
  // No schedule can be faster than this; 0: not known. The search ends if the best is slower by at
  // most `roofline_share`, or by its noise.
  double roofline_seconds = 0;
  double roofline_share = 0.03;
  // Called for a setting before the search asks the space for it, with an error if that would fail:
  // the setting then counts as not legal. Other errors than INVALID_ARGUMENT cost a process, and
  // end the search if there are kRehearsalsLostMax. May be null.
  std::function<absl::Status(const Setting& setting)> rehearse = nullptr;
  std::function<absl::Time()> now = nullptr;                                  // required
  std::function<bool()> cancelled = nullptr;                                  // may be null
  std::function<void(const SearchProgress& progress)> on_progress = nullptr;  // may be null
};

inline constexpr int kRehearsalsLostMax = 16;

enum class Ending {
  kNoGain,      // the last rounds improved nothing
  kRoofline,    // little is left to gain
  kExhausted,   // there is no other setting
  kCandidates,  // candidates_max
  kSeconds,     // seconds_max
  kCancelled,
  kRehearsals,  // kRehearsalsLostMax
};
std::string_view EndingName(Ending ending);

// A candidate that was tried.
struct SearchStep {
  int round = 0;
  Setting setting;
  size_t parent = 0;  // index into the path of the setting that it was made from
  // How it differs from the setting that it was made from: "stage 0: rows 6 to 8".
  std::string change;
  absl::StatusOr<Timing> timing = Timing();  // the confirmed one, if there is one
  bool was_best = false;
};

struct SearchResult {
  Measured best;
  Ending ending = Ending::kNoGain;
  SearchProgress progress;       // at the end
  std::vector<SearchStep> path;  // in the order of trials, the heuristic's setting first
};

// Returns the best setting: the heuristic's, unless another is faster by more than noise and
// confirmed. Calls the measurer and the functions of the options on this thread. The same
// measurements give the same result. CANCELLED before the first measurement, or the measurer's
// error for the heuristic's setting.
absl::StatusOr<SearchResult> FindSetting(const Space& space, Measurer& measurer,
                                         const SearchOptions& options);

// Returns whether `challenger` is faster by more than its noise.
bool IsGain(const Timing& challenger, double incumbent_seconds, double gain_min);

// Returns the path as text, a line for each candidate.
std::string PrintPath(const SearchResult& result);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_BEAM_H_
