#include "compiler/search/stage_chooser.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/ir/walk.h"
#include "compiler/schedule/linear.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/contraction_chooser.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;
using schedule::Binding;

// Below so many element operations one task is enough.
constexpr int64_t kSmallWork = 20000;
// Element operations that a task should have at least.
constexpr int64_t kTaskWork = 16384;

std::vector<const Node*> Roots(const kernel::Stage& stage) {
  std::vector<const Node*> roots;
  for (const kernel::Store& store : stage.stores) {
    for (const Node* root : {store.value, store.index, store.valid}) {
      if (root != nullptr) roots.push_back(root);
    }
  }
  return roots;
}

int64_t Product(const AxisBook& book, const std::vector<int>& axes) {
  int64_t product = 1;
  for (int axis : axes) product *= book.extent(axis);
  return product;
}

// Elements of the widest dtype that the stage computes with in one vector. Indices do not count.
int VectorLanes(const kernel::Kernel& kernel, const kernel::Stage& stage,
                const drivers::Target& target) {
  int widest = 1;
  for (const kernel::Store& store : stage.stores) {
    const Node* value = store.value;
    widest = std::max(widest, ir::SizeOf(value->dtype()));
    for (const Node* node : ir::TopologicalOrder({&value, 1})) {
      if (node->op() == Op::kLoad) widest = std::max(widest, ir::SizeOf(node->dtype()));
    }
  }
  (void)kernel;
  return std::max(target.vector_bytes / std::max(widest, 4), 1);
}

// How well lanes suit a range: accesses that become whole vectors count for it, gathers against it,
// loads that a shuffle can put in order a little.
struct Strides {
  int unit = 0;
  int near = 0;
  int far = 0;
  int score() const { return 2 * unit - near - 4 * far; }
};

// Whether the atom is an idiv or mod of a sum in which the range stands once, plainly.
bool IsDigitOf(const Node* atom, const Node* range) {
  return (atom->op() == Op::kIDiv || atom->op() == Op::kMod) &&
         schedule::Linearise(atom->operand(0)).Coefficient(range) == 1;
}

void Count(const Node* index, const Node* range, int weight, Strides* strides) {
  const schedule::Linear linear = schedule::Linearise(index);
  const int64_t step = std::abs(linear.Coefficient(range));
  bool near = step == 2;
  bool far = step > 2;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (atom == range || !schedule::DependsOn(atom, range)) continue;
    (IsDigitOf(atom, range) && coefficient == 1 ? near : far) = true;
  }
  if (far) {
    strides->far += weight;
  } else if (near) {
    strides->near += weight;
  } else if (step == 1) {
    strides->unit += weight;
  }
}

Strides StridesOf(const kernel::Stage& stage, const Node* range) {
  Strides strides;
  for (const kernel::Store& store : stage.stores) Count(store.index, range, 2, &strides);
  for (const Node* node : ir::TopologicalOrder(Roots(stage))) {
    if (node->op() == Op::kLoad) Count(node->operand(0), range, 1, &strides);
  }
  return strides;
}

// The axis to bind to lanes, or -1.
int BestVectorAxis(const kernel::Stage& stage, const AxisBook& book, const std::vector<int>& axes,
                   int lanes) {
  int best = -1;
  int best_score = 0;
  for (int axis : axes) {
    if (book.extent(axis) < 2) continue;
    int score = StridesOf(stage, book[axis].range).score();
    if (book.extent(axis) < lanes) score -= 1;
    if (score >= best_score) {
      best = axis;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

void ChooseGrid(const kernel::Kernel& kernel, const drivers::Target& target, AxisBook* book) {
  (void)target;
  std::vector<int> axes = book->FuseAll(book->grid());
  int64_t work = Product(*book, axes);
  int64_t inner = 1;
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    inner += Product(*book, book->ranges(static_cast<int>(i))) *
             Product(*book, book->reduce_ranges(static_cast<int>(i)));
  }
  if (work * inner >= kSmallWork) {
    for (int axis : axes) book->Bind(axis, Binding::kTask);
  }
  if (!axes.empty()) book->Order(-1, axes);
}

void ChooseStage(const kernel::Kernel& kernel, int number, const drivers::Target& target,
                 AxisBook* book) {
  const kernel::Stage& stage = kernel.stages[number];
  const bool shared = schedule::SharesGrid(kernel);
  std::vector<int> parallel = book->ranges(number);
  if (!shared) parallel.insert(parallel.begin(), book->grid().begin(), book->grid().end());
  parallel = book->FuseAll(parallel);
  std::vector<int> reduce = book->FuseAll(book->reduce_ranges(number));
  if (!shared && ChooseContraction(kernel, number, parallel, reduce, target, book)) return;
  const int64_t work = Product(*book, parallel) * Product(*book, reduce);
  const int lanes = VectorLanes(kernel, stage, target);

  std::vector<int> candidates = parallel;
  candidates.insert(candidates.end(), reduce.begin(), reduce.end());
  const int vector = lanes > 1 ? BestVectorAxis(stage, *book, candidates, lanes) : -1;

  std::vector<int> order;
  bool tasks = !shared && work >= kSmallWork;
  for (int axis : parallel) {
    if (axis == vector) continue;
    if (tasks) book->Bind(axis, Binding::kTask);
    order.push_back(axis);
  }
  int vector_outer = -1;
  if (vector >= 0) {
    const bool is_reduce = std::find(reduce.begin(), reduce.end(), vector) != reduce.end();
    int rest = vector;
    if (tasks && !is_reduce && order.empty() && book->extent(vector) > kTaskWork) {
      const auto [task, chunk] = book->Split(vector, kTaskWork);
      book->Bind(task, Binding::kTask);
      order.push_back(task);
      rest = chunk;
    }
    const auto [outer, lane_block] = book->Split(rest, lanes * (is_reduce ? 4 : 1));
    vector_outer = outer;
    int lane = lane_block;
    int unroll = -1;
    if (is_reduce) {
      const auto [copies, lanes_axis] = book->Split(lane_block, lanes);
      unroll = copies;
      lane = lanes_axis;
      book->Bind(unroll, Binding::kUnroll);
      book->Partial(unroll);
    }
    book->Bind(lane, Binding::kVector);
    if (!is_reduce) {
      order.push_back(outer);
      order.push_back(lane);
      for (int axis : reduce) order.push_back(axis);
    } else {
      for (int axis : reduce) {
        if (axis != vector) order.push_back(axis);
      }
      order.push_back(outer);
      order.push_back(unroll);
      order.push_back(lane);
    }
  } else {
    for (int axis : reduce) order.push_back(axis);
  }
  (void)vector_outer;
  if (!order.empty()) book->Order(number, order);
}

}  // namespace kiln::search
