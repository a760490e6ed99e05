// Evaluates a rule for operands and attributes. Internal to compiler/ops/rules.
//
// INVALID_ARGUMENT: a check of the rule or a function that it calls failed, or an integer
// overflowed 64 bits. INTERNAL: the rule does not match its row.
#ifndef KILN_COMPILER_OPS_RULES_RULE_RUN_H_
#define KILN_COMPILER_OPS_RULES_RULE_RUN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/rule_text.h"

namespace kiln::ops {

using RuleValue = std::variant<std::monostate, int64_t, double, std::string, ir::DType, ir::Shape,
                               std::vector<ir::Shape>, std::vector<ir::DType>>;

class RuleRun {
 public:
  RuleRun(const RuleProgram& program, const RuleQuery& query);

  // Returns () for a constraint.
  absl::StatusOr<ir::Shape> Run();

  // For the functions of rules (rule_functions.h). Keeps the first failure; after it, functions may
  // return any value.
  const RuleQuery& query() const { return query_; }
  void Fail(absl::Status status);
  // Returns `result`'s value; if it failed, keeps the failure and returns `otherwise`.
  template <typename T>
  T OrFail(absl::StatusOr<T> result, T otherwise = {}) {
    if (result.ok()) return *std::move(result);
    Fail(result.status());
    return otherwise;
  }
  void FailAsTooLarge();
  // Returns the value as this type; fails if it has another type.
  template <typename T>
  const T& As(const RuleValue& value) {
    static const T& none = *new T();
    if (const T* held = std::get_if<T>(&value)) return *held;
    FailAsDefect("a value has another type");
    return none;
  }
  int64_t IntOf(const RuleValue& value) { return As<int64_t>(value); }
  const ir::Shape& ShapeOf(const RuleValue& value) { return As<ir::Shape>(value); }

 private:
  void FailAsDefect(std::string_view what);

  void Execute(const RuleStep& step);
  void Check(const RuleStep& step);
  std::string Message(const RuleStep& step);

  RuleValue Evaluate(const Expression& expression);
  // The same without a copy if the expression is a variable; otherwise stores the value in `held`.
  const RuleValue& Refer(const Expression& expression, RuleValue& held);
  RuleValue Variable(int64_t place);
  RuleValue EvaluateArithmetic(const Expression& expression);
  RuleValue EvaluateCall(const Expression& call);
  RuleValue Attribute(const std::string& name);
  RuleValue Member(const Expression& member);
  RuleValue Tuple(const Expression& tuple);
  RuleValue List(const Expression& list);
  RuleValue SubscriptedItem(const Expression& item);
  RuleValue Item(const RuleValue& base, int64_t index);
  RuleValue Slice(const Expression& slice);
  RuleValue Comprehension(const Expression& comprehension);
  RuleValue Add(const RuleValue& a, const RuleValue& b);
  bool IsIn(const RuleValue& a, const RuleValue& b);
  bool IsLess(const RuleValue& a, const RuleValue& b);
  bool Holds(const Expression& condition);
  int64_t EvaluateInt(const Expression& expression) { return IntOf(Evaluate(expression)); }
  // Returns the number of items of a tuple or a list.
  int64_t Size(const RuleValue& value);

  const RuleProgram& program_;
  const RuleQuery& query_;
  std::vector<RuleValue> variables_;
  absl::Status status_;
};

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_RUN_H_
