// Copies of a factor by all threads of a block: the positions of a dimension are distributed over
// the threads that differ in one digit of their number, with a constant stride.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "compiler/schedule/apply/operand_packer.h"

namespace kiln::schedule {

using ir::Node;

namespace {

constexpr int64_t kUnrolledCopies = 8;

}  // namespace

// For a dimension: how many threads share it, which digit of their number that is, and how many
// elements each copies at once.
struct OperandPacker::ThreadDigit {
  StagedOperand::Dimension dimension;
  int64_t places = 1;
  int64_t stride = 1;
  int64_t lanes = 1;
};

// Returns whether the last dimension runs along memory, in whole vectors of the staged lanes.
// Padded rows may begin at any address, so they are not copied in vectors.
bool OperandPacker::CopiesVectors(const StagedOperand& staged, const State& state) {
  if (staged.lanes == 1) return false;
  for (const StagedOperand::Term& term : staged.dimensions.back().terms) {
    int axis = term.part;
    while (plan_.axes[axis].parent >= 0) axis = plan_.axes[axis].parent;
    if (plan_.axes[axis].padded_from % staged.lanes != 0) return false;
  }
  const Extent extent = DimensionExtent(staged.dimensions.back(), state);
  if (!extent.constant() || extent.full % staged.lanes != 0) return false;
  const std::vector<int64_t> steps = SourceSteps(staged, state);
  return !steps.empty() && steps.back() == 1;
}

// Returns the loops of threads, the digit with the largest stride outermost. Adjacent threads
// should read adjacent memory, so the last digit belongs to the dimension that runs along memory.
std::vector<OperandPacker::ThreadDigit> OperandPacker::ThreadDigits(const StagedOperand& staged,
                                                                    const State& state) {
  std::vector<ThreadDigit> digits;
  for (const StagedOperand::Dimension& dimension : staged.dimensions) {
    digits.push_back({dimension});
  }
  if (CopiesVectors(staged, state)) digits.back().lanes = staged.lanes;
  const std::vector<int64_t> steps = SourceSteps(staged, state);
  auto is_nearer = [&steps](size_t a, size_t b) {
    // A dimension along which the address does not change has no neighbours.
    const int64_t far = int64_t{1} << 62;
    const int64_t of_a = steps.empty() || steps[a] == 0 ? far : std::abs(steps[a]);
    const int64_t of_b = steps.empty() || steps[b] == 0 ? far : std::abs(steps[b]);
    return of_a != of_b ? of_a < of_b : a > b;
  };
  std::vector<size_t> order(digits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), is_nearer);
  int64_t stride = 1;
  for (const size_t i : order) {
    const Extent extent = DimensionExtent(digits[i].dimension, state);
    const int64_t count = std::max(extent.full, extent.last) / digits[i].lanes;
    int64_t places = 1;
    while (places < count && places * 2 * stride <= plan_.threads) {
      places *= 2;
    }
    digits[i].places = places;
    digits[i].stride = stride;
    stride *= places;
  }
  std::stable_sort(digits.begin(), digits.end(), [](const ThreadDigit& a, const ThreadDigit& b) {
    const int64_t of_a = a.places > 1 ? a.stride : 0;
    const int64_t of_b = b.places > 1 ? b.stride : 0;
    return of_a > of_b;
  });
  return digits;
}

Body OperandPacker::PackByThreads(const StagedOperand& staged, const State& state) {
  return PackDigits(staged, ThreadDigits(staged, state), state, folder_.Int(0), nullptr);
}

// Packs one element or, if `vector` is not null, the vector of the last dimension that begins
// there.
Body OperandPacker::PackPoint(const StagedOperand& staged, const State& state, const Node* index,
                              const Node* vector) {
  State inner = state;
  Loop lanes;
  if (vector != nullptr) {
    lanes.kind = LoopKind::kVector;
    lanes.range = nest_.NewRange(staged.lanes);
    FixDimension(staged.dimensions.back(), folder_.Add(vector, lanes.range), &inner);
    index = folder_.Add(index, lanes.range);
  }
  kernel::ExpressionFolder::Map memo = placer_.RangeValues(inner);
  Store store;
  store.buffer = staged.buffer;
  store.index = index;
  store.value = placer_.Place(staged.operand, inner, &memo);
  Body body;
  body.push_back(Statement{store});
  if (vector == nullptr) return body;
  lanes.body = std::move(body);
  Body loop;
  loop.push_back(Statement{std::move(lanes)});
  return loop;
}

Body OperandPacker::PackDigits(const StagedOperand& staged, absl::Span<const ThreadDigit> digits,
                               const State& state, const Node* index, const Node* vector) {
  if (digits.empty()) return PackPoint(staged, state, index, vector);
  const ThreadDigit& digit = digits[0];
  Extent extent = DimensionExtent(digit.dimension, state);
  // Lanes are 1 unless the extent is a constant.
  extent.full /= digit.lanes;
  extent.last /= digit.lanes;
  auto inside = [&](const Node* place) {
    State inner = state;
    const Node* element = folder_.Mul(place, digit.lanes);
    FixDimension(digit.dimension, element, &inner);
    return PackDigits(staged, digits.subspan(1), inner,
                      folder_.Add(index, folder_.Mul(element, digit.dimension.stride)),
                      digit.lanes > 1 ? element : vector);
  };
  if (digit.places == 1) return CountLoop(extent, inside);
  const int64_t extent_max = std::max(extent.full, extent.last);
  Loop threads;
  threads.kind = LoopKind::kThread;
  threads.range = nest_.NewRange(std::min(digit.places, extent_max));
  threads.stride = digit.stride;
  threads.places = digit.places;
  if (extent_max <= digit.places) {
    if (!extent.constant()) threads.extent = nest_.Count(extent);
    threads.body = inside(threads.range);
  } else {
    threads.body = EachSoMany(extent, digit.places, threads.range, inside);
  }
  Body body;
  body.push_back(Statement{std::move(threads)});
  return body;
}

// Visits the positions first, first + step, first + 2 * step, … of an extent.
Body OperandPacker::EachSoMany(const Extent& extent, int64_t step, const Node* first,
                               const std::function<Body(const Node*)>& inside) {
  Loop loop;
  loop.range = nest_.NewRange((std::max(extent.full, extent.last) + step - 1) / step);
  // Unrolled, so that several copies are in flight at once; a loop would wait for each.
  const bool few = extent.constant() && ir::ExtentOf(loop.range) <= kUnrolledCopies;
  if (few && extent.full % step == 0) loop.kind = LoopKind::kUnrolled;
  if (!extent.constant() || extent.full % step != 0) {
    const Node* whole = extent.constant() ? folder_.Int(extent.full) : nest_.Count(extent);
    const Node* rest =
        folder_.Add(folder_.Add(whole, folder_.Mul(first, -1)), folder_.Int(step - 1));
    loop.extent =
        folder_.context().Get(ir::Op::kIDiv, ir::DType::kInt64, {}, {rest, folder_.Int(step)});
  }
  loop.body = inside(folder_.Add(folder_.Mul(loop.range, step), first));
  Body body;
  body.push_back(Statement{std::move(loop)});
  return body;
}

}  // namespace kiln::schedule
