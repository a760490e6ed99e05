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

// The names that may stand where the parser is, with the places of their values.
class RuleNames {
 public:
  // Null if nothing has this name.
  const int64_t* Find(std::string_view name) const;
  // Of an operand, or of what the text assigns, perhaps again.
  int64_t Define(std::string_view name);
  // The variable of a `for` is known in a part of the text.
  int64_t NewPlace() { return size_++; }
  void Open(std::string_view name, int64_t place) { places_.emplace(name, place); }
  void Close(std::string_view name) { places_.erase(std::string(name)); }

  // How many places there are.
  int64_t size() const { return size_; }

 private:
  std::map<std::string, int64_t, std::less<>> places_ = {
      {"shapes", kVariableShapes}, {"dtypes", kVariableDTypes},
      {"shape", kVariableShape},   {"dtype", kVariableDType},
      {"op", kVariableOp},         {"attributes", kVariableAttributes}};
  int64_t size_ = kVariableFirstOperand;
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
  void FailWith(absl::Status status);
  void Demand(std::string_view text);
  std::string_view Demand(RuleToken::Kind kind);

  // The variable of the `for` that ends this clause: what it is for stands before it. Empty if
  // there is none.
  std::string_view VariableAhead() const;
  // The place of a `for`'s variable, which is known from here on. A name that is taken is refused:
  // in the client's functions a check's `for` would assign to it.
  int64_t OpenFor(std::string_view variable);

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
  void CheckArguments(const Expression& call);
  Expression Comprehension(std::string_view variable);
};

// The characters that a literal stands for.
std::string Unquoted(std::string_view literal);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_EXPRESSION_H_
