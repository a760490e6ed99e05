#include "compiler/schedule/stage_builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/schedule/linear.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using ir::Op;

// Operations after the sums of a register tile that are written out for each; more become loops.
constexpr int64_t kMostResultOperations = 400;

void Append(Body* body, Body more) {
  for (Statement& statement : more) body->push_back(std::move(statement));
}

std::vector<const Node*> FindReduces(const kernel::Stage& stage) {
  std::vector<const Node*> roots;
  for (const kernel::Store& store : stage.stores) {
    for (const Node* root : {store.index, store.value, store.valid}) {
      if (root != nullptr) roots.push_back(root);
    }
  }
  std::vector<const Node*> reduces;
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() == Op::kReduce) reduces.push_back(node);
  }
  return reduces;
}

}  // namespace

StageBuilder::StageBuilder(const kernel::Stage& stage, const Plan& plan,
                           const StagePlan& stage_plan, Nest& nest, Folder& folder,
                           LoopProgram* program, int kernel_buffers)
    : stage_(stage),
      plan_(plan),
      stage_plan_(stage_plan),
      nest_(nest),
      folder_(folder),
      program_(*program),
      kernel_buffers_(kernel_buffers),
      reduces_(FindReduces(stage)),
      guard_(stage.ordered_ranges.empty() ? nullptr : stage.stores[0].valid) {}

const Node* StageBuilder::ProductOperand(int operand) const {
  if (reduces_.empty() || reduces_[0]->operand(0)->op() != Op::kMul) return nullptr;
  return operand == 0 || operand == 1 ? reduces_[0]->operand(0)->operand(operand) : nullptr;
}

absl::Status StageBuilder::Check() const {
  for (const StageOperand& staged : stage_plan_.staged) {
    const Node* operand = ProductOperand(staged.operand);
    if (operand == nullptr || staged.layout.empty() || staged.lanes < 1) {
      return absl::InvalidArgumentError(
          StrCat("schedule directive '", staged.Print(), "': no such product to stage"));
    }
  }
  return absl::OkStatus();
}

Body StageBuilder::Build(absl::Span<const int> loops, State state) {
  Environment environment;
  Body body = StageAt(-1, state, &environment);
  Append(&body, Compute(loops, std::move(state), std::move(environment)));
  return body;
}

std::vector<int> StageBuilder::TileOf(absl::Span<const int> axes) const {
  std::vector<int> tile;
  for (int axis : axes) {
    if (!plan_.axes[axis].reduce || plan_.axes[axis].partial) tile.push_back(axis);
  }
  return tile;
}

bool StageBuilder::FitsRegisters(absl::Span<const int> tile) const {
  return std::all_of(tile.begin(), tile.end(), [this](int axis) {
    const Binding binding = plan_.axes[axis].binding;
    return binding == Binding::kUnroll || binding == Binding::kVector;
  });
}

Body StageBuilder::Compute(absl::Span<const int> axes, State state, Environment environment) {
  if (guard_ != nullptr && !environment.guarded && IsDecided(guard_, state)) {
    environment.guarded = true;
    Branch branch;
    Folder::Map memo = RangeValues(state);
    branch.condition = Place(guard_, state, &memo);
    branch.then_body = Compute(axes, std::move(state), std::move(environment));
    return {Statement{std::move(branch)}};
  }
  if (reduces_.empty()) {
    return axes.empty() ? StoreResults(state, environment)
                        : OpenLoop(axes, std::move(state), std::move(environment));
  }
  const bool at_reduce = axes.empty() || plan_.axes[axes[0]].reduce;
  if (at_reduce && environment.accumulators == nullptr) {
    return Accumulate(axes, std::move(state), std::move(environment));
  }
  if (axes.empty()) return Update(state, environment);
  if (at_reduce && environment.accumulators->space == Space::kScratch &&
      FitsRegisters(TileOf(axes))) {
    return Shadow(axes, std::move(state), std::move(environment));
  }
  return OpenLoop(axes, std::move(state), std::move(environment));
}

// Whether all loops that the condition depends on are open, and none of them is one of lanes.
bool StageBuilder::IsDecided(const Node* condition, const State& state) const {
  for (const Node* range : RangesOf(condition)) {
    for (size_t i = 0; i < plan_.axes.size(); ++i) {
      if (plan_.axes[i].range != range) continue;
      if (nest_.UnopenedPart(static_cast<int>(i), state) >= 0) return false;
      const int vector = OpenVectorAxis(state);
      if (vector >= 0 && DependsOn(nest_.Value(static_cast<int>(i), state), state.values[vector])) {
        return false;
      }
    }
  }
  return true;
}

