#include "compiler/ops/rules/rule_expression.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/rule_functions.h"

namespace kiln::ops {

using Form = Expression::Form;
using Token = RuleToken;

struct ExpressionParser::InfixOp {
  std::string_view text;
  Form form;
  bool swaps = false;  // the operands
  bool negates = false;

  // Returns the op of the token, or null.
  static const InfixOp* Find(absl::Span<const InfixOp> ops, const Token& token) {
    const auto* found = std::find_if(ops.begin(), ops.end(), [&](const InfixOp& op) {
      return token.kind != Token::Kind::kText && op.text == token.text;
    });
    return found == ops.end() ? nullptr : found;
  }
};

const int64_t* RuleNames::Find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

int64_t RuleNames::Define(std::string_view name) {
  const auto [found, is_new] = places_.emplace(name, size_);
  if (is_new) ++size_;
  return found->second;
}

Token ExpressionParser::Take() {
  const Token token = Now();
  // Never passes the end token, so reading the current token is always safe.
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::Accept(std::string_view text) {
  const bool is = Is(text);
  if (is) Take();
  return is;
}

void ExpressionParser::Fail(std::string_view wanted) {
  // Rules are part of the daemon, so a mistake in one is a defect.
  FailWith(absl::InternalError(StrCat("\"", Now().text, "\" where ", wanted, " should stand")));
}

void ExpressionParser::FailWith(absl::Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  // Skips to the end, so that every loop over tokens ends.
  at_ = tokens_.size() - 1;
}

void ExpressionParser::Demand(std::string_view text) {
  if (!Accept(text)) Fail(text);
}

std::string_view ExpressionParser::Demand(Token::Kind kind) {
  if (!Is(kind)) Fail(kind == Token::Kind::kName ? "a name" : "the end");
  return Take().text;
}

std::string_view ExpressionParser::VariableAhead() const {
  int open = 0;
  for (size_t i = at_; i + 1 < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.kind == Token::Kind::kText) continue;
    if (token.text == "(" || token.text == "[") ++open;
    if (token.text == ")" || token.text == "]") --open;
    const bool ends = token.kind == Token::Kind::kLineEnd || token.text == "," || token.text == ":";
    if (open < 0 || (open == 0 && ends)) return {};
    if (open == 0 && token.text == "for") return tokens_[i + 1].text;
  }
  return {};
}

int64_t ExpressionParser::OpenFor(std::string_view variable) {
  if (names_.Find(variable) != nullptr) {
    FailWith(absl::InternalError(
        StrCat("\"for ", variable, "\" where ", variable, " names something else")));
  }
  const int64_t place = names_.NewPlace();
  names_.Open(variable, place);
  return place;
}

// One function per level of Python's precedence, from Conditional, the lowest, to Atom.
Expression ExpressionParser::Whole() {
  Expression result = Conditional();
  Demand(Token::Kind::kEnd);
  return result;
}

Expression ExpressionParser::Conditional() {
  Expression value = Or();
  if (!Accept("if")) return value;
  // The condition comes first, since it is evaluated first; Python writes it after the value.
  Expression condition = Or();
  Demand("else");
  return {.form = Form::kConditional,
          .parts = {std::move(condition), std::move(value), Conditional()}};
}

Expression ExpressionParser::Or() {
  Expression left = And();
  while (Accept("or")) left = {.form = Form::kOr, .parts = {std::move(left), And()}};
  return left;
}

Expression ExpressionParser::And() {
  Expression left = Not();
  while (Accept("and")) left = {.form = Form::kAnd, .parts = {std::move(left), Not()}};
  return left;
}

Expression ExpressionParser::Not() {
  if (Accept("not")) return {.form = Form::kNot, .parts = {Not()}};
  return Comparison();
}

// As in Python, a < b < c is a < b and b < c.
Expression ExpressionParser::Comparison() {
  static constexpr InfixOp kComparisons[] = {
      {"==", Form::kEqual},     {"!=", Form::kEqual, false, true},
      {"<", Form::kLess},       {"<=", Form::kLessOrEqual},
      {">", Form::kLess, true}, {">=", Form::kLessOrEqual, true},
      {"in", Form::kIn}};
  Expression left = Sum();
  Expression all;
  while (true) {
    // Only `not in` has a "not" between two operands.
    const bool is_negated = Accept("not");
    const InfixOp* op = InfixOp::Find(kComparisons, Now());
    if (op == nullptr) return all.form == Form::kNothing ? left : all;
    Take();
    Expression right = Sum();
    Expression one{.form = op->form,
                   .parts = op->swaps ? std::vector{right, left} : std::vector{left, right}};
    if (is_negated || op->negates) one = {.form = Form::kNot, .parts = {std::move(one)}};
    all = all.form == Form::kNothing
              ? std::move(one)
              : Expression{.form = Form::kAnd, .parts = {std::move(all), std::move(one)}};
    left = std::move(right);
  }
}

Expression ExpressionParser::Sum() {
  static constexpr InfixOp kSums[] = {{"+", Form::kAdd}, {"-", Form::kSubtract}};
  Expression left = Product();
  while (const InfixOp* op = InfixOp::Find(kSums, Now())) {
    Take();
    left = {.form = op->form, .parts = {std::move(left), Product()}};
  }
  return left;
}

Expression ExpressionParser::Product() {
  static constexpr InfixOp kProducts[] = {
      {"*", Form::kMultiply}, {"//", Form::kFloorDivide}, {"%", Form::kModulo}};
  Expression left = Unary();
  while (const InfixOp* op = InfixOp::Find(kProducts, Now())) {
    Take();
    left = {.form = op->form, .parts = {std::move(left), Unary()}};
  }
  return left;
}

Expression ExpressionParser::Unary() {
  if (Accept("-")) return {.form = Form::kNegative, .parts = {Unary()}};
  Expression value = Atom();
  while (true) {
    if (Accept(".")) {
      std::string member(Demand(Token::Kind::kName));
      value = {.form = Form::kMember, .text = std::move(member), .parts = {std::move(value)}};
    } else if (Accept("[")) {
      value = Subscript(std::move(value));
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::Subscript(Expression base) {
  // Attributes are named by a literal: rules have no dictionaries.
  if (base.form == Form::kVariable && base.number == kVariableAttributes) {
    if (!Is(Token::Kind::kText)) Fail("an attribute's name");
    Expression value{.form = Form::kAttribute, .text = Unquoted(Take().text)};
    Demand("]");
    return value;
  }
  Expression begin = Is(":") ? Expression{} : Conditional();
  if (!Accept(":")) {
    Demand("]");
    return {.form = Form::kItem, .parts = {std::move(base), std::move(begin)}};
  }
  Expression end = Is("]") ? Expression{} : Conditional();
  Demand("]");
  return {.form = Form::kSlice, .parts = {std::move(base), std::move(begin), std::move(end)}};
}

Expression ExpressionParser::Atom() {
  if (Is(Token::Kind::kText)) return {.form = Form::kText, .text = Unquoted(Take().text)};
  if (Is(Token::Kind::kNumber)) return Number();
  if (Accept("(")) return Tuple();
  if (Accept("[")) return {.form = Form::kList, .parts = Items("]")};
  const std::string_view name = Demand(Token::Kind::kName);
  if (Accept("(")) return Call(name);
  const int64_t* place = names_.Find(name);
  if (place != nullptr) return {.form = Form::kVariable, .number = *place};
  FailWith(absl::InternalError(StrCat("nothing is named ", name)));
  return {};
}

Expression ExpressionParser::Number() {
  Expression value{.form = Form::kNumber};
  if (!absl::SimpleAtoi(View(Take().text), &value.number)) Fail("a number");
  return value;
}

// Parentheses around one expression without a comma make no tuple.
Expression ExpressionParser::Tuple() {
  if (Accept(")")) return {.form = Form::kTuple};
  Expression first = Conditional();
  if (Accept(")")) return first;
  Demand(",");
  Expression tuple{.form = Form::kTuple, .parts = Items(")")};
  tuple.parts.insert(tuple.parts.begin(), std::move(first));
  return tuple;
}

std::vector<Expression> ExpressionParser::Items(std::string_view end) {
  std::vector<Expression> items;
  while (status_.ok() && !Is(end)) {
    items.push_back(Conditional());
    if (!Is(end)) Demand(",");
  }
  Demand(end);
  return items;
}

Expression ExpressionParser::Call(std::string_view name) {
  Expression call{.form = Form::kCall, .function = FindRuleFunction(name)};
  if (call.function == nullptr) Fail("a function of rules");
  const std::string_view variable = VariableAhead();
  if (!variable.empty()) {
    call.parts.push_back(Comprehension(variable));
    Demand(")");
  } else {
    call.parts = Items(")");
  }
  if (status_.ok()) CheckArguments(call);
  return call;
}

void ExpressionParser::CheckArguments(const Expression& call) {
  const RuleFunction& function = *call.function;
  const auto given = static_cast<int64_t>(call.parts.size());
  const bool fits = given >= function.arguments_min && given <= function.arguments_max;
  if (fits) return;
  const bool is_one_number = function.arguments_min == function.arguments_max;
  const std::string up_to =
      function.arguments_max == kAnyNumber ? "more" : StrCat(function.arguments_max);
  FailWith(absl::InternalError(StrCat(
      function.name, " takes ", function.arguments_min, is_one_number ? "" : StrCat(" or ", up_to),
      function.arguments_max == 1 ? " argument" : " arguments", ", not ", given)));
}

// As in Python, the variable is in scope in the element and the condition, but not in the iterated
// expression.
Expression ExpressionParser::Comprehension(std::string_view variable) {
  Expression result{.form = Form::kComprehension, .number = OpenFor(variable)};
  result.parts.push_back(Conditional());
  Demand("for");
  Demand(Token::Kind::kName);
  Demand("in");
  names_.Close(variable);
  result.parts.push_back(Or());
  names_.Open(variable, result.number);
  if (Accept("if")) result.parts.push_back(Or());
  names_.Close(variable);
  return result;
}

std::string Unquoted(std::string_view literal) {
  std::string text;
  for (size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] == '\\') ++i;
    text += literal[i];
  }
  return text;
}

}  // namespace kiln::ops
