#include "compiler/schedule/apply/stage_builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/tf32.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/in_place.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/directives/words.h"
#include "compiler/schedule/matrix/step.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using ir::Op;

// The maximum number of operations after the sums of a register tile that are unrolled for each
// sum; more become loops.
constexpr int64_t kResultOperationsMax = 400;
// Higher for threads of a block: the loops read the sums from memory.
constexpr int64_t kThreadResultOperationsMax = 1500;

}  // namespace

StageBuilder::StageBuilder(const kernel::Kernel& kernel, const kernel::Stage& stage,
                           const Plan& plan, const StagePlan& stage_plan, Nest& nest,
                           kernel::ExpressionFolder& folder, LoopProgram* program)
    : stage_(stage),
      store_order_(kernel::StoreOrder(kernel, stage)),
      plan_(plan),
      stage_plan_(stage_plan),
      nest_(nest),
      folder_(folder),
      program_(*program),
      placer_(plan, nest, folder, *program, static_cast<int>(kernel.buffers.size())),
      buffers_(program),
      sums_(ReducesOf(stage), plan, nest, folder, placer_, buffers_),
      packer_(plan, nest, folder, placer_, buffers_),
      guard_(stage.ordered_ranges.empty() ? nullptr : stage.stores[0].valid),
      needed_(stage_plan.skip ? FindNeeded() : std::vector<const Node*>()) {}

const Node* StageBuilder::ProductOperand(int operand) const {
  if (reduces().empty() || reduces()[0]->operand(0)->op() != Op::kMul) return nullptr;
  if (operand != 0 && operand != 1) return nullptr;
  const Node* factor = reduces()[0]->operand(0)->operand(operand);
  // Matrix units take short floats without a cast.
  const bool widens = factor->op() == Op::kCast && ir::IsShortFloat(factor->operand(0)->dtype());
  return stage_plan_.matrix && widens ? factor->operand(0) : factor;
}

// Returns whether a matrix unit computes the same result.
bool StageBuilder::FitsMatrixUnit() const {
  if (reduces().size() != 1 || reduces()[0]->attr<ir::ReduceAttr>().kind != ir::ReduceKind::kSum) {
    return false;
  }
  for (const int operand : {0, 1}) {
    const Node* factor = ProductOperand(operand);
    if (factor == nullptr) return false;
    const bool fits = factor->dtype() == ir::DType::kFloat16 ||
                      factor->dtype() == ir::DType::kBFloat16 || ir::IsRoundedToTf32(factor);
    if (!fits) return false;
  }
  return true;
}

absl::Status StageBuilder::Check() const {
  for (const StageOperand& staged : stage_plan_.staged) {
    const Node* operand = ProductOperand(staged.operand);
    if (operand == nullptr || staged.layout.empty()) {
      return BadDirective(staged.Print(), "no such product to stage");
    }
  }
  if (stage_plan_.matrix && !FitsMatrixUnit()) {
    return BadDirective(Order{plan_.axes[stage_plan_.order[0]].stage, stage_plan_.order}.Print(),
                        "a matrix unit adds up products of float16, bfloat16 or tf32");
  }
  return absl::OkStatus();
}

Body StageBuilder::Build(absl::Span<const int> loops, State state) {
  Environment environment;
  // Operands staged outside all loops, once for each task.
  Body body = StageAt(-1, state, &environment);
  Append(&body, Compute(loops, std::move(state), std::move(environment)));
  return body;
}

// Returns the axes that have one sum for each point: parallel ones, and those of partial sums.
std::vector<int> StageBuilder::TileOf(absl::Span<const int> axes) const {
  std::vector<int> tile;
  for (int axis : axes) {
    if (!plan_.axes[axis].reduce || plan_.axes[axis].partial) tile.push_back(axis);
  }
  return tile;
}

