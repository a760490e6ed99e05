// Tuples and lists of rules.
#include <algorithm>

#include "compiler/ops/rules/rule_run.h"

namespace kiln::ops {

using ir::DType;
using ir::Shape;

RuleValue RuleRun::Tuple(const Expression& tuple) {
  Shape result;
  for (const Expression& part : tuple.parts) result.push_back(EvaluateInt(part));
  return result;
}

RuleValue RuleRun::List(const Expression& list) {
  std::vector<Shape> result;
  for (const Expression& part : list.parts) result.push_back(ShapeOf(Evaluate(part)));
  return result;
}

int64_t RuleRun::Size(const RuleValue& value) {
  if (const auto* shapes = std::get_if<std::vector<Shape>>(&value)) {
    return static_cast<int64_t>(shapes->size());
  }
  if (const auto* dtypes = std::get_if<std::vector<DType>>(&value)) {
    return static_cast<int64_t>(dtypes->size());
  }
  return static_cast<int64_t>(ShapeOf(value).size());
}

RuleValue RuleRun::SubscriptedItem(const Expression& item) {
  RuleValue held;
  const RuleValue& base = Refer(item.parts[0], held);
  const int64_t index = EvaluateInt(item.parts[1]);
  // As in Python, -1 is the last item.
  return Item(base, index < 0 ? index + Size(base) : index);
}

RuleValue RuleRun::Item(const RuleValue& base, int64_t index) {
  if (index < 0 || index >= Size(base)) {
    FailAsDefect("an index is out of range");
    return {};
  }
  if (const auto* shapes = std::get_if<std::vector<Shape>>(&base)) return (*shapes)[index];
  if (const auto* dtypes = std::get_if<std::vector<DType>>(&base)) return (*dtypes)[index];
  return ShapeOf(base)[index];
}

// As in Python, ends beyond the tuple are clamped.
RuleValue RuleRun::Slice(const Expression& slice) {
  RuleValue held;
  const RuleValue& base = Refer(slice.parts[0], held);
  const int64_t size = Size(base);
  const auto place = [&](const Expression& end, int64_t otherwise) {
    if (end.form == Expression::Form::kNothing) return otherwise;
    const int64_t given = EvaluateInt(end);
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t begin = place(slice.parts[1], 0);
  const int64_t end = std::max(begin, place(slice.parts[2], size));
  if (const auto* shapes = std::get_if<std::vector<Shape>>(&base)) {
    return std::vector<Shape>(shapes->begin() + begin, shapes->begin() + end);
  }
  const Shape& shape = ShapeOf(base);
  if (!status_.ok()) return {};
  return Shape(shape.begin() + begin, shape.begin() + end);
}

RuleValue RuleRun::Comprehension(const Expression& comprehension) {
  const std::vector<Expression>& parts = comprehension.parts;
  const RuleValue each = Evaluate(parts[1]);
  const int64_t size = Size(each);
  Shape result;
  for (int64_t i = 0; i < size && status_.ok(); ++i) {
    variables_[comprehension.number] = Item(each, i);
    if (parts.size() == 3 && !Holds(parts[2])) continue;
    result.push_back(EvaluateInt(parts[0]));
  }
  return result;
}

RuleValue RuleRun::Add(const RuleValue& a, const RuleValue& b) {
  if (std::holds_alternative<Shape>(a)) {
    Shape result = ShapeOf(a);
    const Shape& more = ShapeOf(b);
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(IntOf(a), IntOf(b), &sum)) FailAsTooLarge();
  return sum;
}

bool RuleRun::IsIn(const RuleValue& a, const RuleValue& b) {
  const Shape& items = ShapeOf(b);
  return std::find(items.begin(), items.end(), IntOf(a)) != items.end();
}

}  // namespace kiln::ops
