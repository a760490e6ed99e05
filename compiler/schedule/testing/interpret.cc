#include "compiler/schedule/testing/interpret.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/op_def.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ops::HostTensor;

// For each thread, whether it takes part.
using Mask = std::vector<bool>;

// The last access to an element: by which thread, and when. A phase is the time between two
// barriers.
struct Visit {
  int64_t task = -1;
  int64_t phase = -1;
  int thread = 0;
};
struct Element {
  Visit written;
  Visit read;
  bool read_by_several = false;  // several threads, in read.phase
};

struct Memory {
  HostTensor* content = nullptr;  // registers: the threads' one after the other
  std::vector<Element> elements;
  int64_t size = 0;  // of the buffer, or of one thread's registers
};

class BlockInterpreter {
 public:
  BlockInterpreter(const LoopProgram& program, absl::Span<HostTensor* const> globals)
      : program_(program), threads_(program.threads) {
    own_.resize(program.buffers.size());
    memory_.resize(program.buffers.size());
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const LoopBuffer& buffer = program.buffers[i];
      Memory& memory = memory_[i];
      memory.size = buffer.elements;
      if (buffer.space == Space::kGlobal) {
        memory.content = globals[i];
      } else {
        // Each thread has its own scratch and registers.
        const bool shared = buffer.space == Space::kShared;
        own_[i] = HostTensor::Zeros(buffer.dtype, {memory.size * (shared ? 1 : threads_)});
        memory.content = &own_[i];
      }
      memory.elements.resize(memory.content->size());
    }
  }

  absl::Status Run() {
    int64_t first = 0;
    for (const Section& section : program_.sections) {
      for (int64_t task = 0; task < section.tasks(); ++task) {
        absl::Status status = RunTask(section, first + task, task);
        if (!status.ok()) return status;
      }
      first += section.tasks();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunTask(const Section& section, int64_t number, int64_t point) {
    task_ = number;
    ++phase_;
    ranges_.clear();
    for (size_t i = section.grid.size(); i-- > 0;) {
      const int64_t extent = ir::ExtentOf(section.grid[i]);
      SetRange(section.grid[i], point % extent);
      point /= extent;
    }
    // Values that the previous task left in the block's memory are invalid.
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (program_.buffers[i].space == Space::kGlobal) continue;
      std::fill(memory_[i].elements.begin(), memory_[i].elements.end(), Element());
    }
    return RunBody(section.body, Mask(threads_, true));
  }

  template <typename ValueOf>
  void SetRange(const Node* range, ValueOf value_of_thread) {
    HostTensor& values = ranges_[range];
    if (values.bytes.empty()) values = HostTensor::Zeros(DType::kInt64, {threads_});
    for (int t = 0; t < threads_; ++t) values.SetInt(t, value_of_thread(t));
  }
  void SetRange(const Node* range, int64_t value) {
    SetRange(range, [value](int) { return value; });
  }

  absl::Status RunBody(const std::vector<Statement>& body, const Mask& mask) {
    for (const Statement& statement : body) {
      absl::Status status =
          std::visit([&](const auto& node) { return RunOne(node, mask); }, statement.node);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RunOne(const Barrier&, const Mask&) {
    if (in_threads_) return absl::InternalError("a barrier that not all threads get to");
    ++phase_;
    return absl::OkStatus();
  }
  // For groups of adjacent threads. Requires: each group is here as a whole or not at all.
  absl::Status RunOne(const ThreadReduce& reduce, const Mask& mask) {
    const int64_t group = ir::ExtentOf(reduce.value->operand(1));
    Mask first = mask;
    for (int t = 0; t < threads_; ++t) {
      const int64_t member = t % group;
      if (mask[t] != mask[t - member]) return absl::InternalError("a part of a group");
      first[t] = mask[t] && member == 0;
    }
    SetRange(reduce.value->operand(1), [group](int t) { return t % group; });
    absl::StatusOr<HostTensor> value = Evaluate(reduce.value->operand(0), mask);
    if (!value.ok()) return value.status();
    const Node* input = context_.Get(Op::kInput, value->dtype, {}, {}, ir::InputAttr{});
    const Node* both = Combine(context_, reduce.value->attr<ir::ReduceAttr>().kind, input, input);
    const Node* twin = Twin(both);
    for (int64_t distance = group / 2; distance >= 1; distance /= 2) {
      HostTensor others = *value;
      for (int t = 0; t < threads_; ++t) ops::CopyElement(*value, t ^ distance, others, t);
      value = Apply(both, twin, {&*value, &others});
      if (!value.ok()) return value.status();
    }
    return StoreValues(reduce.buffer, reduce.index, *value, first);
  }
  absl::Status RunOne(const Fetch&, const Mask&) { return absl::OkStatus(); }

  absl::Status RunOne(const Branch& branch, const Mask& mask) {
    absl::StatusOr<HostTensor> condition = Evaluate(branch.condition, mask);
    if (!condition.ok()) return condition.status();
    Mask then_mask = mask, else_mask = mask;
    bool any_then = false, any_else = false;
    for (int t = 0; t < threads_; ++t) {
      const bool holds = condition->Int(t) != 0;
      then_mask[t] = mask[t] && holds;
      else_mask[t] = mask[t] && !holds;
      any_then |= then_mask[t];
      any_else |= else_mask[t];
    }
    if (!in_threads_ && any_then && any_else) {
      return absl::InternalError("threads of a block take both ways of a branch");
    }
    if (any_then) {
      if (absl::Status status = RunBody(branch.then_body, then_mask); !status.ok()) return status;
    }
    return any_else ? RunBody(branch.else_body, else_mask) : absl::OkStatus();
  }

  absl::Status RunOne(const Loop& loop, const Mask& mask) {
    std::vector<int64_t> extents(threads_, ir::ExtentOf(loop.range));
    if (loop.extent != nullptr) {
      absl::StatusOr<HostTensor> computed = Evaluate(loop.extent, mask);
      if (!computed.ok()) return computed.status();
      for (int t = 0; t < threads_; ++t) extents[t] = computed->Int(t);
    }
    if (loop.kind == LoopKind::kThread) return RunThreads(loop, mask, extents);
    int64_t longest = 0;
    for (int t = 0; t < threads_; ++t) {
      if (mask[t]) longest = std::max(longest, extents[t]);
    }
    if (longest > ir::ExtentOf(loop.range)) return absl::InternalError("a loop beyond its range");
    for (int64_t i = 0; i < longest; ++i) {
      SetRange(loop.range, i);
      Mask inner = mask;
      for (int t = 0; t < threads_; ++t) {
        inner[t] = mask[t] && i < extents[t];
        if (!in_threads_ && inner[t] != mask[t]) {
          return absl::InternalError("threads of a block leave a loop at different times");
        }
      }
      if (absl::Status status = RunBody(loop.body, inner); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RunThreads(const Loop& loop, const Mask& mask, absl::Span<const int64_t> extents) {
    const auto place = [&loop](int t) { return t / loop.stride % loop.places; };
    Mask inner = mask;
    for (int t = 0; t < threads_; ++t) inner[t] = mask[t] && place(t) < extents[t];
    SetRange(loop.range, place);
    const bool was_in_threads = std::exchange(in_threads_, true);
    absl::Status status = RunBody(loop.body, inner);
    in_threads_ = was_in_threads;
    return status;
  }

  absl::Status RunOne(const Store& store, const Mask& mask) {
    const LoopBuffer& buffer = program_.buffers[store.buffer];
    Mask writers = mask;
    if (!in_threads_ && !IsPrivate(buffer.space)) {
      std::fill(writers.begin() + 1, writers.end(), false);
    }
    if (store.valid != nullptr) {
      absl::StatusOr<HostTensor> valid = Evaluate(store.valid, writers);
      if (!valid.ok()) return valid.status();
      for (int t = 0; t < threads_; ++t) writers[t] = writers[t] && valid->Int(t) != 0;
    }
    absl::StatusOr<HostTensor> value = Evaluate(store.value, writers);
    if (!value.ok()) return value.status();
    return StoreValues(store.buffer, store.index, *value, writers);
  }

  absl::Status StoreValues(int buffer, const Node* where, const HostTensor& value,
                           const Mask& writers) {
    absl::StatusOr<HostTensor> index = Evaluate(where, writers);
    if (!index.ok()) return index.status();
    for (int t = 0; t < threads_; ++t) {
      if (!writers[t]) continue;
      absl::StatusOr<int64_t> at = Place(buffer, index->Int(t), t);
      if (!at.ok()) return at.status();
      if (absl::Status status = Write(buffer, *at, t); !status.ok()) return status;
      ops::CopyElement(value, t, *memory_[buffer].content, *at);
    }
    return absl::OkStatus();
  }

  // Returns where an element of the buffer is for a thread.
  absl::StatusOr<int64_t> Place(int buffer, int64_t index, int thread) const {
    const Memory& memory = memory_[buffer];
    const LoopBuffer& of = program_.buffers[buffer];
    if (index < 0 || index >= memory.size) {
      return absl::InternalError(
          absl::StrCat("element ", index, " of ", memory.size, " of ", of.name));
    }
    return IsPrivate(of.space) ? thread * memory.size + index : index;
  }

  // Returns whether another thread had an access that no barrier separates from this one.
  bool Meets(const Visit& before, int thread) const {
    if (before.task < 0) return false;
    return before.task != task_ || (before.phase == phase_ && before.thread != thread);
  }

  absl::Status Race(int buffer, int64_t at, int thread, const char* what) const {
    return absl::AbortedError(absl::StrCat("thread ", thread, " of task ", task_, " ", what,
                                           " element ", at, " of ", program_.buffers[buffer].name,
                                           ", which another one writes or reads meanwhile"));
  }

  absl::Status Write(int buffer, int64_t at, int thread) {
    Element& element = memory_[buffer].elements[at];
    const bool read =
        Meets(element.read, thread) || (element.read_by_several && element.read.phase == phase_);
    if (read || Meets(element.written, thread)) return Race(buffer, at, thread, "writes");
    element.written = {task_, phase_, thread};
    return absl::OkStatus();
  }

  absl::Status Read(int buffer, int64_t at, int thread) {
    Element& element = memory_[buffer].elements[at];
    if (Meets(element.written, thread)) return Race(buffer, at, thread, "reads");
    if (program_.buffers[buffer].space != Space::kGlobal && element.written.task < 0) {
      return absl::InternalError(
          absl::StrCat("element ", at, " of ", program_.buffers[buffer].name, " is not written"));
    }
    const bool again = element.read.task == task_ && element.read.phase == phase_;
    element.read_by_several = again && (element.read_by_several || element.read.thread != thread);
    element.read = {task_, phase_, thread};
    return absl::OkStatus();
  }

  // One node of an expression. Its operands are earlier steps.
  struct Step {
    const Node* node;
    std::vector<int> operands;
    // The table of ops evaluates tensors, so a scalar node gets a twin whose only dimension is the
    // threads. Null: a range, a constant or a load.
    const Node* twin = nullptr;
    HostTensor constant;
  };
  // An expression as steps; the last one is its value.
  using Plan = std::vector<Step>;

  const Plan& PlanOf(const Node* root) {
    std::unique_ptr<Plan>& plan = plans_[root];
    if (plan == nullptr) {
      plan = std::make_unique<Plan>();
      absl::flat_hash_map<const Node*, int> places;
      for (const Node* node : ir::TopologicalOrder({&root, 1})) {
        Step step{.node = node, .operands = {}, .twin = nullptr, .constant = {}};
        for (const Node* operand : node->operands()) step.operands.push_back(places.at(operand));
        if (node->op() == Op::kConst) {
          step.constant = Constant(node);
        } else if (node->op() != Op::kRange && node->op() != Op::kLoad) {
          step.twin = Twin(node);
        }
        places[node] = static_cast<int>(plan->size());
        plan->push_back(std::move(step));
      }
    }
    return *plan;
  }

  // Returns the values of all threads; those of threads that do not take part are unspecified.
  absl::StatusOr<HostTensor> Evaluate(const Node* root, const Mask& mask) {
    const Plan& plan = PlanOf(root);
    std::vector<HostTensor> own(plan.size());
    std::vector<const HostTensor*> values(plan.size());
    std::vector<const HostTensor*> operands;
    for (size_t i = 0; i < plan.size(); ++i) {
      const Step& step = plan[i];
      if (step.node->op() == Op::kConst) {
        values[i] = &step.constant;
        continue;
      }
      if (step.node->op() == Op::kRange) {
        const auto found = ranges_.find(step.node);
        if (found == ranges_.end()) return absl::InternalError("a range of no open loop");
        values[i] = &found->second;
        continue;
      }
      operands.clear();
      for (const int operand : step.operands) operands.push_back(values[operand]);
      absl::StatusOr<HostTensor> value = step.node->op() == Op::kLoad
                                             ? Load(step.node, mask, operands)
                                             : Apply(step.node, step.twin, operands);
      if (!value.ok()) return value.status();
      own[i] = *std::move(value);
      values[i] = &own[i];
    }
    return values.back() == &own.back() ? std::move(own.back()) : *values.back();
  }

  HostTensor Constant(const Node* node) const {
    HostTensor result = HostTensor::Zeros(node->dtype(), {threads_});
    const auto& value = node->attr<ir::ConstValue>();
    const bool is_float = ir::IsFloat(node->dtype());
    for (int t = 0; t < threads_; ++t)
      is_float ? result.SetFloat(t, value.AsDouble()) : result.SetInt(t, value.AsInt());
    return result;
  }

  absl::StatusOr<HostTensor> Load(const Node* node, const Mask& mask,
                                  absl::Span<const HostTensor* const> operands) {
    const auto buffer = static_cast<int>(node->attr<ir::IntAttr>().value);
    const HostTensor& index = *operands[0];
    const HostTensor* valid = operands.size() > 1 ? operands[1] : nullptr;
    HostTensor result = HostTensor::Zeros(node->dtype(), {threads_});
    for (int t = 0; t < threads_; ++t) {
      if (!mask[t] || (valid != nullptr && valid->Int(t) == 0)) continue;
      absl::StatusOr<int64_t> at = Place(buffer, index.Int(t), t);
      if (!at.ok()) return at.status();
      if (absl::Status status = Read(buffer, *at, t); !status.ok()) return status;
      ops::CopyElement(*memory_[buffer].content, *at, result, t);
    }
    return result;
  }

  const Node* Twin(const Node* node) {
    std::vector<const Node*> inputs;
    for (const Node* operand : node->operands()) {
      inputs.push_back(context_.Get(Op::kInput, operand->dtype(), {threads_}, {}, ir::InputAttr{}));
    }
    return context_.Get(node->op(), node->dtype(), {threads_}, std::move(inputs),
                        node->attribute());
  }

  static absl::StatusOr<HostTensor> Apply(const Node* node, const Node* twin,
                                          absl::Span<const HostTensor* const> operands) {
    const ops::OpDef& row = ops::DefOf(node->op());
    if (row.evaluate == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("no meaning for ", std::string(ir::Name(node->op()))));
    }
    return row.evaluate(twin, operands);
  }

  const LoopProgram& program_;
  const int threads_;
  std::vector<HostTensor> own_;
  std::vector<Memory> memory_;
  absl::flat_hash_map<const Node*, HostTensor> ranges_;  // of the open loops
  absl::flat_hash_map<const Node*, std::unique_ptr<Plan>> plans_;
  ir::Context context_;
  int64_t task_ = 0;
  int64_t phase_ = 0;
  bool in_threads_ = false;
};

}  // namespace

absl::Status Interpret(const LoopProgram& program, absl::Span<HostTensor* const> globals) {
  if (static_cast<int>(globals.size()) != program.num_arguments) {
    return absl::InternalError("not a tensor for each argument");
  }
  return BlockInterpreter(program, globals).Run();
}

}  // namespace kiln::schedule