bool StageBuilder::FitsRegisters(absl::Span<const int> tile) const {
  // Registers have no address, so the slot must be a constant in the code.
  return std::all_of(tile.begin(), tile.end(), [this](int axis) {
    const Binding binding = plan_.axes[axis].binding;
    return binding == Binding::kUnroll || binding == Binding::kVector ||
           binding == Binding::kThread || binding == Binding::kMatrix;
  });
}

Body StageBuilder::Compute(absl::Span<const int> axes, State state, Environment environment) {
  // A scatter's condition is tested as soon as it is known, around all remaining loops.
  if (guard_ != nullptr && !environment.guarded && IsDecided(guard_, state)) {
    environment.guarded = true;
    Branch branch;
    kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
    branch.condition = placer_.Place(guard_, state, &memo);
    branch.then_body = Compute(axes, std::move(state), std::move(environment));
    return {Statement{std::move(branch)}};
  }
  if (reduces().empty()) {
    return axes.empty() ? StoreResults(state, environment)
                        : OpenLoop(axes, std::move(state), std::move(environment));
  }
  if (environment.accumulators != nullptr) {
    std::vector<const Node*> decided;
    for (const Node* condition : needed_) {
      const bool held = std::find(environment.held.begin(), environment.held.end(), condition) !=
                        environment.held.end();
      if (!held && IsDecided(condition, state)) decided.push_back(condition);
    }
    if (!decided.empty()) {
      Branch branch;
      kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
      for (const Node* condition : decided) {
        branch.condition = folder_.And(branch.condition, placer_.Place(condition, state, &memo));
        environment.held.push_back(condition);
      }
      Body body = Compute(axes, std::move(state), std::move(environment));
      int64_t known = 1;
      if (branch.condition == nullptr || kernel::IsConstant(branch.condition, &known)) {
        return known != 0 ? std::move(body) : Body();
      }
      branch.then_body = std::move(body);
      return {Statement{std::move(branch)}};
    }
  }
  const bool at_reduce = axes.empty() || plan_.axes[axes[0]].reduce;
  if (at_reduce && environment.accumulators == nullptr) {
    return Accumulate(axes, std::move(state), std::move(environment));
  }
  if (axes.empty()) return Update(state, environment);
  if (plan_.axes[axes[0]].block && environment.block != axes[0]) {
    return AddUpBlock(axes, std::move(state), std::move(environment));
  }
  if (at_reduce && environment.accumulators->space != Space::kRegister &&
      FitsRegisters(TileOf(axes))) {
    return CarryTileInRegisters(axes, std::move(state), std::move(environment));
  }
  Body body = OpenLoop(axes, std::move(state), std::move(environment));
  for (Statement& statement : body) {
    auto* loop = std::get_if<Loop>(&statement.node);
    if (loop != nullptr && nest_.AxisOf(loop->range) == axes[0]) {
      loop->ahead = plan_.axes[axes[0]].ahead;
    }
  }
  if (stage_plan_.matrix && axes[0] == stage_plan_.matrix->rows) {
    auto* loop = std::get_if<Loop>(&body[0].node);
    if (loop != nullptr && FindMatrixStep(*loop, program_)) loop->kind = LoopKind::kMatrix;
  }
  return body;
}

// Returns whether all loops that the condition depends on are open, and none of them is a loop of
// lanes.
bool StageBuilder::IsDecided(const Node* condition, const State& state) const {
  for (const Node* range : ir::RangesOf(condition)) {
    for (size_t i = 0; i < plan_.axes.size(); ++i) {
      if (plan_.axes[i].range != range) continue;
      if (nest_.UnopenedPart(static_cast<int>(i), state) >= 0) return false;
      const int vector = placer_.OpenVectorAxis(state);
      if (vector >= 0 &&
          kernel::DependsOn(nest_.Value(static_cast<int>(i), state), state.values[vector])) {
        return false;
      }
    }
  }
  return true;
}

