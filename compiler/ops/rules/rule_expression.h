// Parses the expressions of a rule's text by recursive descent. Internal to compiler/ops/rules.
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

// The names in scope at the parser's position, with the indices of their values.
class RuleNames {
 public:
  // Returns null if nothing has this name.
  const int64_t* Find(std::string_view name) const;
  // Defines an operand, or a name that the text assigns (possibly again).
  int64_t Define(std::string_view name);
  // The variable of a `for` is in scope only in a part of the text: Open and Close bound that part.
  int64_t NewPlace() { return size_++; }
  void Open(std::string_view name, int64_t place) { places_.emplace(name, place); }
  void Close(std::string_view name) { places_.erase(std::string(name)); }

  // Returns the number of value indices.
  int64_t size() const { return size_; }

 private:
  std::map<std::string, int64_t, std::less<>> places_ = {
      {"shapes", kVariableShapes}, {"dtypes", kVariableDTypes},
      {"shape", kVariableShape},   {"dtype", kVariableDType},
      {"op", kVariableOp},         {"attributes", kVariableAttributes}};
  int64_t size_ = kVariableFirstOperand;
};

// Keeps the first error; after it, results are meaningless.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<RuleToken> tokens, RuleNames& names)
      : tokens_(std::move(tokens)), names_(names) {}

  const absl::Status& status() const { return status_; }

  // Parses the whole text as one expression.
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

  // Returns the variable of the `for` that ends this clause, since the element precedes the `for`.
  // Empty if there is none.
  std::string_view VariableAhead() const;
  // Returns the index of a `for`'s variable, which is in scope from here on. A name that is already
  // defined is refused: in the client's Python functions a check's `for` would assign to it.
  int64_t OpenFor(std::string_view variable);

  // Parse any expression, and an expression that may precede "if" and follow "in".
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

// Returns the characters of a literal.
std::string Unquoted(std::string_view literal);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_RULE_EXPRESSION_H_