Body StageBuilder::OpenLoop(absl::Span<const int> axes, State state, Environment environment) {
  return nest_.Open(axes[0], std::move(state), [&, axes](State opened) {
    Environment inner = environment;
    Body body = StageAt(axes[0], opened, &inner);
    Append(&body, Compute(axes.subspan(1), std::move(opened), std::move(inner)));
    return body;
  });
}

Body StageBuilder::Accumulate(absl::Span<const int> axes, State state, Environment environment) {
  const std::vector<int> tile = TileOf(axes);
  auto accumulators = NewAccumulators(tile, state, FitsRegisters(tile));
  environment.accumulators = accumulators;
  const bool was_rolled = state.rolled;
  // Sums in memory are set and stored by loops, however their tiles are unrolled.
  state.rolled |= accumulators->space == Space::kScratch;
  Body body =
      nest_.Loops(tile, state, [&](State inner) { return Initialise(inner, *accumulators); });
  const bool rolled = std::exchange(state.rolled, was_rolled);
  Append(&body, Compute(axes, state, environment));
  state.rolled = rolled;
  if (accumulators->space == Space::kRegister && ResultsAreLong(*accumulators)) {
    auto spilled = NewAccumulators(tile, state, false);
    Append(&body, nest_.Loops(tile, state,
                              [&](State inner) { return Copy(inner, *accumulators, *spilled); }));
    environment.accumulators = spilled;
    state.rolled = true;
  }
  std::vector<int> parallel;
  for (int axis : tile) {
    if (!plan_.axes[axis].reduce) parallel.push_back(axis);
  }
  Append(&body, nest_.Loops(parallel, std::move(state),
                            [&](State inner) { return StoreResults(inner, environment); }));
  return body;
}

// Whether what follows the sums, once for each of them, would be too much code.
bool StageBuilder::ResultsAreLong(const Accumulators& sums) const {
  std::vector<const Node*> roots;
  for (const kernel::Store& store : stage_.stores) roots.push_back(store.value);
  absl::flat_hash_set<const Node*> inside;
  for (const Node* reduce : reduces_) {
    for (const Node* node : ir::TopologicalOrder({&reduce, 1})) inside.insert(node);
  }
  int64_t operations = 0;
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (!inside.contains(node) && ir::IsFloat(node->dtype())) ++operations;
  }
  return operations * program_.buffers[sums.buffers[0]].elements > kMostResultOperations;
}

Body StageBuilder::Shadow(absl::Span<const int> axes, State state, Environment environment) {
  const std::vector<int> tile = TileOf(axes);
  auto outer = environment.accumulators;
  auto registers = NewAccumulators(tile, state, true);
  environment.accumulators = registers;
  Body body =
      nest_.Loops(tile, state, [&](State inner) { return Copy(inner, *outer, *registers); });
  Append(&body, Compute(axes, state, environment));
  Append(&body, nest_.Loops(tile, std::move(state),
                            [&](State inner) { return Copy(inner, *registers, *outer); }));
  return body;
}

