#include "compiler/schedule/loop_program.h"

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/ir/str_cat.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using ir::Op;

std::string Constant(const Node* node) {
  const auto& value = node->attr<ir::ConstValue>();
  return ir::IsFloat(node->dtype()) ? StrCat(value.AsDouble()) : StrCat(value.AsInt());
}

class Printer {
 public:
  explicit Printer(const LoopProgram& program) : program_(program) {}

  std::string Print() {
    for (const LoopBuffer& buffer : program_.buffers) PrintBuffer(buffer);
    for (const Section& section : program_.sections) {
      StrAppend(&out_, "tasks");
      for (const Node* range : section.grid) {
        StrAppend(&out_, " ", Text(range), " < ", range->attr<ir::RangeAttr>().extent);
      }
      if (program_.threads > 1) StrAppend(&out_, ", by ", program_.threads, " threads");
      StrAppend(&out_, "\n");
      PrintBody(section.body, 1);
    }
    return std::move(out_);
  }

 private:
  void PrintBuffer(const LoopBuffer& buffer) {
    static constexpr std::string_view kSpaces[] = {"global", "scratch", "register", "shared"};
    StrAppend(&out_, kSpaces[static_cast<int>(buffer.space)], " ", buffer.name, ": ",
              ir::Name(buffer.dtype), "[", buffer.elements, "]");
    if (buffer.lanes > 1) StrAppend(&out_, " x ", buffer.lanes);
    StrAppend(&out_, "\n");
  }

  // Names a long expression on a separate line before the statement. Without names, an expression
  // that repeatedly uses its parts twice, as in a random number generator, would be exponentially
  // long.
  std::string Text(const Node* node) {
    const auto known = texts_.find(node);
    if (known != texts_.end()) return known->second;
    std::string text = Expression(node);
    if (text.size() > kLongest) {
      std::string name = StrCat("t", names_++);
      pending_.push_back(StrCat(name, " = ", text));
      text = std::move(name);
    }
    return texts_[node] = std::move(text);
  }

  std::string Expression(const Node* node) {
    switch (node->op()) {
      case Op::kConst:
        return Constant(node);
      case Op::kRange:
        return StrCat("r", node->attr<ir::RangeAttr>().id);
      case Op::kAdd:
        return StrCat("(", Text(node->operand(0)), " + ", Text(node->operand(1)), ")");
      case Op::kMul:
        return StrCat(Text(node->operand(0)), "*", Text(node->operand(1)));
      case Op::kLoad: {
        const LoopBuffer& buffer = program_.buffers[node->attr<ir::IntAttr>().value];
        std::string text = StrCat(buffer.name, "[", Text(node->operand(0)), "]");
        if (node->operands().size() > 1) StrAppend(&text, " if ", Text(node->operand(1)));
        return text;
      }
      default:
        break;
    }
    std::string text = StrCat(ir::Name(node->op()), "(");
    for (size_t i = 0; i < node->operands().size(); ++i) {
      StrAppend(&text, i == 0 ? "" : ", ", Text(node->operand(static_cast<int>(i))));
    }
    return text + ")";
  }

  // Names end with the statement, so that none is used outside its ranges' scope.
  void Line(int depth, std::string_view text) {
    for (const std::string& line : pending_) {
      StrAppend(&out_, std::string(2 * depth, ' '), line, "\n");
    }
    pending_.clear();
    texts_.clear();
    StrAppend(&out_, std::string(2 * depth, ' '), text, "\n");
  }

  void PrintBody(const std::vector<Statement>& body, int depth) {
    for (const Statement& statement : body) {
      std::visit([this, depth](const auto& node) { PrintOne(node, depth); }, statement.node);
    }
  }

  void PrintOne(const Loop& loop, int depth) {
    const std::string extent = loop.extent != nullptr
                                   ? Text(loop.extent)
                                   : StrCat(loop.range->attr<ir::RangeAttr>().extent);
    Line(depth, StrCat(Name(loop.kind), " ", Text(loop.range), " < ", extent,
                       loop.ahead ? ", copies ahead" : ""));
    PrintBody(loop.body, depth + 1);
  }

  void PrintOne(const Branch& branch, int depth) {
    Line(depth, StrCat("if ", Text(branch.condition)));
    PrintBody(branch.then_body, depth + 1);
    if (branch.else_body.empty()) return;
    Line(depth, "else");
    PrintBody(branch.else_body, depth + 1);
  }

  void PrintOne(const Store& store, int depth) {
    std::string text = StrCat(program_.buffers[store.buffer].name, "[", Text(store.index),
                              "] = ", Text(store.value));
    if (store.valid != nullptr) StrAppend(&text, " if ", Text(store.valid));
    Line(depth, text);
  }

  void PrintOne(const ThreadReduce& reduce, int depth) {
    Line(depth, StrCat(program_.buffers[reduce.buffer].name, "[", Text(reduce.index),
                       "] = ", Text(reduce.value), " over threads"));
  }

  void PrintOne(const Fetch& fetch, int depth) {
    Line(depth,
         StrCat("prefetch ", program_.buffers[fetch.buffer].name, "[", Text(fetch.index), "]"));
  }

  void PrintOne(const Barrier&, int depth) { Line(depth, "barrier"); }

  static constexpr size_t kLongest = 200;

  const LoopProgram& program_;
  std::string out_;
  absl::flat_hash_map<const Node*, std::string> texts_;
  std::vector<std::string> pending_;
  int names_ = 0;
};

}  // namespace

std::string_view Name(LoopKind kind) {
  static constexpr std::string_view kNames[] = {"for", "unroll", "lanes", "threads", "matrix"};
  return kNames[static_cast<int>(kind)];
}

int64_t Section::tasks() const {
  int64_t count = 1;
  for (const Node* range : grid) count *= range->attr<ir::RangeAttr>().extent;
  return count;
}

int64_t LoopProgram::grid_size() const {
  int64_t count = 0;
  for (const Section& section : sections) count += section.tasks();
  return count;
}

std::string Print(const LoopProgram& program) { return Printer(program).Print(); }

}  // namespace kiln::schedule
