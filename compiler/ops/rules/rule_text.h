// The notation of rules (Rule::text in op_def.h), as a tree.
//
// It is a small subset of Python, so that each rule is written once: the daemon evaluates the tree
// (rule_run.h), and opgen turns the text into a function of the Python client. A text has one line
// per step; a line continues while a bracket is open, and before `for` and messages:
//
//   axis = normalize_axis(attributes["axis"], len(x))
//   check x[axis] % 2 == 0: "{op.name} halves dimension {axis} of {x}; its size must be even"
//   check size >= 0 for size in padding: "…"      for each; the message may use the variable
//   check_shape(attributes["size"])               a call only for its errors
//   -> x[:axis] + (x[axis] // 2,) + x[axis + 1:]  the result's shape: last, not in constraints
//
// Values are integers, strings, shapes (tuples of integers; list attributes are tuples too) and
// lists of shapes; conditions are 0 or 1. Names are the operands that the rule declares, and
//
//   op                     op.name
//   shapes, attributes     of all operands; attributes["axis"]
//   dtypes, shape, dtype   in constraints: of the operands, and of the result. A dtype has name,
//                          itemsize, is_float and is_integer
//
// The functions are in rule_functions.cc, Python's in kiln/_rules/functions.py.
#ifndef KILN_COMPILER_OPS_RULES_RULE_TEXT_H_
#define KILN_COMPILER_OPS_RULES_RULE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

struct RuleFunction;  // rule_functions.h

struct Expression {
  enum class Form : uint8_t {
    kNumber,
    kText,
    kVariable,   // `number` is its index among a run's values
    kAttribute,  // `text` is its name
    kMember,     // parts[0].text
    kTuple,
    kList,
    kItem,   // parts[0][parts[1]]
    kSlice,  // parts[0][parts[1]:parts[2]]; an omitted end has the form kNothing
    kNothing,
    kCall,           // of `function`
    kComprehension,  // parts[0] for the variable `number` in parts[1] if parts[2] (optional)
    kConditional,    // parts[1] if parts[0] else parts[2]
    kAnd,
    kOr,
    kNot,
    kNegative,
    kAdd,
    kSubtract,
    kMultiply,
    kFloorDivide,
    kModulo,
    kEqual,
    kLess,
    kLessOrEqual,
    kIn
  } form = Form::kNothing;
  int64_t number = 0;
  std::string text = {};
  const RuleFunction* function = nullptr;
  std::vector<Expression> parts = {};
};

struct RuleStep {
  enum class Kind : uint8_t { kAssign, kCheck, kCall, kResult } kind = Kind::kCall;
  int64_t variable = 0;  // kAssign's; for a kCheck with `each`, the loop variable
  Expression value = {};
  std::optional<Expression> each = {};
  std::vector<Expression> message = {};  // strings, and the expressions in braces between them
  // The source text, for opgen: name, value and, for a check, the `each` and the message's
  // literals.
  std::string variable_text = {}, value_text = {}, each_text = {};
  std::vector<std::string> message_text = {};
};

// Indices of a run's values: these first, then the operands, then the variables of the text.
enum RuleVariable : int64_t {
  kVariableShapes,
  kVariableDTypes,
  kVariableShape,
  kVariableDType,
  kVariableOp,
  kVariableAttributes,
  kVariableFirstOperand
};

struct RuleProgram {
  std::vector<std::string> operands;  // names with "?" if they are optional
  std::vector<RuleStep> steps;
  int64_t variables = 0;
};

// Returns INTERNAL, with the position, if the text is not as described above.
absl::StatusOr<RuleProgram> ParseRule(const Rule& rule);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_TEXT_H_
