// The tokens of a rule's text. Internal to compiler/ops/rules.
#ifndef KILN_COMPILER_OPS_RULES_RULE_TOKENS_H_
#define KILN_COMPILER_OPS_RULES_RULE_TOKENS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::ops {

struct RuleToken {
  enum class Kind : uint8_t { kNumber, kName, kText, kSymbol, kLineEnd, kEnd } kind;
  std::string_view text;  // a part of the rule's text; a kText includes its quotes
};

// The result ends with a kEnd. INTERNAL: a character that begins no token, or an unterminated
// string.
absl::StatusOr<std::vector<RuleToken>> RuleTokens(std::string_view text);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_TOKENS_H_
