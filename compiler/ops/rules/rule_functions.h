// The functions that rules may call. Internal to compiler/ops/rules.
#ifndef KILN_COMPILER_OPS_RULES_RULE_FUNCTIONS_H_
#define KILN_COMPILER_OPS_RULES_RULE_FUNCTIONS_H_

#include <climits>
#include <string_view>

#include "absl/types/span.h"
#include "compiler/ops/rules/rule_run.h"

namespace kiln::ops {

inline constexpr int kAnyNumber = INT_MAX;

struct RuleFunction {
  std::string_view name;
  RuleValue (*call)(RuleRun& run, absl::Span<const RuleValue> arguments);
  // The range of argument counts; the parser refuses other counts.
  int arguments_min;
  int arguments_max;
  bool is_python = false;  // a builtin of Python
};

// Returns null if there is none.
const RuleFunction* FindRuleFunction(std::string_view name);

absl::Span<const RuleFunction> RuleFunctions();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_FUNCTIONS_H_
