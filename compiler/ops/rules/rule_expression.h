// Reads the expressions of a rule's text, by recursive descent. Internal to compiler/ops/rules.
#ifndef KILN_COMPILER_OPS_RULES_RULE_EXPRESSION_H_
#define KILN_COMPILER_OPS_RULES_RULE_EXPRESSION_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ops/rules/rule_text.h"
#include "compiler/ops/rules/rule_tokens.h"

namespace kiln::ops {

// The names of one rule and the places of their values. A name may be used before it is known where
// it comes from: an element stands before the `for` that defines its variable.
struct RuleNames {
  std::map<std::string, int64_t, std::less<>> places = {
      {"shapes", kVariableShapes}, {"dtypes", kVariableDTypes},
      {"shape", kVariableShape},   {"dtype", kVariableDType},
      {"op", kVariableOp},         {"attributes", kVariableAttributes}};
  std::vector<bool> defined = std::vector<bool>(kVariableFirstOperand, true);

  int64_t Place(std::string_view name);
  int64_t Define(std::string_view name);
};

// Keeps the first mistake and gives anything from then on.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<RuleToken> tokens, RuleNames& names)
      : tokens_(std::move(tokens)), names_(names) {}

  const absl::Status& status() const { return status_; }

  // What the whole text is.
  Expression Whole();

 protected:
  bool Is(RuleToken::Kind kind) const { return Now().kind == kind; }
  bool Is(std::string_view text) const { return !Is(RuleToken::Kind::kText) && Now().text == text; }
  const RuleToken& Now() const { return tokens_[at_]; }
  RuleToken Take();
  bool Accept(std::string_view text);
  void Fail(std::string_view wanted);
  void Demand(std::string_view text);
  std::string_view Demand(RuleToken::Kind kind);

  // Any expression; and one that may stand before "if" and after "in".
  Expression Conditional();
  Expression Or();

  std::vector<RuleToken> tokens_;
  RuleNames& names_;
  size_t at_ = 0;
  absl::Status status_;

 private:
  struct InfixOp;

  Expression And();
  Expression Not();
  Expression Comparison();
  Expression Sum();
  Expression Product();
  Expression Unary();
  Expression Subscript(Expression base);
  Expression Atom();
  Expression Number();
  Expression Tuple();
  std::vector<Expression> Items(std::string_view end);
  Expression Call(std::string_view name);
  Expression Comprehension(Expression element);
};

// The characters that a literal stands for.
std::string Unquoted(std::string_view literal);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_EXPRESSION_H_
