// Which vector instructions generated code may use: what the processor has, or less if asked for.
#ifndef KILN_DRIVERS_CPU_INSTRUCTIONS_H_
#define KILN_DRIVERS_CPU_INSTRUCTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cpu {

// Whether the processor has a feature, by LLVM's name for it. Handed in, so that tests make their
// own.
using HasFeature = std::function<bool(absl::string_view feature)>;
bool HostHasFeature(absl::string_view feature);

// Fills in target's processor, features, variant, capabilities and vector registers. `words`
// separated by commas: a level, of which the processor's best is the default, then what to leave
// out of it.
//
//   sse4.2      16-byte vectors: 4 lanes of float32
//   avx2        32-byte vectors: 8 lanes; with fma and f16c where the processor has them
//   avx512      64-byte vectors: 16 lanes; always with fma and f16c
//   -fma        no fused multiply-add
//   -f16c       no instructions that convert float16
//
// INVALID_ARGUMENT, and the message says what would be right: an unknown word, or a feature that
// the level cannot do without. FAILED_PRECONDITION: a level that the processor does not have.
// UNIMPLEMENTED: it has none at all.
absl::Status ChooseInstructions(const HasFeature& has, const std::string& words, Target* target);

// Words that this processor takes: one for each level and set of features that code differs by,
// widest first. Whatever runs on one of them should run on all.
std::vector<std::string> ExecutableFeatures(const HasFeature& has = HostHasFeature);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_INSTRUCTIONS_H_
