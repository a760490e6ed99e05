#include "drivers/cpu/instructions.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace kiln::drivers::cpu {
namespace {

struct Level {
  const char* name;
  const char* processor;           // LLVM's name for the level
  std::vector<const char*> needs;  // features that show that a processor has all of the level
  int vector_bytes;
  int vector_registers;
};

// From lowest to highest.
const std::vector<Level>& Levels() {
  static const std::vector<Level>& levels = *new std::vector<Level>{
      {"sse4.2", "x86-64-v2", {"ssse3", "sse4.2", "popcnt"}, 16, 16},
      {"avx2", "x86-64-v3", {"avx2", "bmi", "bmi2", "lzcnt"}, 32, 16},
      {"avx512",
       "x86-64-v4",
       {"fma", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
       64,
       32}};
  return levels;
}
constexpr int kSse42 = 0, kAvx2 = 1, kAvx512 = 2;

// Features that a processor of a level may or may not have. Leaving out one of kLeftOutAtWish
// changes the code; kernels only profit from the others.
struct Extra {
  const char* name;
  int first_level;  // first level that may have it
  int always_from;  // first level that requires it
};
constexpr Extra kLeftOutAtWish[] = {{"fma", kAvx2, kAvx512}, {"f16c", kAvx2, kAvx512}};
constexpr Extra kExtras[] = {{"avxvnni", kAvx2, 3},
                             {"avx512vnni", kAvx512, 3},
                             {"avx512bf16", kAvx512, 3},
                             {"avx512fp16", kAvx512, 3}};

int BestLevel(const HasFeature& has) {
  int best = -1;
  for (const Level& level : Levels()) {
    // Each level contains those below it.
    if (!std::all_of(level.needs.begin(), level.needs.end(), has)) break;
    ++best;
  }
  return best;
}

std::string NamesOfLevels(int count) {
  return absl::StrJoin(Levels().begin(), Levels().begin() + count, ", ",
                       [](std::string* out, const Level& level) { out->append(level.name); });
}

absl::Status Unknown(absl::string_view word) {
  return absl::InvalidArgumentError(absl::StrCat("cpu_features: \"", word, "\" is unknown; use ",
                                                 NamesOfLevels(static_cast<int>(Levels().size())),
                                                 ", -fma, -f16c"));
}

struct Choice {
  int level;
  std::vector<std::string> left_out;
};

absl::Status TakeLevel(absl::string_view word, int best, Choice* choice) {
  for (int level = 0; level < static_cast<int>(Levels().size()); ++level) {
    if (word != Levels()[level].name) continue;
    if (level > best) {
      return absl::FailedPreconditionError(absl::StrCat("cpu_features: this processor lacks ", word,
                                                        "; it has ", NamesOfLevels(best + 1)));
    }
    choice->level = level;
    return absl::OkStatus();
  }
  return Unknown(word);
}

absl::Status LeaveOut(absl::string_view word, Choice* choice) {
  for (const Extra& extra : kLeftOutAtWish) {
    if (word != absl::StrCat("-", extra.name)) continue;
    if (choice->level >= extra.always_from) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cpu_features: ", Levels()[choice->level].name, " always includes ", extra.name, "; \"",
          Levels()[extra.always_from - 1].name, ",", word, "\" excludes it"));
    }
    choice->left_out.push_back(extra.name);
    return absl::OkStatus();
  }
  return Unknown(word);
}

absl::StatusOr<Choice> Parse(const std::string& words, int best) {
  Choice choice = {best, {}};
  bool first = true;
  for (absl::string_view word : absl::StrSplit(words, ',', absl::SkipEmpty())) {
    const bool is_level = !absl::StartsWith(word, "-");
    if (is_level && !first) {
      return absl::InvalidArgumentError(
          absl::StrCat("cpu_features: \"", word, "\" must be first, as in avx2,-fma"));
    }
    absl::Status status = is_level ? TakeLevel(word, best, &choice) : LeaveOut(word, &choice);
    if (!status.ok()) return status;
    first = false;
  }
  return choice;
}

}  // namespace