int StageBuilder::OpenVectorAxis(const State& state) const {
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    if (axis.leaf() && axis.binding == Binding::kVector && state.values[i] != nullptr) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::shared_ptr<const Accumulators> StageBuilder::NewAccumulators(absl::Span<const int> tile,
                                                                  const State& state,
                                                                  bool registers) {
  auto result = std::make_shared<Accumulators>();
  result->space = registers ? Space::kRegister : Space::kScratch;
  int vector = OpenVectorAxis(state);
  std::vector<int> others;
  for (int axis : tile) {
    if (plan_.axes[axis].binding == Binding::kVector) {
      vector = axis;
    } else {
      others.push_back(axis);
    }
    if (plan_.axes[axis].reduce) result->partial.push_back(axis);
  }
  const int64_t lanes = vector < 0 ? 1 : plan_.axes[vector].extent;
  int64_t elements = registers ? 1 : lanes;
  if (vector >= 0 && !registers) result->dimensions.push_back({vector, 1});
  for (auto it = others.rbegin(); it != others.rend(); ++it) {
    result->dimensions.push_back({*it, elements});
    elements *= plan_.axes[*it].extent;
  }
  for (size_t i = 0; i < reduces_.size(); ++i) {
    result->buffers.push_back(NewBuffer("sum", static_cast<int>(i), reduces_[i]->dtype(), elements,
                                        result->space, registers ? static_cast<int>(lanes) : 1));
  }
  return result;
}

int StageBuilder::NewBuffer(const std::string& purpose, int which, ir::DType dtype,
                            int64_t elements, Space space, int lanes) {
  const auto key = std::make_tuple(purpose, which, elements, space, lanes);
  const auto [found, inserted] = buffers_.emplace(key, static_cast<int>(program_.buffers.size()));
  if (!inserted) return found->second;
  LoopBuffer buffer;
  buffer.name = StrCat(purpose, program_.buffers.size());
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffer.space = space;
  buffer.lanes = lanes;
  program_.buffers.push_back(std::move(buffer));
  return found->second;
}

const Node* StageBuilder::AccumulatorIndex(const Accumulators& from, const State& state) {
  const Node* index = folder_.Int(0);
  for (const Accumulators::Dimension& dimension : from.dimensions) {
    index = folder_.Add(index, folder_.Mul(nest_.Value(dimension.axis, state), dimension.stride));
  }
  return index;
}

const Node* StageBuilder::AccumulatorLoad(const Accumulators& from, size_t which,
                                          const State& state) {
  return folder_.Load(reduces_[which]->dtype(), from.buffers[which], AccumulatorIndex(from, state),
                      nullptr);
}

Body StageBuilder::Initialise(const State& state, const Accumulators& to) {
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = to.buffers[i];
    store.index = AccumulatorIndex(to, state);
    store.value = IdentityOf(folder_.context(), reduces_[i]->attr<ir::ReduceAttr>().kind,
                             reduces_[i]->dtype());
    body.push_back(Statement{store});
  }
  return body;
}

Body StageBuilder::Copy(const State& state, const Accumulators& from, const Accumulators& to) {
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = to.buffers[i];
    store.index = AccumulatorIndex(to, state);
    store.value = AccumulatorLoad(from, i, state);
    body.push_back(Statement{store});
  }
  return body;
}

Body StageBuilder::Update(const State& state, const Environment& environment) {
  const Accumulators& accumulators = *environment.accumulators;
  Folder::Map memo = RangeValues(state);
  for (const StagedOperand& staged : environment.staged) {
    memo[staged.operand] = StagedLoad(staged, state);
  }
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = accumulators.buffers[i];
    store.index = AccumulatorIndex(accumulators, state);
    store.value = Combine(folder_.context(), reduces_[i]->attr<ir::ReduceAttr>().kind,
                          AccumulatorLoad(accumulators, i, state),
                          Place(reduces_[i]->operand(0), state, &memo));
    store.valid = LaneMasks(state, /*reduce_only=*/true);
    body.push_back(Statement{store});
  }
  Append(&body, Fetches(state));
  return body;
}

const Node* StageBuilder::SumOverPartial(size_t which, State state, const Accumulators& from,
                                         absl::Span<const int> partial) {
  if (partial.empty()) return AccumulatorLoad(from, which, state);
  const Axis& axis = plan_.axes[partial[0]];
  const ir::ReduceKind kind = reduces_[which]->attr<ir::ReduceAttr>().kind;
  std::vector<const Node*> parts;
  for (int64_t i = 0; i < axis.extent; ++i) {
    state.values[partial[0]] = folder_.Int(i);
    parts.push_back(SumOverPartial(which, state, from, partial.subspan(1)));
  }
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
    const size_t half = (parts.size() + 1) / 2;
    for (size_t i = half; i < parts.size(); ++i) {
      parts[i - half] = Combine(folder_.context(), kind, parts[i - half], parts[i]);
    }
  }
  return parts[0];
}

const Node* StageBuilder::Total(size_t which, const State& state, const Accumulators& from) {
  std::vector<int> unrolled;
  int vector = -1;
  for (int axis : from.partial) {
    if (plan_.axes[axis].binding == Binding::kVector) {
      vector = axis;
    } else {
      unrolled.push_back(axis);
    }
  }
  if (vector < 0) return SumOverPartial(which, state, from, unrolled);
  State lanes = state;
  const Node* range = nest_.NewRange(plan_.axes[vector].extent);
  lanes.values[vector] = range;
  const Node* value = SumOverPartial(which, lanes, from, unrolled);
  return folder_.context().Get(Op::kReduce, value->dtype(), {}, {value, range},
                               reduces_[which]->attribute());
}

