#include "compiler/ops/rules/rule_run.h"

#include <algorithm>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/rule_functions.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Shape;
using Form = Expression::Form;

struct AttributeAsValue {
  RuleValue operator()(bool value) const { return int64_t{value}; }
  template <typename T>
  RuleValue operator()(const T& value) const {
    return value;
  }
};

struct ShownValue {
  std::string operator()(int64_t value) const { return StrCat(value); }
  std::string operator()(double value) const { return StrCat(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const Shape& value) const { return ToString(value); }
  template <typename T>
  std::string operator()(const T&) const {
    return "?";
  }
};

// Python's division: rounds down, with a remainder of the divisor's sign.
int64_t FloorQuotient(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

}  // namespace

RuleRun::RuleRun(const RuleProgram& program, const RuleQuery& query)
    : program_(program), query_(query), variables_(program.variables) {
  variables_[kVariableShape] = Shape(query.shape.begin(), query.shape.end());
  variables_[kVariableDType] = query.dtype;
  // Optional operands that are not given have no value.
  const size_t named = std::min(program.operands.size(), query.shapes.size());
  for (size_t i = 0; i < named; ++i) variables_[kVariableFirstOperand + i] = query.shapes[i];
}

absl::StatusOr<Shape> RuleRun::Run() {
  for (const RuleStep& step : program_.steps) {
    if (step.kind == RuleStep::Kind::kResult) {
      Shape result = ShapeOf(Evaluate(step.value));
      if (!status_.ok()) return status_;
      return result;
    }
    Execute(step);
    if (!status_.ok()) return status_;
  }
  return Shape{};
}

void RuleRun::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void RuleRun::FailAsDefect(std::string_view what) {
  Fail(absl::InternalError(StrCat("a rule of \"", query_.op.name, "\" does not fit it: ", what)));
}

void RuleRun::Execute(const RuleStep& step) {
  if (step.kind == RuleStep::Kind::kAssign) {
    variables_[step.variable] = Evaluate(step.value);
  } else if (step.kind == RuleStep::Kind::kCall) {
    Evaluate(step.value);
  } else if (!step.each.has_value()) {
    Check(step);
  } else {
    const RuleValue each = Evaluate(*step.each);
    const int64_t size = Size(each);
    for (int64_t i = 0; i < size && status_.ok(); ++i) {
      variables_[step.variable] = Item(each, i);
      Check(step);
    }
  }
}

void RuleRun::Check(const RuleStep& step) {
  const bool holds = Holds(step.value);
  // The message is built only after the check has failed.
  if (!holds && status_.ok()) Fail(absl::InvalidArgumentError(Message(step)));
}

std::string RuleRun::Message(const RuleStep& step) {
  std::string message;
  for (const Expression& part : step.message) {
    StrAppend(&message, std::visit(ShownValue{}, Evaluate(part)));
  }
  return message;
}

RuleValue RuleRun::Evaluate(const Expression& expression) {
  const std::vector<Expression>& parts = expression.parts;
  switch (expression.form) {
    case Form::kNumber:
      return expression.number;
    case Form::kText:
      return expression.text;
    case Form::kVariable:
      return Variable(expression.number);
    case Form::kAttribute:
      return Attribute(expression.text);
    case Form::kMember:
      return Member(expression);
    case Form::kTuple:
      return Tuple(expression);
    case Form::kList:
      return List(expression);
    case Form::kItem:
      return SubscriptedItem(expression);
    case Form::kSlice:
      return Slice(expression);
    case Form::kCall:
      return EvaluateCall(expression);
    case Form::kComprehension:
      return Comprehension(expression);
    case Form::kConditional:
      return Evaluate(Holds(parts[0]) ? parts[1] : parts[2]);
    // As in Python, the second part is evaluated only if the first does not decide the result, so
    // it may rely on the first.
    case Form::kAnd:
      return int64_t{Holds(parts[0]) && Holds(parts[1])};
    case Form::kOr:
      return int64_t{Holds(parts[0]) || Holds(parts[1])};
    case Form::kNot:
      return int64_t{!Holds(parts[0])};
    default:
      return EvaluateArithmetic(expression);
  }
}

// The lists of all operands are copied only when a rule reads them.
RuleValue RuleRun::Variable(int64_t place) {
  if (place == kVariableShapes) {
    return std::vector<Shape>(query_.shapes.begin(), query_.shapes.end());
  }
  if (place == kVariableDTypes) {
    return std::vector<DType>(query_.dtypes.begin(), query_.dtypes.end());
  }
  return variables_[place];
}

const RuleValue& RuleRun::Refer(const Expression& expression, RuleValue& held) {
  const bool is_variable =
      expression.form == Form::kVariable && expression.number > kVariableDTypes;
  if (is_variable) return variables_[expression.number];
  held = Evaluate(expression);
  return held;
}

RuleValue RuleRun::EvaluateArithmetic(const Expression& expression) {
  const std::vector<Expression>& parts = expression.parts;
  RuleValue left;
  RuleValue right;
  const RuleValue& a = Refer(parts[0], left);
  const RuleValue& b = expression.form == Form::kNegative ? a : Refer(parts[1], right);
  if (expression.form == Form::kAdd) return Add(a, b);
  if (expression.form == Form::kEqual) return int64_t{a == b};
  if (expression.form == Form::kLess) return int64_t{IsLess(a, b)};
  if (expression.form == Form::kLessOrEqual) return int64_t{!IsLess(b, a)};
  if (expression.form == Form::kIn) return int64_t{IsIn(a, b)};
  const int64_t x = IntOf(a);
  const int64_t y = IntOf(b);
  int64_t result = 0;
  bool overflows = false;
  if (expression.form == Form::kNegative) {
    overflows = __builtin_sub_overflow(int64_t{0}, x, &result);
  } else if (expression.form == Form::kSubtract) {
    overflows = __builtin_sub_overflow(x, y, &result);
  } else if (expression.form == Form::kMultiply) {
    overflows = __builtin_mul_overflow(x, y, &result);
  } else if (y == 0 || (x == INT64_MIN && y == -1)) {
    FailAsDefect("it divides by zero");
  } else {
    const int64_t quotient = FloorQuotient(x, y);
    result = expression.form == Form::kModulo ? x - quotient * y : quotient;
  }
  if (overflows) FailAsTooLarge();
  return result;
}

void RuleRun::FailAsTooLarge() {
  Fail(absl::InvalidArgumentError(
      StrCat("\"", query_.op.name,
             "\" with operands or attributes that are too large; sizes must "
             "fit 64 bits")));
}

RuleValue RuleRun::EvaluateCall(const Expression& call) {
  std::vector<RuleValue> arguments;
  for (const Expression& part : call.parts) arguments.push_back(Evaluate(part));
  // Functions may index a value that is empty because an argument failed.
  if (!status_.ok()) return {};
  return call.function->call(*this, arguments);
}

RuleValue RuleRun::Attribute(const std::string& name) {
  const auto found = query_.attributes.find(name);
  if (found != query_.attributes.end()) return std::visit(AttributeAsValue{}, found->second);
  FailAsDefect(StrCat("it has no attribute \"", name, "\""));
  return {};
}

RuleValue RuleRun::Member(const Expression& member) {
  const RuleValue base = Evaluate(member.parts[0]);
  // `op` has no value; rules only use op.name.
  if (std::holds_alternative<std::monostate>(base)) return std::string(query_.op.name);
  const DType dtype = As<DType>(base);
  if (member.text == "name") return std::string(ir::Name(dtype));
  if (member.text == "is_float") return int64_t{ir::IsFloat(dtype)};
  if (member.text == "is_integer") return int64_t{ir::IsInteger(dtype)};
  if (member.text == "itemsize") return int64_t{ir::SizeOf(dtype)};
  FailAsDefect(StrCat("no dtype has a ", member.text));
  return {};
}

bool RuleRun::IsLess(const RuleValue& a, const RuleValue& b) {
  const auto* x = std::get_if<double>(&a);
  const auto* y = std::get_if<double>(&b);
  return x != nullptr && y != nullptr ? *x < *y : IntOf(a) < IntOf(b);
}

bool RuleRun::Holds(const Expression& condition) { return EvaluateInt(condition) != 0; }

}  // namespace kiln::ops
