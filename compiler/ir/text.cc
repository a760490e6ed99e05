#include "compiler/ir/text.h"

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text_attribute.h"
#include "compiler/ir/walk.h"

namespace kiln::ir {

std::string TypeText(DType dtype, absl::Span<const int64_t> shape) {
  if (shape.empty()) return std::string(Name(dtype));
  return StrCat(Name(dtype), "[", absl::StrJoin(shape, ","), "]");
}

std::string Describe(const Node* node) {
  std::string text = StrCat(Name(node->op()), " ", TypeText(node->dtype(), node->shape()));
  if (!node->operands().empty()) {
    StrAppend(&text, " (",
              absl::StrJoin(node->operands(), ", ",
                            [](std::string* out, const Node* operand) {
                              out->append(TypeText(operand->dtype(), operand->shape()));
                            }),
              ")");
  }
  std::string attribute = AttributeText(node->op(), node->dtype(), node->attribute());
  return attribute.empty() ? text : StrCat(text, " ", attribute);
}

std::string TextPrinter::Print(const Node* root) {
  if (auto known = numbers_.find(root); known != numbers_.end()) {
    return StrCat("%", known->second);
  }
  for (const Node* node : walk_.Visit(root)) {
    const int number = static_cast<int>(numbers_.size());
    numbers_[node] = number;
    StrAppend(&text_, indent_, "%", number, " = ", Name(node->op()), " ",
              TypeText(node->dtype(), node->shape()));
    for (const Node* operand : node->operands()) {
      StrAppend(&text_, " %", numbers_.at(operand));
    }
    std::string attribute = AttributeText(node->op(), node->dtype(), node->attribute());
    StrAppend(&text_, attribute.empty() ? "" : " ", attribute, "\n");
  }
  return StrCat("%", numbers_.at(root));
}

void TextPrinter::Line(std::string_view line) { StrAppend(&text_, indent_, line, "\n"); }

}  // namespace kiln::ir
