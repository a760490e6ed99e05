#include "compiler/schedule/apply/apply.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/apply/shorten.h"
#include "compiler/schedule/apply/stage_builder.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/reduction.h"
#include "proto/check/check.h"

namespace kiln::schedule {
namespace {

using ir::Node;

std::string BufferName(const kernel::Buffer& buffer, size_t number) {
  if (buffer.memory == kernel::Memory::kLocal) return StrCat("local", number);
  if (buffer.access == kernel::Access::kUpdate) return StrCat("inout", number);
  return StrCat(buffer.access == kernel::Access::kRead ? "in" : "out", number);
}

// Copies a kernel into another Context, so that threads do not share one.
class Importer {
 public:
  explicit Importer(ir::Context& context) : context_(context) {}

  kernel::Kernel Import(const kernel::Kernel& kernel) {
    kernel::Kernel copy = kernel;
    for (const Node*& range : copy.grid) range = Import(range);
    for (kernel::Stage& stage : copy.stages) {
      for (const Node*& range : stage.ranges) range = Import(range);
      for (const Node*& range : stage.reduce_ranges) range = Import(range);
      for (const Node*& range : stage.ordered_ranges) range = Import(range);
      for (kernel::Store& store : stage.stores) {
        store.index = Import(store.index);
        store.value = Import(store.value);
        store.valid = Import(store.valid);
      }
    }
    return copy;
  }

 private:
  const Node* Import(const Node* node) {
    if (node == nullptr) return nullptr;
    if (auto found = memo_.find(node); found != memo_.end()) return found->second;
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(Import(operand));
    const Node* result = context_.Get(node->op(), node->dtype(), node->shape(), std::move(operands),
                                      node->attribute());
    memo_.emplace(node, result);
    return result;
  }

  ir::Context& context_;
  kernel::ExpressionFolder::Map memo_;
};

void CollectIndices(const Node* root, int buffer, std::vector<const Node*>* out) {
  for (const Node* node : ir::TopologicalOrder({root})) {
    if (node->op() == ir::Op::kLoad && node->attr<ir::IntAttr>().value == buffer) {
      out->push_back(node->operand(0));
    }
  }
}

// A local is in registers if every access has a constant index.
bool HasConstantIndices(const kernel::Kernel& kernel, int buffer) {
  std::vector<const Node*> indices;
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Store& store : stage.stores) {
      CollectIndices(store.value, buffer, &indices);
      if (store.buffer == buffer) indices.push_back(store.index);
    }
  }
  int64_t value;
  return std::all_of(indices.begin(), indices.end(),
                     [&value](const Node* index) { return kernel::IsConstant(index, &value); });
}

// New ranges must not have the numbers of the kernel's ranges.
int64_t NextRange(const kernel::Kernel& kernel) {
  int64_t next = 0;
  auto see = [&next](const std::vector<const Node*>& ranges) {
    for (const Node* range : ranges) next = std::max(next, range->attr<ir::RangeAttr>().id + 1);
  };
  see(kernel.grid);
  for (const kernel::Stage& stage : kernel.stages) {
    see(stage.ranges);
    see(stage.reduce_ranges);
    see(stage.ordered_ranges);
  }
  return next;
}

class Applier {
 public:
  Applier(const kernel::Kernel& kernel, Plan plan, LoopProgram* program)
      : kernel_(kernel),
        plan_(std::move(plan)),
        program_(*program),
        folder_(*program->context),
        nest_(plan_, folder_, NextRange(kernel)) {}

  absl::Status Apply() {
    program_.threads = plan_.threads;
    AddBuffers();
    absl::Status status = SharesGrid(kernel_) ? ApplyShared() : ApplyEach();
    program_.scratch_bytes = PlaceBuffers(Space::kScratch);
    program_.shared_bytes = PlaceBuffers(Space::kShared);
    program_.axes = nest_.TakeRangeAxes();
    KILN_CHECK_LE(program_.num_arguments, program_.buffers.size());
    return status;
  }

 private:
  // Sets the offsets and returns how many bytes the buffers take.
  int64_t PlaceBuffers(Space space) {
    int64_t offset = 0;
    for (LoopBuffer& buffer : program_.buffers) {
      if (buffer.space != space) continue;
      buffer.offset = offset;
      // Each buffer has whole cache lines: vectors stay aligned, and lanes past a ragged end read
      // only bytes that pad a line (ExpressionPlacer::MayReadAnyLane).
      offset += (buffer.elements * ir::SizeOf(buffer.dtype) + 63) / 64 * 64;
    }
    return offset;
  }

