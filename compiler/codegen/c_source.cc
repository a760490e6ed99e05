#include "compiler/codegen/c_source.h"

#include <array>
#include <string_view>
#include <utility>

#include "compiler/codegen/c_expression.h"
#include "compiler/ir/str_cat.h"

namespace kiln::codegen {
namespace {

using ir::Node;
using ir::Op;
using schedule::LoopBuffer;
using schedule::LoopKind;
using schedule::Space;

struct LoopStyle {
  char letter;
  std::string_view remark;
};
// By LoopKind; tasks are the last.
constexpr std::array<LoopStyle, 4> kStyles = {
    {{'i', ""}, {'u', "unrolled"}, {'v', "vector"}, {'p', "parallel"}}};
constexpr int kTaskStyle = 3;

class SourcePrinter {
 public:
  explicit SourcePrinter(const schedule::LoopProgram& program)
      : program_(program), expressions_(program) {}

  std::string Run() {
    PrintHead();
    for (const LoopBuffer& buffer : program_.buffers) PrintBuffer(buffer);
    int64_t task = 0;
    for (const schedule::Section& section : program_.sections) {
      if (program_.sections.size() > 1)
        Line(StrCat("// tasks ", task, " to ", task + section.tasks() - 1));
      PrintSection(section);
      task += section.tasks();
    }
    depth_ = 0;
    Line("}");
    return std::move(out_);
  }

 private:
  void PrintHead() {
    std::string head = StrCat("void ", program_.name, "(");
    bool first = true;
    for (const LoopBuffer& buffer : program_.buffers) {
      if (buffer.space != Space::kGlobal) continue;
      StrAppend(&head, first ? "" : ", ", buffer.read_only ? "const " : "", CTypeName(buffer.dtype),
                " ", buffer.name, "[", buffer.elements, "]");
      first = false;
    }
    Line(head + ") {");
    depth_ = 1;
  }

  void PrintBuffer(const LoopBuffer& buffer) {
    if (buffer.space == Space::kGlobal) return;
    std::string line = StrCat(CTypeName(buffer.dtype), " ", buffer.name, "[", buffer.elements, "]");
    if (buffer.lanes > 1) StrAppend(&line, "[", buffer.lanes, "]");
    if (buffer.space == Space::kScratch) {
      StrAppend(&line, ";  // scratch, from byte ", buffer.scratch_offset);
    } else {
      StrAppend(&line, buffer.lanes > 1 ? ";  // vector registers" : ";  // registers");
    }
    Line(line);
  }

  void PrintSection(const schedule::Section& section) {
    for (const Node* range : section.grid) OpenLoop(range, nullptr, kTaskStyle);
    PrintBody(section.body);
    for (size_t i = 0; i < section.grid.size(); ++i) CloseLoop(kTaskStyle);
  }

  void OpenLoop(const Node* range, const Node* extent, int style) {
    const std::string end =
        extent != nullptr ? expressions_.Text(extent) : StrCat(range->attr<ir::RangeAttr>().extent);
    const std::string name = StrCat(std::string(1, kStyles[style].letter), depth_of_[style]++);
    expressions_.SetName(range, name);
    const std::string_view remark = kStyles[style].remark;
    Line(StrCat("for (int64_t ", name, " = 0; ", name, " < ", end, "; ++", name, ") {",
                remark.empty() ? "" : "  // ", remark));
    ++depth_;
  }

  void CloseLoop(int style) {
    --depth_of_[style];
    --depth_;
    Line("}");
  }

  void PrintBody(const std::vector<schedule::Statement>& body) {
    for (const schedule::Statement& statement : body) {
      std::visit([this](const auto& node) { PrintOne(node); }, statement.node);
    }
  }

  void PrintOne(const schedule::Loop& loop) {
    const int style = static_cast<int>(loop.kind);
    Define({loop.extent});
    OpenLoop(loop.range, loop.extent, style);
    PrintBody(loop.body);
    CloseLoop(style);
  }

  void PrintOne(const schedule::Branch& branch) {
    Define({branch.condition});
    Line(StrCat("if (", expressions_.Text(branch.condition), ") {"));
    PrintIndented(branch.then_body);
    if (!branch.else_body.empty()) {
      Line("} else {");
      PrintIndented(branch.else_body);
    }
    Line("}");
  }

  void PrintOne(const schedule::Store& store) {
    const Node* added = Increment(store);
    Define({store.index, added != nullptr ? added : store.value, store.valid});
    std::string line;
    if (store.valid != nullptr) StrAppend(&line, "if (", expressions_.Text(store.valid), ") ");
    StrAppend(&line, program_.buffers[store.buffer].name, "[", expressions_.Text(store.index), "]");
    StrAppend(&line, added != nullptr ? " += " : " = ",
              expressions_.Text(added != nullptr ? added : store.value), ";");
    if (store.streaming) StrAppend(&line, "  // past the caches");
    Line(line);
  }

  void PrintOne(const schedule::Fetch& fetch) {
    Define({fetch.index});
    Line(StrCat("prefetch(&", program_.buffers[fetch.buffer].name, "[",
                expressions_.Text(fetch.index), "]);"));
  }

  // What a store adds to the element that it replaces; null if it does something else.
  static const Node* Increment(const schedule::Store& store) {
    if (store.value->op() != Op::kAdd) return nullptr;
    for (int i = 0; i < 2; ++i) {
      const Node* old = store.value->operand(i);
      if (old->op() == Op::kLoad && old->operands().size() == 1 &&
          old->attr<ir::IntAttr>().value == store.buffer && old->operand(0) == store.index) {
        return store.value->operand(1 - i);
      }
    }
    return nullptr;
  }

  void PrintIndented(const std::vector<schedule::Statement>& body) {
    ++depth_;
    PrintBody(body);
    --depth_;
  }

  void Define(const std::vector<const Node*>& roots) {
    for (const std::string& line : expressions_.DefineShared(roots)) Line(line);
  }

  void Line(std::string_view text) { StrAppend(&out_, std::string(2 * depth_, ' '), text, "\n"); }

  const schedule::LoopProgram& program_;
  ExpressionPrinter expressions_;
  std::string out_;
  int depth_ = 0;
  std::array<int, 4> depth_of_ = {};  // how many loops of each style are open
};

}  // namespace

std::string PrintSource(const schedule::LoopProgram& program) {
  return SourcePrinter(program).Run();
}

}  // namespace kiln::codegen