// Returns whether no loop of the tile, lane or thread has a part in the condition.
bool StageBuilder::IsKnownOutsideTile(const Node* condition) const {
  const auto depends_on = [&](int axis) {
    while (plan_.axes[axis].parent >= 0) axis = plan_.axes[axis].parent;
    return placer_.DependsOnAxis(condition, axis);
  };
  // The tile is inside all loops of the sum.
  for (auto axis = stage_plan_.order.rbegin(); axis != stage_plan_.order.rend(); ++axis) {
    if (plan_.axes[*axis].reduce && !plan_.axes[*axis].partial) break;
    if (plan_.axes[*axis].extent > 1 && depends_on(*axis)) return false;
  }
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Binding binding = plan_.axes[i].binding;
    const bool shared_out = binding == Binding::kVector || binding == Binding::kThread;
    if (shared_out && depends_on(static_cast<int>(i))) return false;
  }
  return true;
}

std::vector<const Node*> StageBuilder::FindNeeded() const {
  std::vector<const Node*> needed = NeededConditions(reduces());
  std::erase_if(needed, [this](const Node* one) { return !IsKnownOutsideTile(one); });
  return needed;
}

Body StageBuilder::OpenLoop(absl::Span<const int> axes, State state, Environment environment) {
  return nest_.Open(axes[0], std::move(state), [&, axes](State opened) {
    // A copy, since peeled ends run this function again.
    Environment inner = environment;
    Body body = StageAt(axes[0], opened, &inner);
    Append(&body, Compute(axes.subspan(1), std::move(opened), std::move(inner)));
    return body;
  });
}

Body StageBuilder::StageAt(int axis, const State& state, Environment* environment) {
  Body body;
  for (const StageOperand& directive : stage_plan_.staged) {
    if (directive.at != axis) continue;
    StagedOperand staged = packer_.Layout(directive, ProductOperand(directive.operand), state);
    Append(&body, packer_.Pack(directive, staged, state));
    environment->staged.push_back(std::move(staged));
  }
  return body;
}

Body StageBuilder::Accumulate(absl::Span<const int> axes, State state, Environment environment) {
  const std::vector<int> tile = TileOf(axes);
  auto accumulators =
      sums_.New(tile, state, FitsRegisters(tile) ? Space::kRegister : buffers_.memory());
  environment.accumulators = accumulators;
  const bool was_rolled = state.rolled;
  // Sums in memory are set and stored by loops, even if their tiles are unrolled.
  state.rolled |= accumulators->space != Space::kRegister;
  Body body =
      nest_.Loops(tile, state, [&](State inner) { return sums_.Initialise(inner, *accumulators); });
  const bool rolled = std::exchange(state.rolled, was_rolled);
  Append(&body, Compute(axes, state, environment));
  state.rolled = rolled;
  if (sums_.ThreadAxis(*accumulators) >= 0) {
    Append(&body, CombineThreads(tile, state, &environment));
  } else if (accumulators->space == Space::kRegister && ResultsAreLong(*accumulators)) {
    // The sums go to memory, so that loops can run over them. Each thread needs only its own ones,
    // so they take no shared memory, which the whole tile may exceed.
    auto spilled = sums_.New(tile, state, Space::kScratch);
    Append(&body, nest_.Loops(tile, state, [&](State inner) {
      return sums_.Copy(inner, *accumulators, *spilled);
    }));
    environment.accumulators = spilled;
    Append(&body, StoreInLoops(ParallelOf(tile), std::move(state), environment));
    return body;
  }
  Append(&body, nest_.Loops(ParallelOf(tile), std::move(state),
                            [&](State inner) { return StoreResults(inner, environment); }));
  return body;
}