bool HostHasFeature(absl::string_view feature) {
  __builtin_cpu_init();
// __builtin_cpu_supports takes only a literal, hence one line for each name.
#define KILN_KNOWN_FEATURE(name) \
  if (feature == name) return __builtin_cpu_supports(name)
  KILN_KNOWN_FEATURE("ssse3");
  KILN_KNOWN_FEATURE("sse4.2");
  KILN_KNOWN_FEATURE("popcnt");
  KILN_KNOWN_FEATURE("avx2");
  KILN_KNOWN_FEATURE("bmi");
  KILN_KNOWN_FEATURE("bmi2");
  KILN_KNOWN_FEATURE("lzcnt");
  KILN_KNOWN_FEATURE("fma");
  KILN_KNOWN_FEATURE("f16c");
  KILN_KNOWN_FEATURE("avx512f");
  KILN_KNOWN_FEATURE("avx512bw");
  KILN_KNOWN_FEATURE("avx512cd");
  KILN_KNOWN_FEATURE("avx512dq");
  KILN_KNOWN_FEATURE("avx512vl");
  KILN_KNOWN_FEATURE("avxvnni");
  KILN_KNOWN_FEATURE("avx512vnni");
  KILN_KNOWN_FEATURE("avx512bf16");
  KILN_KNOWN_FEATURE("avx512fp16");
#undef KILN_KNOWN_FEATURE
  return false;
}

absl::Status ChooseInstructions(const HasFeature& has, const std::string& words, Target* target) {
  const int best = BestLevel(has);
  if (best < 0) {
    return absl::UnimplementedError(
        "this processor lacks SSE4.2; Kiln generates code for x86-64-v2 (Nehalem, Bulldozer) and "
        "later");
  }
  const absl::StatusOr<Choice> choice = Parse(words, best);
  if (!choice.ok()) return choice.status();
  const Level& level = Levels()[choice->level];
  target->processor = level.processor;
  target->variant = level.name;
  target->limits.vector_bytes = level.vector_bytes;
  target->limits.vector_registers = level.vector_registers;
  std::vector<std::string> features;
  for (const char* need : level.needs) features.push_back(absl::StrCat("+", need));
  for (const Extra& extra : kLeftOutAtWish) {
    if (choice->level < extra.first_level || choice->level >= extra.always_from) continue;
    const bool wanted = std::find(choice->left_out.begin(), choice->left_out.end(), extra.name) ==
                        choice->left_out.end();
    // Written in both cases: x86-64-v3 includes both, so an unwanted one must be switched off.
    const bool used = wanted && has(extra.name);
    features.push_back(absl::StrCat(used ? "+" : "-", extra.name));
    if (!used) absl::StrAppend(&target->variant, ",-", extra.name);
  }
  for (const Extra& extra : kExtras) {
    if (choice->level >= extra.first_level && has(extra.name))
      features.push_back(absl::StrCat("+", extra.name));
  }
  target->features = absl::StrJoin(features, ",");
  target->capabilities = {
      .fma = target->Has("fma"), .fp64 = true, .fp16 = target->Has("avx512fp16")};
  return absl::OkStatus();
}

std::vector<std::string> ExecutableFeatures(const HasFeature& has) {
  std::vector<std::string> all;
  for (int level = BestLevel(has); level >= 0; --level) {
    std::vector<std::string> variants = {""};
    for (const Extra& extra : kLeftOutAtWish) {
      if (level < extra.first_level || level >= extra.always_from) continue;
      const std::vector<std::string> with = std::move(variants);
      variants.clear();
      for (const std::string& variant : with) {
        if (has(extra.name)) variants.push_back(variant);
        variants.push_back(absl::StrCat(variant, ",-", extra.name));
      }
    }
    for (const std::string& variant : variants)
      all.push_back(absl::StrCat(Levels()[level].name, variant));
  }
  return all;
}

}  // namespace kiln::drivers::cpu
