// Searches for choices about which values of a graph share a kernel (partition/choices/choices.h).
//
// It knows no device: one function compiles, and another compares two programs.
#ifndef KILN_SERVER_TUNER_CHOICE_SEARCH_H_
#define KILN_SERVER_TUNER_CHOICE_SEARCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/sites.h"

namespace kiln::tuner {

// The kernels in which two programs differ.
struct Comparison {
  double seconds_before = 0;  // of all of them together; both 0: they do not differ
  double seconds_after = 0;
  // Whether the second program is faster by more than noise, twice, and has the same results.
  bool is_gain = false;
};

using CompileChoices =
    std::function<absl::StatusOr<compiler::CompiledProgram>(const partition::Choices&)>;
// DATA_LOSS: the second one's results are not those of the first.
using ComparePrograms = std::function<absl::StatusOr<Comparison>(
    const compiler::CompiledProgram& before, const compiler::CompiledProgram& after)>;

// About one site, whose choice stands for all sites of its kind.
struct ChoiceProgress {
  std::string site;  // Site::text, and how many others are like it
  int number = 0;    // of its kind, from 1
  int kinds = 0;
  bool has_ended = false;
  bool was_chosen = false;
  std::string why = "";  // it failed
  Comparison comparison = {};
  int tried = 0;    // programs that were compared, of all sites
  int refused = 0;  // choices that cannot be made, of all sites
};

struct ChoiceSearchOptions {
  partition::Choices start = {};              // the incumbent
  int kinds_max = 64;                         // those of the largest values
  double seconds_max = 60;                    // a comparison that has begun ends
  std::function<absl::Time()> now = nullptr;  // required
  std::function<bool()> cancelled = nullptr;  // may be null
  std::function<void(const ChoiceProgress&)> on_progress = nullptr;  // may be null
};

struct ChoiceSearchResult {
  partition::Choices choices;  // options.start, if nothing is faster
  compiler::CompiledProgram program;
  // Seconds of the kernels in which the programs of options.start and `choices` differ.
  Comparison comparison;
  bool is_complete = false;  // every kind was tried
  int tried = 0;
  int refused = 0;
};

// Tries the sites one after another, those of large values first, each against the incumbent. A
// choice that makes no other kernels costs nothing but its passes. One that is faster becomes part
// of the incumbent, and is then tried for all sites of its kind. The gain of several choices is
// compared with the start once more. Returns an error if the start cannot be compiled.
absl::StatusOr<ChoiceSearchResult> FindChoices(const std::vector<partition::Site>& sites,
                                               const CompileChoices& compile,
                                               const ComparePrograms& compare,
                                               const ChoiceSearchOptions& options);

// Whether some part of the program could not use its choices.
bool IsRefused(const compiler::CompiledProgram& program);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_CHOICE_SEARCH_H_
