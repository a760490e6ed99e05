#include "compiler/partition/scatter/combine_segments.h"

#include <algorithm>
#include <vector>

#include "compiler/partition/scatter/sort_positions.h"
#include "compiler/partition/scatter/spread_scatter.h"

namespace kiln::partition {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ScatterMode;

namespace {

// Level 0 is the sorted positions. A piece, an element of level i + 1, covers kScatterPiece
// adjacent elements of level i: it combines those that are in the same segment as the first of
// them. A segment is split into one interval per level. Level 0's interval ends at the second
// boundary of pieces at or after its begin, or at the segment's end if that is earlier. Level 1's
// interval continues there and likewise ends at the second boundary of pieces of pieces, and so on.
// The last level is at most as long as an interval.
class SegmentCombiner {
 public:
  SegmentCombiner(ops::Builder& b, const ScatterLines& scatter)
      : b_(b),
        scatter_(scatter),
        keys_(SortPositions(b, scatter.index, scatter.destinations())),
        begins_(FindBegins(b, keys_, scatter.destinations())) {}

  const Node* TakeLast() {
    const Node* last = b_.Sub(Ends(), Int(1));
    const Node* is_hit = b_.Less(Begins(), Ends());
    const Node* position = PositionOf(b_, b_.GatherElements(keys_, last, 1));
    const Node* value = b_.GatherElements(scatter_.values, Column(position), 1);
    return b_.Where(Column(is_hit), value, scatter_.x);
  }

  const Node* Combine() {
    levels_ = {TermOf(b_, scatter_.mode, scatter_.values)};
    while (LengthOf(levels_.back()) > kIntervalMax) levels_.push_back(NextLevel());
    const Node* reduced = ReduceIntervals();
    return CombineInto(b_, scatter_.mode, scatter_.x, ValueOf(b_, scatter_.mode, reduced));
  }

 private:
  // Bound on the elements of an interval of one level.
  static constexpr int64_t kIntervalMax = 2 * kScatterPiece;

  struct Interval {
    const Node* begin;
    const Node* length;
  };

  const Node* Int(int64_t value) { return b_.ConstInt(DType::kInt64, value); }
  const Node* Minimum(const Node* x, const Node* y) { return b_.Binary(Op::kMin, x, y); }
  const Node* PiecesIn(const Node* length) {
    return b_.Binary(Op::kIDiv, b_.Add(length, Int(kScatterPiece - 1)), Int(kScatterPiece));
  }
  static int64_t LengthOf(const Node* level) { return level->shape()[1]; }
  // Adds a last dimension, to index rows, or for values that are the same for all columns.
  const Node* Column(const Node* x) { return b_.Unsqueeze(x, -1); }

  // The bounds of each destination's segment, [L, N].
  const Node* Begins() { return b_.Slice(begins_, 1, 0, scatter_.destinations()); }
  const Node* Ends() { return b_.Slice(begins_, 1, 1, scatter_.destinations() + 1); }

  // Returns the elements of a level at `index`, [L, …], where that is not negative: [L, …, C].
  const Node* At(size_t level, const Node* index) {
    ir::Shape shape = index->shape();
    const Node* flat = b_.Reshape(index, {shape[0], ir::NumElements(shape) / shape[0]});
    if (level == 0) {
      const Node* position = PositionOf(b_, b_.GatherElements(keys_, flat, 1));
      flat = b_.Where(b_.Less(flat, Int(0)), flat, position);
    }
    shape.push_back(scatter_.columns());
    return b_.Reshape(b_.GatherElements(levels_[level], Column(flat), 1), shape);
  }

  // Reduces those terms along axis 2, the one before the last, for which `counts` is true.
  const Node* Reduce(const Node* counts, const Node* terms) {
    const Node* neutral = NeutralTerm(b_, scatter_.mode, terms->dtype());
    return ReduceTerms(b_, scatter_.mode, b_.Where(Column(counts), terms, neutral), 2);
  }

  const Node* NextLevel() {
    const size_t level = levels_.size() - 1;
    const int64_t pieces = (LengthOf(levels_.back()) + kScatterPiece - 1) / kScatterPiece;
    int64_t positions = kScatterPiece;  // of one piece
    for (size_t i = 0; i < level; ++i) positions *= kScatterPiece;
    const Node* piece = b_.Iota(DType::kInt64, {1, pieces}, 1);
    const Node* first = b_.Expand(b_.Mul(piece, Int(positions)), {scatter_.lines(), pieces});
    const Node* destination = DestinationOf(b_, b_.GatherElements(keys_, first, 1));
    // For the invalid destination N the end is out of range and reads 0, so its pieces are empty.
    const Node* end = b_.GatherElements(begins_, b_.Add(destination, Int(1)), 1);
    for (size_t i = 0; i < level; ++i) end = PiecesIn(end);
    const Node* place = b_.Add(b_.Mul(Column(piece), Int(kScatterPiece)),
                               b_.Iota(DType::kInt64, {1, 1, kScatterPiece}, 2));
    const Node* counts = b_.Less(place, Column(end));
    return b_.Contiguous(Reduce(counts, At(level, b_.Where(counts, place, Int(-1)))));
  }

  std::vector<Interval> FindIntervals() {
    std::vector<Interval> intervals;
    const Node* begin = Begins();
    const Node* end = Ends();
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (level + 1 == levels_.size()) {
        intervals.push_back({begin, b_.Binary(Op::kMax, b_.Sub(end, begin), Int(0))});
        break;
      }
      const Node* next =
          b_.Binary(Op::kIDiv, b_.Add(begin, Int(2 * kScatterPiece - 1)), Int(kScatterPiece));
      const Node* stop = Minimum(end, b_.Mul(next, Int(kScatterPiece)));
      intervals.push_back({begin, b_.Binary(Op::kMax, b_.Sub(stop, begin), Int(0))});
      begin = next;
      end = PiecesIn(end);
    }
    return intervals;
  }

  // Reduces the intervals of all levels in one reduction, whose length is the sum of theirs.
  const Node* ReduceIntervals() {
    int64_t length_max = 0;
    for (const Node* level : levels_) length_max += std::min(LengthOf(level), kIntervalMax);
    const Node* number = b_.Iota(DType::kInt64, {1, 1, length_max}, 2);
    const std::vector<Interval> intervals = FindIntervals();
    const Node* before = Int(0);
    const Node* terms = nullptr;
    for (size_t level = 0; level < levels_.size(); ++level) {
      const Node* begin = Column(intervals[level].begin);
      const Node* all = b_.Add(before, Column(intervals[level].length));
      const Node* is_here = b_.Less(number, all);
      const Node* place = b_.Add(begin, b_.Sub(number, before));
      if (level > 0) is_here = b_.Binary(Op::kAnd, b_.Not(b_.Less(number, before)), is_here);
      const Node* here = At(level, b_.Where(is_here, place, Int(-1)));
      terms = terms == nullptr ? here : b_.Where(Column(is_here), here, terms);
      before = all;
    }
    return Reduce(b_.Less(number, before), terms);
  }

  ops::Builder& b_;
  const ScatterLines& scatter_;
  const Node* const keys_;    // [L, S]
  const Node* const begins_;  // [L, N + 1]
  std::vector<const Node*> levels_;
};

}  // namespace

const Node* CombineSegments(ops::Builder& b, const ScatterLines& scatter) {
  SegmentCombiner combiner(b, scatter);
  return scatter.mode == ScatterMode::kSet ? combiner.TakeLast() : combiner.Combine();
}

}  // namespace kiln::partition
