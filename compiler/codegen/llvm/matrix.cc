#include "compiler/codegen/llvm/matrix.h"

#include <utility>

#include "compiler/kernel/index_sum.h"

namespace kiln::codegen {

using ir::Node;
using llvm::Value;
using schedule::MatrixStep;

namespace {

// Numbers that no schedule gives to a range.
constexpr int64_t kFirstRange = (int64_t{1} << 41);
// Elements of a line of 16 bytes.
constexpr int64_t kLine = 8;

int BufferOf(const Node* load) { return static_cast<int>(load->attr<ir::IntAttr>().value); }

}  // namespace

MatrixEmitter::MatrixEmitter(llvm::IRBuilder<>& builder, ExpressionEmitter& expressions,
                             kernel::ExpressionFolder& folder, Value* thread)
    : builder_(builder),
      expressions_(expressions),
      folder_(folder),
      eighth_(folder.Range(kFirstRange, 8)),
      pair_(folder.Range(kFirstRange + 1, 2)),
      half_(folder.Range(kFirstRange + 2, 2)) {
  const auto bind = [&](const Node* range, int shift, uint32_t mask) {
    Value* digit = builder.CreateAnd(builder.CreateLShr(thread, shift), builder.getInt32(mask));
    expressions.BindRange(range, builder.CreateZExt(digit, builder.getInt64Ty()));
  };
  bind(eighth_, 0, 7);
  bind(pair_, 3, 1);
  bind(half_, 4, 1);
}

const Node* MatrixEmitter::Replace(const Node* node, const Constants& constants,
                                   const Values& values) {
  kernel::ExpressionFolder::Map memo(constants.begin(), constants.end());
  for (const auto& [range, value] : values) memo[range] = value;
  return folder_.Substitute(node, &memo);
}

MatrixEmitter::Lines MatrixEmitter::LinesOf(const Node* index, const Node* along, const Node* pair,
                                            const Node* terms) const {
  const kernel::Sum sum = kernel::SumOf(index);
  const int64_t of_terms = sum.Coefficient(terms);
  const int64_t of_along = sum.Coefficient(along);
  const auto are_lines = [&](const Node* line) {
    if (sum.constant % kLine != 0) return false;
    for (const auto& [atom, coefficient] : sum.terms) {
      // Neighbours along the line. For columns, `pair` counts in steps of the two that a thread
      // has.
      if (atom == line || (atom == pair && line == along && coefficient == 2)) continue;
      if (coefficient % kLine != 0) return false;
    }
    return true;
  };
  if (of_terms == 1 && are_lines(terms)) return Lines::kAlongTerms;
  if (of_along == 1 && are_lines(along)) return Lines::kAcrossTerms;
  return Lines::kNeither;
}

bool MatrixEmitter::Emit(const MatrixStep& step, const Node* group, const Node* member,
                         const Constants& constants) {
  if (step.dtype != ir::DType::kFloat32) {
    const Node* plain[2];
    for (int i : {0, 1}) plain[i] = Replace(step.factor[i]->operand(0), constants, {});
    if (LinesOf(plain[0], group, nullptr, step.terms) == Lines::kNeither ||
        LinesOf(plain[1], step.columns, member, step.terms) == Lines::kNeither) {
      return false;
    }
  }
  if (block_ != builder_.GetInsertBlock()) Forget();
  block_ = builder_.GetInsertBlock();
  const MatrixA a = LoadRows(step, group, member, constants);
  const MatrixB b = LoadColumns(step, group, member, constants);
  MatrixC sums;
  int64_t slots[4];
  for (int i = 0; i < 4; ++i) {
    slots[i] = expressions_.SlotOf(
        Replace(step.index, constants,
                {{step.rows, folder_.Int(i / 2)}, {step.columns, folder_.Int(i % 2)}}));
    sums[i] = expressions_.slots()[step.sums][slots[i]];
  }
  sums = EmitMatrixProduct(builder_, step.dtype, a, b, sums);
  for (int i = 0; i < 4; ++i) expressions_.SetSlot(step.sums, slots[i], sums[i]);
  return true;
}

MatrixA MatrixEmitter::LoadRows(const MatrixStep& step, const Node* group, const Node* member,
                                const Constants& constants) {
  const Node* load = step.factor[0];
  const auto at = [&](const Values& values) { return Replace(load, constants, values); };
  const Node* key = at({});
  if (const auto known = fragments_.find({key, false}); known != fragments_.end()) {
    return known->second;
  }
  MatrixA a;
  if (step.dtype == ir::DType::kFloat32) {
    for (int i = 0; i < 4; ++i) {
      const Node* element = at({{step.rows, folder_.Int(i % 2)},
                                {step.terms, folder_.Add(member, folder_.Int(i / 2 * 4))}});
      a[i] = builder_.CreateBitCast(expressions_.Emit(element), builder_.getInt32Ty());
    }
  } else {
    // Matrices 0 and 1 are the halves of the rows for the first 8 terms, 2 and 3 for the others.
    const bool across = LinesOf(key->operand(0), group, nullptr, step.terms) == Lines::kAcrossTerms;
    const Node* first = folder_.Mul(half_, 8);
    const Node* line = across ? at({{step.rows, pair_},
                                    {group, folder_.Int(0)},
                                    {step.terms, folder_.Add(first, eighth_)}})
                              : at({{step.rows, pair_}, {group, eighth_}, {step.terms, first}});
    a = EmitLoadMatrices4(builder_, expressions_.Pointer(BufferOf(load), line->operand(0)), across);
  }
  return fragments_[{key, false}] = a;
}

MatrixB MatrixEmitter::LoadColumns(const MatrixStep& step, const Node* group, const Node* member,
                                   const Constants& constants) {
  const Node* load = step.factor[1];
  const auto at = [&](const Values& values) { return Replace(load, constants, values); };
  const Node* key = at({});
  if (const auto known = fragments_.find({key, true}); known != fragments_.end()) {
    return {known->second[0], known->second[1]};
  }
  // Replaces the column 2 * member + columns by another one.
  const auto column = [&](const Node* wanted) {
    return std::pair(step.columns, folder_.Add(wanted, folder_.Mul(member, -2)));
  };
  MatrixB b;
  if (step.dtype == ir::DType::kFloat32) {
    for (int i = 0; i < 2; ++i) {
      const Node* element =
          at({column(group), {step.terms, folder_.Add(member, folder_.Int(i * 4))}});
      b[i] = builder_.CreateBitCast(expressions_.Emit(element), builder_.getInt32Ty());
    }
  } else {
    const bool across =
        LinesOf(key->operand(0), step.columns, member, step.terms) == Lines::kAcrossTerms;
    const Node* first = folder_.Mul(pair_, 8);
    const Node* line = across
                           ? at({column(folder_.Int(0)), {step.terms, folder_.Add(first, eighth_)}})
                           : at({column(eighth_), {step.terms, first}});
    b = EmitLoadMatrices2(builder_, expressions_.Pointer(BufferOf(load), line->operand(0)), across);
  }
  fragments_[{key, true}] = {b[0], b[1], nullptr, nullptr};
  return b;
}

}  // namespace kiln::codegen
