#include "server/tuner/choice_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::tuner {
namespace {

using compiler::CompiledProgram;
using partition::Choices;
using partition::Site;

// Sites that look alike.
using Kind = std::vector<const Site*>;

// In the order of their first sites.
std::vector<Kind> KindsOf(const std::vector<Site>& sites) {
  std::map<std::string, size_t> known;
  std::vector<Kind> kinds;
  for (const Site& site : sites) {
    const auto [at, is_new] = known.try_emplace(site.kind, kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[at->second].push_back(&site);
  }
  return kinds;
}

void Add(const Site& site, Choices* choices) {
  choices->values.erase({site.value, partition::Opposite(site.choice)});
  if (choices->values.size() < partition::kChoicesMax)
    choices->values.emplace(site.value, site.choice);
}

class ChoiceSearch {
 public:
  ChoiceSearch(const std::vector<Site>& sites, const CompileChoices& compile,
               const ComparePrograms& compare, const ChoiceSearchOptions& options)
      : kinds_(KindsOf(sites)),
        compile_(compile),
        compare_(compare),
        options_(options),
        begin_(options.now()) {
    if (kinds_.size() > static_cast<size_t>(options.kinds_max))
      kinds_.resize(static_cast<size_t>(options.kinds_max));
  }

  absl::StatusOr<ChoiceSearchResult> Run() {
    auto program = compile_(options_.start);
    if (!program.ok()) return program.status();
    const CompiledProgram start = *program;
    best_.choices = options_.start;
    best_.program = *std::move(program);
    progress_.kinds = static_cast<int>(kinds_.size());
    size_t kind = 0;
    for (; kind < kinds_.size() && !IsOver(); ++kind) {
      progress_.number = static_cast<int>(kind) + 1;
      Try(kinds_[kind]);
    }
    best_.is_complete = kind == kinds_.size();
    if (gains_ > 1) ConfirmAll(start);
    best_.tried = progress_.tried;
    best_.refused = progress_.refused;
    return std::move(best_);
  }

 private:
  bool IsOver() const {
    const bool is_cancelled = options_.cancelled && options_.cancelled();
    return is_cancelled || options_.now() - begin_ >= absl::Seconds(options_.seconds_max);
  }

  void Try(const Kind& kind) {
    const size_t others = kind.size() - 1;
    progress_.site = kind[0]->text;
    if (others > 0) absl::StrAppend(&progress_.site, " and ", others, " like it");
    progress_.has_ended = progress_.was_chosen = false;
    progress_.why.clear();
    progress_.comparison = {};
    const absl::Status tried = TryOne({kind[0]});
    if (!tried.ok()) progress_.why = std::string(tried.message());
    // A whole kind is compared with what one of it has made.
    if (progress_.was_chosen && others > 0) {
      const Comparison first = progress_.comparison;
      if (!TryOne(kind).ok() || !progress_.was_chosen) progress_.comparison = first;
      progress_.was_chosen = true;
    }
    progress_.has_ended = true;
    const bool has_differed = progress_.comparison.seconds_before > 0;
    if ((has_differed || !progress_.why.empty()) && options_.on_progress)
      options_.on_progress(progress_);
  }

  // Makes the choices for these sites the incumbent's if they are faster.
  absl::Status TryOne(const Kind& sites) {
    progress_.was_chosen = false;
    Choices choices = best_.choices;
    for (const Site* site : sites) Add(*site, &choices);
    if (choices == best_.choices) return absl::OkStatus();
    auto program = compile_(choices);
    if (!program.ok() || IsRefused(*program)) {
      ++progress_.refused;
      return program.ok() ? absl::OkStatus() : program.status();
    }
    const auto comparison = compare_(best_.program, *program);
    if (!comparison.ok()) {
      ++progress_.tried;
      return comparison.status();
    }
    if (comparison->seconds_before == 0 && comparison->seconds_after == 0) return absl::OkStatus();
    ++progress_.tried;
    progress_.comparison = *comparison;
    if (!comparison->is_gain) return absl::OkStatus();
    progress_.was_chosen = true;
    ++gains_;
    best_.choices = std::move(choices);
    best_.program = *std::move(program);
    best_.comparison = *comparison;
    return absl::OkStatus();
  }

  // Each was faster than those before it; all together must be faster than the start.
  void ConfirmAll(const CompiledProgram& start) {
    const auto comparison = compare_(start, best_.program);
    ++progress_.tried;
    if (comparison.ok() && comparison->is_gain) {
      best_.comparison = *comparison;
      return;
    }
    best_.choices = options_.start;
    best_.program = start;
    best_.comparison = {};
  }

  std::vector<Kind> kinds_;
  const CompileChoices& compile_;
  const ComparePrograms& compare_;
  const ChoiceSearchOptions& options_;
  const absl::Time begin_;
  ChoiceSearchResult best_;
  ChoiceProgress progress_;
  int gains_ = 0;
};

}  // namespace

bool IsRefused(const CompiledProgram& program) {
  return std::any_of(program.choices.begin(), program.choices.end(),
                     [](const compiler::GraphChoices& part) { return !part.refusal.empty(); });
}

absl::StatusOr<ChoiceSearchResult> FindChoices(const std::vector<Site>& sites,
                                               const CompileChoices& compile,
                                               const ComparePrograms& compare,
                                               const ChoiceSearchOptions& options) {
  return ChoiceSearch(sites, compile, compare, options).Run();
}

}  // namespace kiln::tuner
