#include "compiler/codegen/opencl_c/source.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "compiler/codegen/opencl_c/expression.h"
#include "compiler/codegen/opencl_c/preamble.h"
#include "compiler/ir/str_cat.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::codegen {
namespace {

using ir::Node;
using ir::Op;
using schedule::LoopBuffer;
using schedule::LoopKind;
using schedule::Space;

// By LoopKind.
struct LoopStyle {
  char letter;
  std::string_view remark;
};
constexpr std::array<LoopStyle, 5> kStyles = {
    {{'i', ""}, {'u', "unrolled"}, {'v', "vector"}, {'w', ""}, {'m', "matrix unit"}}};

class SourcePrinter {
 public:
  SourcePrinter(const schedule::LoopProgram& program, Parameters parameters)
      : program_(program), parameters_(parameters), expressions_(program, preamble_) {}

  std::string Run() {
    PrintHead();
    for (const LoopBuffer& buffer : program_.buffers) PrintBuffer(buffer);
    PrintSections();
    depth_ = 0;
    Line("}");
    return preamble_.Text() + out_;
  }

 private:
  void PrintHead() {
    Line(StrCat("// ", program_.name));
    // Limits a thread's registers to those that a block of this size leaves for it.
    const std::string block = HasBlocks() ? StrCat("__attribute__((reqd_work_group_size(",
                                                   program_.threads, ", 1, 1)))\n")
                                          : "";
    const bool by_table = parameters_ == Parameters::kSlotTable;
    std::string head = StrCat("__kernel ", block, "void ", kOpenClEntry, "(");
    bool first = !by_table;
    if (by_table) StrAppend(&head, "__global const ulong* restrict slots");
    for (const LoopBuffer& buffer : program_.buffers) {
      if (buffer.space != Space::kGlobal) continue;
      StrAppend(&head, first ? "" : ", ",
                by_table ? StrCat("ulong ", buffer.name, "_slot")
                         : StrCat(PointerType(buffer), " restrict ", buffer.name));
      first = false;
    }
    if (by_table) StrAppend(&head, ", ulong first_point");
    Line(head + ") {");
    depth_ = 1;
    if (by_table) PrintArguments();
    if (HasBlocks()) {
      Line(StrCat("const long task = ", by_table ? "first_point + " : "", "get_group_id(0);"));
      Line("const long thread = get_local_id(0);");
      const bool keeps_loops = std::any_of(
          program_.sections.begin(), program_.sections.end(),
          [](const schedule::Section& section) { return HasBarrierInLoop(section.body); });
      if (!keeps_loops) return;
      // PoCL's compiler (3.1) fails for some loops around barriers if it has unrolled them.
      Line("const long once = get_num_groups(0) > 0;  // 1, which no compiler knows");
      return;
    }
    Line(StrCat("const long task = ", by_table ? "first_point * get_local_size(0) + " : "",
                "get_global_id(0);"));
    std::string condition = StrCat("task >= ", program_.grid_size());
    if (by_table) {
      // Tests the pointers as well, so that they are loaded before the branch. Compilers load them
      // again for each thread after it, and PoCL's then does not vectorize over threads.
      condition = StrCat("(", condition, ")");
      for (const LoopBuffer& buffer : program_.buffers)
        if (buffer.space == Space::kGlobal) StrAppend(&condition, " | !", buffer.name);
    }
    Line(StrCat("if (", condition, ") return;"));
  }

  std::string PointerType(const LoopBuffer& buffer) {
    return StrCat("__global ", buffer.read_only ? "const " : "", preamble_.MemoryType(buffer.dtype),
                  "*");
  }

  void PrintArguments() {
    for (const LoopBuffer& buffer : program_.buffers) {
      if (buffer.space != Space::kGlobal) continue;
      const std::string type = PointerType(buffer);
      const std::string number = StrCat(buffer.name, "_slot");
      Line(StrCat(type, " restrict ", buffer.name, " = (", type, ")(slots[", number, " >> ",
                  drivers::kSlotOffsetBits, "] + (", number, " & ", drivers::kSlotOffsetMask,
                  "ul));"));
    }
  }

