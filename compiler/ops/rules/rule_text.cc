#include "compiler/ops/rules/rule_text.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_split.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/rule_expression.h"
#include "compiler/ops/rules/rule_tokens.h"

namespace kiln::ops {
namespace {

class StepParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  std::vector<RuleStep> Steps() {
    std::vector<RuleStep> steps;
    while (status_.ok() && !Is(RuleToken::Kind::kEnd)) {
      steps.push_back(Step());
      if (!Is(RuleToken::Kind::kEnd)) Demand(RuleToken::Kind::kLineEnd);
    }
    return steps;
  }

 private:
  RuleStep Step() {
    if (Accept("->")) return Valued({.kind = RuleStep::Kind::kResult});
    if (Accept("check")) return Check();
    // The next token distinguishes an assignment from a call.
    const bool is_assigned = tokens_[at_ + 1].text == "=";
    if (!is_assigned) return Valued({.kind = RuleStep::Kind::kCall});
    std::string variable(Demand(RuleToken::Kind::kName));
    Demand("=");
    RuleStep step = Valued({.kind = RuleStep::Kind::kAssign});
    step.variable = names_.Define(variable);
    step.variable_text = std::move(variable);
    return step;
  }

  RuleStep Check() {
    const std::string_view variable = VariableAhead();
    if (variable.empty()) return Messaged(Valued({.kind = RuleStep::Kind::kCheck}));
    const int64_t place = OpenFor(variable);
    RuleStep step = Valued({.kind = RuleStep::Kind::kCheck});
    Demand("for");
    step.variable = place;
    step.variable_text = std::string(Demand(RuleToken::Kind::kName));
    Demand("in");
    names_.Close(variable);
    const size_t first = at_;
    step.each = Or();
    step.each_text = Written(first);
    names_.Open(variable, place);
    step = Messaged(std::move(step));
    names_.Close(variable);
    return step;
  }

  RuleStep Messaged(RuleStep step) {
    Demand(":");
    if (!Is(RuleToken::Kind::kText)) Fail("a message");
    while (Is(RuleToken::Kind::kText)) {
      step.message_text.emplace_back(Now().text);
      AddMessage(Unquoted(Take().text), &step.message);
    }
    return step;
  }

  RuleStep Valued(RuleStep step) {
    const size_t first = at_;
    step.value = Conditional();
    step.value_text = Written(first);
    return step;
  }

  // Returns the source from token `first` to the token before the current one, on one line.
  std::string Written(size_t first) const {
    if (at_ == first) return "";
    const char* begin = tokens_[first].text.data();
    const std::string_view last = tokens_[at_ - 1].text;
    std::string text;
    for (const char* c = begin; c < last.data() + last.size(); ++c) {
      const bool is_space = *c == ' ' || *c == '\n';
      if (!is_space || text.back() != ' ') text += is_space ? ' ' : *c;
    }
    return text;
  }

  // Splits text into strings and the expressions in braces between them.
  void AddMessage(std::string_view text, std::vector<Expression>* parts) {
    while (!text.empty()) {
      const size_t open = text.find('{');
      parts->push_back(
          {.form = Expression::Form::kText, .text = std::string(text.substr(0, open))});
      if (open == std::string_view::npos) return;
      const size_t close = text.find('}', open);
      if (close == std::string_view::npos) return Fail("a message with two braces of each");
      auto tokens = RuleTokens(text.substr(open + 1, close - open - 1));
      if (!tokens.ok()) return Fail("a message with an expression in its braces");
      ExpressionParser inside(*std::move(tokens), names_);
      parts->push_back(inside.Whole());
      if (status_.ok()) status_ = inside.status();
      text.remove_prefix(close + 1);
    }
  }
};

absl::Status Parse(const Rule& rule, RuleProgram* program) {
  // Operands come first, at the indices where RuleRun puts their shapes.
  RuleNames names;
  for (const absl::string_view operand :
       absl::StrSplit(View(rule.operands), ", ", absl::SkipEmpty())) {
    program->operands.emplace_back(operand);
    const bool is_optional = operand.back() == '?';
    names.Define({operand.data(), operand.size() - (is_optional ? 1 : 0)});
  }
  auto tokens = RuleTokens(rule.text);
  if (!tokens.ok()) return tokens.status();
  StepParser parser(*std::move(tokens), names);
  program->steps = parser.Steps();
  if (!parser.status().ok()) return parser.status();
  program->variables = names.size();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RuleProgram> ParseRule(const Rule& rule) {
  RuleProgram program;
  const absl::Status status = Parse(rule, &program);
  if (status.ok()) return program;
  return absl::InternalError(StrCat("the rule \"", rule.name, "\": ", status.message()));
}

}  // namespace kiln::ops
