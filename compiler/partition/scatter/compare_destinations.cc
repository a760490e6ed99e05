#include "compiler/partition/scatter/compare_destinations.h"

#include <vector>

namespace kiln::partition {

using ir::DType;
using ir::Node;
using ir::ScatterMode;

namespace {

constexpr int64_t kComparedPiece = 512;

// Returns the extents of pieces, of pieces of pieces, and so on; the first extent is the rest.
std::vector<int64_t> CutPositions(int64_t positions) {
  std::vector<int64_t> extents;
  for (; positions > kComparedPiece;
       positions = (positions + kComparedPiece - 1) / kComparedPiece) {
    extents.push_back(kComparedPiece);
  }
  extents.push_back(positions);
  return {extents.rbegin(), extents.rend()};
}

// Splits axis 2 of (lines, 1, positions, columns) into pieces, padded with zeros.
const Node* InPieces(ops::Builder& b, const Node* x, const std::vector<int64_t>& extents) {
  ir::Shape shape = x->shape();
  const int64_t padded = ir::NumElements(extents);
  x = b.Pad(x, {0, 0, 0, 0, 0, padded - shape[2], 0, 0});
  shape.erase(shape.begin() + 2);
  shape.insert(shape.begin() + 2, extents.begin(), extents.end());
  return b.Reshape(x, shape);
}

// Numbers destinations from 1; 0 means none, which is also the value of the padding.
const Node* NumbersOf(ops::Builder& b, const Node* index, int64_t destinations) {
  const auto whole = [&](int64_t number) { return b.ConstInt(DType::kInt64, number); };
  const Node* inside =
      b.Binary(ir::Op::kAnd, b.Less(whole(-1), index), b.Less(index, whole(destinations)));
  return b.Cast(b.Where(inside, b.Add(index, whole(1)), whole(0)), DType::kInt32);
}

// Reduces, for each destination n, those of `terms`, [L, P, C], whose index is n.
const Node* ReduceWhereEqual(ops::Builder& b, ScatterMode mode, const Node* index,
                             const Node* terms, int64_t destinations) {
  const int64_t lines = index->shape()[0];
  const int64_t positions = index->shape()[1];
  const int64_t columns = terms->shape()[2];
  const std::vector<int64_t> extents = CutPositions(positions);
  const Node* numbers = b.Reshape(NumbersOf(b, index, destinations), {lines, 1, positions, 1});
  // Materialised, since every destination compares with it.
  const Node* named = b.Contiguous(InPieces(b, numbers, extents));
  ir::Shape along(named->shape().size(), 1);
  along[1] = destinations;
  const Node* own = b.Add(b.Iota(DType::kInt32, along, 1), b.ConstInt(DType::kInt32, 1));
  const Node* cut = InPieces(b, b.Reshape(terms, {lines, 1, positions, columns}), extents);
  const Node* result = b.Where(b.Equal(named, own), cut, NeutralTerm(b, mode, terms->dtype()));
  for (size_t i = extents.size(); i-- > 0;) {
    result = ReduceTerms(b, mode, result, static_cast<int64_t>(i) + 2);
  }
  return result;
}

// The last position of each destination wins.
const Node* TakeLast(ops::Builder& b, const ScatterLines& scatter) {
  const int64_t lines = scatter.lines();
  const Node* position = b.Expand(b.Iota(DType::kInt64, {1, scatter.positions(), 1}, 1),
                                  {lines, scatter.positions(), 1});
  const Node* last = b.Contiguous(
      ReduceWhereEqual(b, ScatterMode::kMax, scatter.index, position, scatter.destinations()));
  const Node* is_hit = b.Less(b.ConstInt(DType::kInt64, -1), last);
  return b.Where(is_hit, b.GatherElements(scatter.values, last, 1), scatter.x);
}

}  // namespace

const Node* CompareDestinations(ops::Builder& b, const ScatterLines& scatter) {
  if (scatter.mode == ScatterMode::kSet) return TakeLast(b, scatter);
  const Node* terms = TermOf(b, scatter.mode, scatter.values);
  const Node* reduced =
      ReduceWhereEqual(b, scatter.mode, scatter.index, terms, scatter.destinations());
  return CombineInto(b, scatter.mode, scatter.x, ValueOf(b, scatter.mode, reduced));
}

}  // namespace kiln::partition