// Stores the results of sums in memory by loops. In blocks of threads, the innermost loops remain
// unrolled, as far as the code stays short: a thread then stores neighbours together.
Body StageBuilder::StoreInLoops(absl::Span<const int> axes, State state,
                                const Environment& environment) {
  size_t rolled = axes.size();
  int64_t operations = CountResultOperations();
  while (plan_.threads > 1 && rolled > 0) {
    const Axis& axis = plan_.axes[axes[rolled - 1]];
    if (axis.binding == Binding::kThread || axis.binding == Binding::kVector) break;
    operations *= axis.extent;
    if (operations > kResultOperationsMax) break;
    --rolled;
  }
  const bool was_rolled = std::exchange(state.rolled, true);
  return nest_.Loops(axes.subspan(0, rolled), std::move(state), [&](State outer) {
    outer.rolled = was_rolled || rolled == axes.size();
    return nest_.Loops(axes.subspan(rolled), std::move(outer),
                       [&](State inner) { return StoreResults(inner, environment); });
  });
}

std::vector<int> StageBuilder::ParallelOf(absl::Span<const int> tile) const {
  std::vector<int> parallel;
  for (const int axis : tile) {
    if (!plan_.axes[axis].reduce) parallel.push_back(axis);
  }
  return parallel;
}

// Combines the threads' parts of the sums in shared memory. Each reduction has its own loops, since
// there is a barrier between two of them.
Body StageBuilder::CombineThreads(absl::Span<const int> tile, State state,
                                  Environment* environment) {
  const std::shared_ptr<const Accumulators> from = environment->accumulators;
  environment->accumulators = sums_.NewTotals(tile, sums_.ThreadAxis(*from));
  state.rolled |= from->space != Space::kRegister;
  Body body;
  for (size_t i = 0; i < reduces().size(); ++i) {
    Append(&body, nest_.Loops(ParallelOf(tile), state, [&](State inner) {
      Body point;
      point.push_back(sums_.CombineThreads(i, inner, *from, *environment->accumulators));
      return point;
    }));
  }
  return body;
}

// Returns how many operations compute the results from one point's sums.
int64_t StageBuilder::CountResultOperations() const {
  std::vector<const Node*> roots;
  for (const kernel::Store& store : stage_.stores) roots.push_back(store.value);
  absl::flat_hash_set<const Node*> inside;
  for (const Node* reduce : reduces()) {
    for (const Node* node : ir::TopologicalOrder({&reduce, 1})) inside.insert(node);
  }
  int64_t operations = 0;
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (!inside.contains(node) && ir::IsFloat(node->dtype())) ++operations;
  }
  return operations;
}

// Returns whether the code after the sums, repeated for each of them, would be too long.
bool StageBuilder::ResultsAreLong(const Accumulators& sums) const {
  const int64_t operations_max =
      plan_.threads > 1 ? kThreadResultOperationsMax : kResultOperationsMax;
  return CountResultOperations() * program_.buffers[sums.buffers[0]].elements > operations_max;
}

Body StageBuilder::CarryTileInRegisters(absl::Span<const int> axes, State state,
                                        Environment environment) {
  const std::vector<int> tile = TileOf(axes);
  // Sums in memory would be loaded and stored in every step of the reduction. So the tile is in
  // registers while the reduce loops inside run.
  auto outer = environment.accumulators;
  auto registers = sums_.New(tile, state, Space::kRegister);
  environment.accumulators = registers;
  Body body =
      nest_.Loops(tile, state, [&](State inner) { return sums_.Copy(inner, *outer, *registers); });
  Append(&body, Compute(axes, state, environment));
  Append(&body, nest_.Loops(tile, std::move(state),
                            [&](State inner) { return sums_.Copy(inner, *registers, *outer); }));
  return body;
}

