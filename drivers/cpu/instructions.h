// Selects the vector instructions that generated code may use: those of the processor, or fewer on
// request.
#ifndef KILN_DRIVERS_CPU_INSTRUCTIONS_H_
#define KILN_DRIVERS_CPU_INSTRUCTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cpu {

// Whether the processor has a feature, by LLVM's name for it. Injected, so tests can supply their
// own.
using HasFeature = std::function<bool(absl::string_view feature)>;
bool HostHasFeature(absl::string_view feature);

// Fills in target's processor, features, variant, capabilities and vector registers. `words` are
// separated by commas: a level (default: the processor's best), then features to exclude.
//
//   sse4.2      16-byte vectors: 4 lanes of float32
//   avx2        32-byte vectors: 8 lanes; with fma and f16c where the processor has them
//   avx512      64-byte vectors: 16 lanes; always with fma and f16c
//   -fma        no fused multiply-add
//   -f16c       no instructions that convert float16
//
// INVALID_ARGUMENT: an unknown word, or excluding a feature that the level requires; the message
// says what is allowed. FAILED_PRECONDITION: a level that the processor does not have.
// UNIMPLEMENTED: the processor has no supported level.
absl::Status ChooseInstructions(const HasFeature& has, const std::string& words, Target* target);

// Returns the words accepted by this processor: one for each level and set of features that changes
// code, widest first. Tests should pass with each of them.
std::vector<std::string> ExecutableFeatures(const HasFeature& has = HostHasFeature);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_INSTRUCTIONS_H_