  void PrintBuffer(const LoopBuffer& buffer) {
    if (buffer.space == Space::kGlobal) return;
    int64_t elements = std::max<int64_t>(buffer.elements, 1);
    const bool shared = buffer.space == Space::kShared;
    const bool scratch = buffer.space == Space::kScratch;
    if (scratch || shared) {
      // Lanes past a ragged end read the padding of the last 64 bytes.
      const int64_t line = 64 / ir::SizeOf(buffer.dtype);
      elements = (elements + line - 1) / line * line;
    }
    std::string line = StrCat(shared ? "__local " : "", preamble_.Type(buffer.dtype), " ",
                              buffer.name, "[", elements, "]");
    if (buffer.lanes > 1) StrAppend(&line, "[", buffer.lanes, "]");
    Line(StrCat(line, shared             ? ";  // shared"
                      : scratch          ? ";  // scratch"
                      : buffer.lanes > 1 ? ";  // vector registers"
                                         : ";  // registers"));
  }

  void PrintSections() {
    int64_t begin = 0;
    for (const schedule::Section& section : program_.sections) {
      const int64_t end = begin + section.tasks();
      if (end == begin) continue;
      if (begin == 0 && end == program_.grid_size()) return PrintSection(section, 0);
      const std::string condition = StrCat("if (task < ", end, ") {");
      Line(begin == 0 ? condition
                      : StrCat("} else ", end == program_.grid_size() ? "{" : condition));
      ++depth_;
      PrintSection(section, begin);
      --depth_;
      begin = end;
    }
    if (begin > 0) Line("}");
  }

  // The innermost range is the lowest digit of the task's number within the section.
  void PrintSection(const schedule::Section& section, int64_t first) {
    const std::string number = first == 0 ? "task" : StrCat("(task - ", first, ")");
    int64_t inner = section.tasks();
    for (size_t i = 0; i < section.grid.size(); ++i) {
      const int64_t extent = ir::ExtentOf(section.grid[i]);
      inner /= extent;
      const std::string name = StrCat("p", i);
      expressions_.SetName(section.grid[i], name);
      std::string digit = inner == 1 ? number : StrCat(number, " / ", inner);
      // The outermost needs no remainder, since the number is below the product of all.
      if (i > 0) StrAppend(&digit, " % ", extent);
      Line(StrCat("const long ", name, " = ", digit, ";"));
    }
    PrintBody(section.body);
  }

  // `is_kept`: prevents compilers from unrolling it.
  void OpenLoop(const Node* range, const Node* extent, schedule::LoopKind kind, bool is_kept) {
    const int style = static_cast<int>(kind);
    std::string end = extent != nullptr ? expressions_.Operand(extent, is_kept ? kProduct : kShift)
                                        : StrCat(ir::ExtentOf(range));
    if (is_kept) end += " * once";
    const std::string name = StrCat(std::string(1, kStyles[style].letter), depth_of_[style]++);
    expressions_.SetName(range, name);
    if (kind == LoopKind::kVector) expressions_.SetLane(name);
    const std::string_view remark = kStyles[style].remark;
    Line(StrCat("for (long ", name, " = 0; ", name, " < ", end, "; ++", name, ") {",
                remark.empty() ? "" : "  // ", remark));
    ++depth_;
  }

  void CloseLoop(schedule::LoopKind kind) {
    if (kind == LoopKind::kVector) expressions_.SetLane("");
    --depth_of_[static_cast<int>(kind)];
    --depth_;
    Line("}");
  }

  void PrintBody(const std::vector<schedule::Statement>& body) {
    for (const schedule::Statement& statement : body) {
      std::visit([this](const auto& node) { PrintOne(node); }, statement.node);
    }
  }

  static bool HasBarrier(const std::vector<schedule::Statement>& body) {
    return std::any_of(body.begin(), body.end(), [](const schedule::Statement& statement) {
      if (const auto* loop = std::get_if<schedule::Loop>(&statement.node)) {
        return HasBarrier(loop->body);
      }
      if (const auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
        return HasBarrier(branch->then_body) || HasBarrier(branch->else_body);
      }
      return std::holds_alternative<schedule::Barrier>(statement.node);
    });
  }

  static bool HasBarrierInLoop(const std::vector<schedule::Statement>& body) {
    return std::any_of(body.begin(), body.end(), [](const schedule::Statement& statement) {
      if (const auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
        return HasBarrierInLoop(branch->then_body) || HasBarrierInLoop(branch->else_body);
      }
      const auto* loop = std::get_if<schedule::Loop>(&statement.node);
      return loop != nullptr && HasBarrier(loop->body);
    });
  }

  // Returns whether a block of threads runs each task.
  bool HasBlocks() const { return program_.threads > 1; }