  int GridVectorAxis() const {
    for (int axis : plan_.grid_order) {
      if (plan_.axes[axis].binding == Binding::kVector) return axis;
    }
    return -1;
  }

  void AddBuffers() {
    const int vector = GridVectorAxis();
    const int lanes = vector < 0 ? 1 : static_cast<int>(plan_.axes[vector].extent);
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const kernel::Buffer& from = kernel_.buffers[i];
      LoopBuffer buffer;
      buffer.name = BufferName(from, i);
      buffer.dtype = from.dtype;
      buffer.elements = from.elements;
      if (from.memory == kernel::Memory::kGlobal) {
        buffer.read_only = from.access == kernel::Access::kRead;
        ++program_.num_arguments;
      } else if (program_.threads == 1 && from.elements <= 64 &&
                 HasConstantIndices(kernel_, static_cast<int>(i))) {
        // A stage's thread cannot read another stage's registers.
        buffer.space = Space::kRegister;
        buffer.lanes = lanes;
      } else {
        buffer.space = program_.threads > 1 ? Space::kShared : Space::kScratch;
        // Each lane of the grid is a separate point, with its own local.
        buffer.elements *= lanes;
      }
      program_.buffers.push_back(std::move(buffer));
    }
  }

  // Splits an order into its leading task axes and the loops.
  State OpenTasks(const std::vector<int>& order, Section* section, std::vector<int>* loops) {
    State state = nest_.Start();
    for (int axis : order) {
      if (plan_.axes[axis].binding != Binding::kTask) {
        loops->push_back(axis);
        continue;
      }
      section->grid.push_back(nest_.OpenTask(axis, &state));
    }
    return state;
  }

  absl::Status ApplyEach() {
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      Section section;
      std::vector<int> loops;
      State state = OpenTasks(plan_.stages[i].order, &section, &loops);
      StageBuilder builder(kernel_, kernel_.stages[i], plan_, plan_.stages[i], nest_, folder_,
                           &program_);
      absl::Status status = builder.Check();
      if (!status.ok()) return status;
      section.body = nest_.Decided(std::move(state), [&](State decided) {
        return builder.Build(loops, std::move(decided));
      });
      program_.sections.push_back(std::move(section));
    }
    return absl::OkStatus();
  }

  absl::Status ApplyShared() {
    // A deque, since builders are not movable.
    std::deque<StageBuilder> builders;
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      builders.emplace_back(kernel_, kernel_.stages[i], plan_, plan_.stages[i], nest_, folder_,
                            &program_);
      absl::Status status = builders.back().Check();
      if (!status.ok()) return status;
    }
    Section section;
    std::vector<int> loops;
    State state = OpenTasks(plan_.grid_order, &section, &loops);
    const Nest::Inside stages = [&](State inner) {
      Body body;
      for (size_t i = 0; i < builders.size(); ++i) {
        Append(&body, builders[i].Build(plan_.stages[i].order, inner));
      }
      return body;
    };
    section.body = nest_.Decided(std::move(state), [&](State decided) {
      return nest_.Loops(loops, std::move(decided), stages);
    });
    program_.sections.push_back(std::move(section));
    return absl::OkStatus();
  }

  const kernel::Kernel& kernel_;
  const Plan plan_;
  LoopProgram& program_;
  kernel::ExpressionFolder folder_;
  Nest nest_;
};

}  // namespace

absl::StatusOr<LoopProgram> Apply(const kernel::Kernel& kernel, const Schedule& schedule) {
  LoopProgram program;
  program.name = kernel.name;
  program.context = std::make_shared<ir::Context>();
  const kernel::Kernel own = Importer(*program.context).Import(kernel);
  auto plan = MakePlan(own, schedule);
  if (!plan.ok()) return plan.status();
  absl::Status status = Applier(own, *std::move(plan), &program).Apply();
  if (!status.ok()) return status;
  ShortenLoops(&program, static_cast<int>(own.buffers.size()));
  // As much work as building it.
  KILN_VALIDATE(program, 1);
  return program;
}

}  // namespace kiln::schedule
