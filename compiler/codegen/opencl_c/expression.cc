#include "compiler/codegen/opencl_c/expression.h"

#include <algorithm>

#include "compiler/codegen/math/composite.h"
#include "compiler/codegen/opencl_c/constant.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/reduction.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using schedule::LoopBuffer;
using schedule::Space;

// The maximum depth of one value's text: deeper ones are hard to read, and compilers limit
// brackets.
constexpr int kDeepest = 12;

// Returns whether its text is short enough to be repeated at each use.
bool IsLeaf(const Node* node) { return node->op() == Op::kConst || node->op() == Op::kRange; }

// Returns the nodes whose texts are parts of the node's text.
std::vector<const Node*> Parts(const Node* node) {
  if (const auto composite = MatchComposite(node)) return {composite->argument};
  return {node->operands().begin(), node->operands().end()};
}

}  // namespace

std::vector<std::string> ExpressionPrinter::DefineShared(const std::vector<const Node*>& roots) {
  Uses uses;
  std::vector<const Node*> order;
  for (const Node* root : roots) {
    if (root != nullptr) CountUses(root, uses, order);
  }
  std::vector<std::string> lines;
  absl::flat_hash_map<const Node*, int> depths;  // 0: a name or a number
  for (const Node* node : order) {
    if (IsLeaf(node) || shared_.contains(node)) continue;
    if (node->op() == Op::kReduce) {
      for (std::string& line : DefineReduce(node)) lines.push_back(std::move(line));
      continue;
    }
    int depth = 0;
    for (const Node* part : Parts(node)) depth = std::max(depth, depths[part]);
    if (uses[node] > 1 || depth >= kDeepest) {
      lines.push_back(Define(node, Text(node)));
    } else {
      depths[node] = depth + 1;
    }
  }
  return lines;
}

// `order` gets operands before their users. The lanes that a reduction combines have their own
// statements.
void ExpressionPrinter::CountUses(const Node* node, Uses& uses, std::vector<const Node*>& order) {
  if (++uses[node] > 1 || shared_.contains(node)) return;
  if (node->op() != Op::kReduce) {
    for (const Node* part : Parts(node)) CountUses(part, uses, order);
  }
  order.push_back(node);
}

std::string ExpressionPrinter::Define(const Node* node, std::string_view text) {
  std::string name = StrCat("t", shared_count_++);
  std::string line = StrCat("const ", preamble_.Type(node->dtype()), " ", name, " = ", text, ";");
  shared_[node] = std::move(name);
  return line;
}

// Returns a loop over the lanes, which is printed before the statement.
std::vector<std::string> ExpressionPrinter::DefineReduce(const Node* node) {
  const Node* range = node->operand(1);
  const ir::ReduceKind kind = node->attr<ir::ReduceAttr>().kind;
  const std::string total = StrCat("t", shared_count_++);
  // A placeholder for the running total.
  const Node* so_far = context_.Get(Op::kInput, node->dtype(), {}, {}, ir::InputAttr{});
  const auto outer = shared_;
  const std::string outer_lane = std::exchange(lane_, lane_.empty() ? "v0" : "v1");
  SetName(range, lane_);
  shared_[so_far] = total;
  const std::string identity = ConstantText(schedule::IdentityOf(context_, kind, node->dtype()));
  std::vector<std::string> lines = {
      StrCat(preamble_.Type(node->dtype()), " ", total, " = ", identity, ";"),
      StrCat("for (long ", lane_, " = 0; ", lane_, " < ", ir::ExtentOf(range), "; ++", lane_,
             ") {")};
  for (const std::string& line : DefineShared({node->operand(0)}))
    lines.push_back(StrCat("  ", line));
  const Node* next = schedule::Combine(context_, kind, so_far, node->operand(0));
  lines.push_back(StrCat("  ", total, " = ", Text(next), ";"));
  lines.push_back("}");
  // Names that the loop defined end with it.
  shared_ = outer;
  lane_ = outer_lane;
  shared_[node] = total;
  return lines;
}

std::string ExpressionPrinter::Operand(const Node* node, int precedence) {
  Printed printed = Print(node);
  return printed.precedence <= precedence ? printed.text : StrCat("(", printed.text, ")");
}

std::string ExpressionPrinter::Element(int number, const Node* index) {
  const LoopBuffer& buffer = program_.buffers[number];
  int64_t place = 0;
  const bool is_known = kernel::IsConstant(index, &place);
  std::string element = StrCat(buffer.name, "[", is_known ? absl::StrCat(place) : Text(index), "]");
  if (buffer.space == Space::kRegister && buffer.lanes > 1) {
    StrAppend(&element, "[", lane_.empty() ? "0" : lane_, "]");
  }
  return element;
}

ExpressionPrinter::Printed ExpressionPrinter::Print(const Node* node) {
  if (auto found = shared_.find(node); found != shared_.end()) return {found->second, kPrimary};
  switch (node->op()) {
    case Op::kConst: {
      preamble_.Type(node->dtype());
      std::string text = ConstantText(node);
      // A sign, or a cast.
      return {text, text[0] == '-' || text[0] == '(' ? kUnary : kPrimary};
    }
    case Op::kRange: {
      auto found = names_.find(node);
      if (found != names_.end()) return {found->second, kPrimary};
      return {StrCat("r", node->attr<ir::RangeAttr>().id), kPrimary};
    }
    case Op::kLoad:
      return PrintLoad(node);
    default:
      return PrintOperator(node);
  }
}

ExpressionPrinter::Printed ExpressionPrinter::PrintLoad(const Node* node) {
  const int number = static_cast<int>(node->attr<ir::IntAttr>().value);
  const bool is_byte =
      node->dtype() == DType::kBool && program_.buffers[number].space == Space::kGlobal;
  Printed element = {Element(number, node->operand(0)), kPrimary};
  if (is_byte) element = {StrCat(element.text, " != 0"), kEquality};
  if (node->operands().size() == 1) return element;
  const Node* valid = node->operand(1);
  if (node->dtype() == DType::kBool) {
    return {StrCat(Operand(valid, kLogicalAnd), " && ", element.text), kLogicalAnd};
  }
  const std::string zero = ir::IsFloat(node->dtype()) ? FloatText(0, node->dtype()) : "0";
  return {StrCat(Operand(valid, kConditional - 1), " ? ", element.text, " : ", zero), kConditional};
}

}  // namespace kiln::codegen