  // Prints the body, for the threads that have an iteration.
  void PrintThreads(const schedule::Loop& loop) {
    Begin({loop.extent});
    const int style = static_cast<int>(loop.kind);
    const std::string name = StrCat(std::string(1, kStyles[style].letter), depth_of_[style]);
    expressions_.SetName(loop.range, name);
    std::string digit = loop.stride == 1 ? "thread" : StrCat("thread / ", loop.stride);
    if (loop.places * loop.stride < program_.threads) StrAppend(&digit, " % ", loop.places);
    Line("{  // threads");
    ++depth_;
    Line(StrCat("const long ", name, " = ", digit, ";"));
    const std::string end = loop.extent != nullptr ? expressions_.Operand(loop.extent, kShift)
                                                   : StrCat(ir::ExtentOf(loop.range));
    const bool all = loop.extent == nullptr && ir::ExtentOf(loop.range) >= loop.places;
    if (!all) Line(StrCat("if (", name, " < ", end, ") {"));
    depth_ += all ? 0 : 1;
    ++depth_of_[style];
    PrintBody(loop.body);
    --depth_of_[style];
    depth_ -= all ? 0 : 1;
    if (!all) Line("}");
    --depth_;
    Line("}");
  }

  void PrintOne(const schedule::Loop& loop) {
    if (loop.kind == LoopKind::kThread) return PrintThreads(loop);
    Begin({loop.extent});
    OpenLoop(loop.range, loop.extent, loop.kind, HasBarrier(loop.body));
    PrintBody(loop.body);
    CloseLoop(loop.kind);
  }

  void PrintOne(const schedule::Branch& branch) {
    Begin({branch.condition});
    Line(StrCat("if (", expressions_.Text(branch.condition), ") {"));
    PrintIndented(branch.then_body);
    if (!branch.else_body.empty()) {
      Line("} else {");
      PrintIndented(branch.else_body);
    }
    Line("}");
  }

  // Outside all loops of threads, only the first thread writes memory that threads share.
  void PrintOne(const schedule::Store& store) {
    const bool by_first = HasBlocks() && depth_of_[static_cast<int>(LoopKind::kThread)] == 0 &&
                          !IsPrivate(program_.buffers[store.buffer].space);
    if (!by_first) return PrintStore(store);
    Line("if (thread == 0) {");
    ++depth_;
    PrintStore(store);
    --depth_;
    Line("}");
  }

  void PrintOne(const schedule::Barrier&) {
    Line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
  }

  void PrintOne(const schedule::ThreadReduce&) {}  // none after schedule::Synchronize

  void PrintStore(const schedule::Store& store) {
    Begin({store.valid});
    const std::string valid = store.valid == nullptr ? "" : expressions_.Text(store.valid);
    const Node* added = Increment(store);
    const Node* value = added != nullptr ? added : store.value;
    const std::vector<std::string> shared = expressions_.DefineShared({store.index, value});
    const std::string assignment =
        StrCat(expressions_.Element(store.buffer, store.index), added != nullptr ? " += " : " = ",
               expressions_.Text(value), ";", store.streaming ? "  // past the caches" : "");
    if (valid.empty() || shared.empty()) {
      Lines(shared);
      return Line(valid.empty() ? assignment : StrCat("if (", valid, ") ", assignment));
    }
    Line(StrCat("if (", valid, ") {"));
    ++depth_;
    Lines(shared);
    Line(assignment);
    --depth_;
    Line("}");
  }

  void PrintOne(const schedule::Fetch& fetch) {
    // Private memory needs no prefetch.
    if (program_.buffers[fetch.buffer].space != Space::kGlobal) return;
    Begin({fetch.index});
    Line(StrCat("prefetch(&", expressions_.Element(fetch.buffer, fetch.index), ", 1);"));
  }

  // Returns the value that a store adds to the element that it replaces, if C's += does the same;
  // null otherwise.
  static const Node* Increment(const schedule::Store& store) {
    if (store.value->op() != Op::kAdd || !ir::IsFloat(store.value->dtype())) return nullptr;
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

  // Begins a statement that uses these.
  void Begin(const std::vector<const Node*>& roots) {
    expressions_.BeginStatement();
    Lines(expressions_.DefineShared(roots));
  }

  void Lines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Line(line);
  }

  void Line(std::string_view text) { StrAppend(&out_, std::string(2 * depth_, ' '), text, "\n"); }

  const schedule::LoopProgram& program_;
  const Parameters parameters_;
  Preamble preamble_;
  ExpressionPrinter expressions_;
  std::string out_;
  int depth_ = 0;
  std::array<int, kStyles.size()> depth_of_ = {};  // how many loops of each style are open
};

}  // namespace

std::string PrintSource(const schedule::LoopProgram& program, Parameters parameters) {
  return SourcePrinter(program, parameters).Run();
}

}  // namespace kiln::codegen
