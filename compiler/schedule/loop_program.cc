#include "compiler/schedule/loop_program.h"

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/ir/str_cat.h"
#include "proto/check/check.h"

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

class ProgramValidator {
 public:
  explicit ProgramValidator(const LoopProgram& program) : program_(program) {}

  void Run() {
    CheckBuffers();
    for (const Section& section : program_.sections) {
      for (const Node* range : section.grid) KILN_CHECK(range->op() == Op::kRange);
      CheckBody(section.body, false);
    }
    KILN_CHECK_GE(program_.threads, 1);
  }

 private:
  void CheckBuffers() const {
    int arguments = 0;
    int64_t next[] = {0, 0, 0, 0};  // by space, the least offset
    for (const LoopBuffer& buffer : program_.buffers) {
      KILN_CHECK_GE(buffer.lanes, 1) << buffer.name;
      if (buffer.space == Space::kGlobal) ++arguments;
      if (buffer.space != Space::kScratch && buffer.space != Space::kShared) continue;
      KILN_CHECK_EQ(buffer.offset % 64, 0) << buffer.name;
      int64_t& least = next[static_cast<int>(buffer.space)];
      KILN_CHECK_GE(buffer.offset, least) << buffer.name << " overlaps the buffer before it";
      least = buffer.offset;
    }
    KILN_CHECK_EQ(arguments, program_.num_arguments);
  }

  bool HasBuffer(int buffer) const {
    return buffer >= 0 && static_cast<size_t>(buffer) < program_.buffers.size();
  }

  void CheckBody(const std::vector<Statement>& body, bool in_lanes) const {
    for (const Statement& statement : body) {
      if (const auto* loop = std::get_if<Loop>(&statement.node)) {
        KILN_CHECK(loop->range != nullptr && loop->range->op() == Op::kRange);
        const bool is_vector = loop->kind == LoopKind::kVector;
        KILN_CHECK(!is_vector || !in_lanes) << "lanes inside lanes";
        CheckBody(loop->body, in_lanes || is_vector);
      } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
        KILN_CHECK(branch->condition != nullptr);
        CheckBody(branch->then_body, in_lanes);
        CheckBody(branch->else_body, in_lanes);
      } else if (const auto* store = std::get_if<Store>(&statement.node)) {
        KILN_CHECK(HasBuffer(store->buffer)) << store->buffer;
        const LoopBuffer& buffer = program_.buffers[store->buffer];
        KILN_CHECK(store->index != nullptr && store->value != nullptr) << buffer.name;
        KILN_CHECK(!buffer.read_only) << buffer.name;
        KILN_CHECK_EQ(store->value->dtype(), buffer.dtype) << buffer.name;
      } else if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) {
        KILN_CHECK(HasBuffer(reduce->buffer)) << reduce->buffer;
        KILN_CHECK(program_.buffers[reduce->buffer].space == Space::kShared) << reduce->buffer;
      } else if (const auto* fetch = std::get_if<Fetch>(&statement.node)) {
        KILN_CHECK(HasBuffer(fetch->buffer)) << fetch->buffer;
      }
    }
  }

  const LoopProgram& program_;
};

}  // namespace

void LoopProgram::Validate() const { ProgramValidator(*this).Run(); }

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