Body StageBuilder::StoreResults(const State& state, const Environment& environment) {
  Folder::Map memo = RangeValues(state);
  if (environment.guarded) memo[guard_] = folder_.Bool(true);
  for (size_t i = 0; i < reduces_.size(); ++i) {
    memo[reduces_[i]] = Total(i, state, *environment.accumulators);
  }
  Body body;
  for (const kernel::Store& from : stage_.stores) {
    Store store;
    store.buffer = from.buffer;
    store.index = LocalIndex(from.buffer, Place(from.index, state, &memo), state);
    store.value = Place(from.value, state, &memo);
    store.valid = Place(from.valid, state, &memo);
    if (program_.buffers[from.buffer].space != Space::kRegister) {
      store.valid = folder_.And(store.valid, LaneMasks(state, /*reduce_only=*/false));
    }
    store.streaming = stage_plan_.stream;
    body.push_back(Statement{store});
  }
  if (reduces_.empty()) Append(&body, Fetches(state));
  return body;
}

// At the first lane's elements: lanes along memory share a line.
Body StageBuilder::Fetches(State state) {
  if (const int vector = OpenVectorAxis(state); vector >= 0) {
    state.values[vector] = folder_.Int(0);
  }
  Body body;
  for (const PrefetchPlan& ahead : stage_plan_.prefetches) {
    absl::flat_hash_set<const Node*> done;
    for (const Node* from : IndicesOf(ahead.buffer)) {
      Folder::Map memo = RangeValues(state);
      memo[ahead.range] = folder_.Add(memo[ahead.range], folder_.Int(ahead.steps));
      const Node* index = Place(from, state, &memo);
      if (done.insert(index).second) body.push_back(Statement{Fetch{ahead.buffer, index}});
    }
  }
  return body;
}

// Where the stage reads the buffer; without indices that are themselves read from memory.
std::vector<const Node*> StageBuilder::IndicesOf(int buffer) const {
  std::vector<const Node*> roots;
  for (const kernel::Store& store : stage_.stores) roots.push_back(store.value);
  std::vector<const Node*> indices;
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() != Op::kLoad || node->attr<ir::IntAttr>().value != buffer) continue;
    const std::vector<const Node*> parts = ir::TopologicalOrder({&node->operands()[0], 1});
    if (std::none_of(parts.begin(), parts.end(),
                     [](const Node* part) { return part->op() == Op::kLoad; })) {
      indices.push_back(node->operand(0));
    }
  }
  return indices;
}

Folder::Map StageBuilder::RangeValues(const State& state) {
  Folder::Map values;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    if (axis.range != nullptr) values[axis.range] = nest_.Value(static_cast<int>(i), state);
  }
  return values;
}

const Node* StageBuilder::LaneMasks(const State& state, bool reduce_only) {
  const Node* valid = nullptr;
  for (const LaneMask& mask : state.masks) {
    if (reduce_only && !mask.reduce) continue;
    valid = folder_.And(valid, folder_.Less(mask.range, folder_.Int(mask.count)));
  }
  return valid;
}

const Node* StageBuilder::LocalIndex(int buffer, const Node* index, const State& state) {
  const bool local = buffer >= program_.num_arguments && buffer < kernel_buffers_;
  const int vector = OpenVectorAxis(state);
  if (!local || vector < 0 || plan_.axes[vector].stage != -1 ||
      program_.buffers[buffer].space != Space::kScratch) {
    return index;
  }
  return folder_.Add(folder_.Mul(index, plan_.axes[vector].extent), state.values[vector]);
}

const Node* StageBuilder::Place(const Node* root, const State& state, Folder::Map* memo) {
  if (root == nullptr) return nullptr;
  Folder::Map finished;
  return Finish(folder_.Substitute(root, memo), state, &finished);
}

const Node* StageBuilder::Finish(const Node* node, const State& state, Folder::Map* memo) {
  if (auto found = memo->find(node); found != memo->end()) return found->second;
  const int buffer =
      node->op() == Op::kLoad ? static_cast<int>(node->attr<ir::IntAttr>().value) : -1;
  const Node* result = node;
  if (buffer < kernel_buffers_) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(Finish(operand, state, memo));
    if (buffer >= 0) {
      const Node* valid = operands.size() > 1 ? operands[1] : nullptr;
      for (const LaneMask& mask : state.masks) {
        if (program_.buffers[buffer].space == Space::kGlobal &&
            DependsOn(operands[0], mask.range)) {
          valid = folder_.And(valid, folder_.Less(mask.range, folder_.Int(mask.count)));
        }
      }
      const Node* index = LocalIndex(buffer, operands[0], state);
      result = folder_.Load(node->dtype(), buffer, index, valid);
    } else if (!operands.empty()) {
      result = folder_.context().WithOperands(node, std::move(operands));
    }
  }
  memo->emplace(node, result);
  return result;
}

}  // namespace kiln::schedule