// Accumulates a block of a long sum from zero and adds it to the accumulators outside, so that no
// chain of additions is long.
Body StageBuilder::AddUpBlock(absl::Span<const int> axes, State state, Environment environment) {
  const std::vector<int> tile = TileOf(axes);
  const auto outer = environment.accumulators;
  const auto block = sums_.New(tile, state, FitsRegisters(tile) ? Space::kRegister : outer->space,
                               ++environment.depth);
  environment.accumulators = block;
  environment.block = axes[0];
  const bool was_rolled = state.rolled;
  const bool rolled = was_rolled || block->space != Space::kRegister;
  state.rolled = rolled;
  Body body =
      nest_.Loops(tile, state, [&](State inner) { return sums_.Initialise(inner, *block); });
  state.rolled = was_rolled;
  Append(&body, Compute(axes, state, environment));
  state.rolled = rolled;
  Append(&body, nest_.Loops(tile, std::move(state),
                            [&](State inner) { return sums_.Add(inner, *block, *outer); }));
  return body;
}

Body StageBuilder::Update(const State& state, const Environment& environment) {
  const Accumulators& accumulators = *environment.accumulators;
  kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
  for (const Node* condition : environment.held) memo[condition] = folder_.Bool(true);
  for (const StagedOperand& staged : environment.staged) {
    memo[staged.operand] = packer_.Load(staged, state);
  }
  Body body;
  for (size_t i = 0; i < reduces().size(); ++i) {
    Store store;
    store.buffer = accumulators.buffers[i];
    store.index = sums_.Index(accumulators, state);
    store.value = Combine(folder_.context(), reduces()[i]->attr<ir::ReduceAttr>().kind,
                          sums_.Load(accumulators, i, state),
                          placer_.Place(reduces()[i]->operand(0), state, &memo));
    // Lanes of parallel axes that are not real may add up anything, since their results are not
    // stored. Lanes along the reduction would add it to real sums.
    store.valid = placer_.LaneMasks(state, /*reduce_only=*/true);
    body.push_back(Statement{store});
  }
  Append(&body, Fetches(state));
  return body;
}

Body StageBuilder::StoreResults(const State& state, const Environment& environment) {
  kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
  if (environment.guarded) memo[guard_] = folder_.Bool(true);
  for (size_t i = 0; i < reduces().size(); ++i) {
    memo[reduces()[i]] = sums_.Total(i, state, *environment.accumulators);
  }
  Body body;
  for (const int number : store_order_) {
    const kernel::Store& from = stage_.stores[number];
    Store store;
    store.buffer = from.buffer;
    store.index = placer_.LocalIndex(from.buffer, placer_.Place(from.index, state, &memo), state);
    store.value = placer_.Place(from.value, state, &memo);
    store.valid = placer_.Place(from.valid, state, &memo);
    // Lanes that are not real must not reach memory; in a register they are harmless.
    if (program_.buffers[from.buffer].space != Space::kRegister) {
      store.valid = folder_.And(store.valid, placer_.LaneMasks(state, /*reduce_only=*/false));
      store.valid = folder_.And(store.valid, placer_.PaddingMasks(state, nullptr));
    }
    store.streaming = stage_plan_.stream;
    body.push_back(Statement{store});
  }
  if (reduces().empty()) Append(&body, Fetches(state));
  return body;
}

// Fetches only the first lane's elements: lanes along memory share a line.
Body StageBuilder::Fetches(State state) {
  if (const int vector = placer_.OpenVectorAxis(state); vector >= 0) {
    state.values[vector] = folder_.Int(0);
  }
  Body body;
  for (const PrefetchPlan& ahead : stage_plan_.prefetches) {
    absl::flat_hash_set<const Node*> done;
    for (const Node* from : IndicesOf(ahead.buffer)) {
      kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
      memo[ahead.range] = folder_.Add(memo[ahead.range], folder_.Int(ahead.steps));
      const Node* index = placer_.Place(from, state, &memo);
      if (done.insert(index).second) body.push_back(Statement{Fetch{ahead.buffer, index}});
    }
  }
  return body;
}

// Returns the indices at which the stage reads the buffer, except those that are themselves loaded.
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

}  // namespace kiln::schedule
