// The part of the table of ops that a client needs: how many operands an op takes, and its result's
// dtype. compiler/ops/op_def.h explains the rules; the daemon checks everything else.
#ifndef KILN_CLIENTS_CPP_OP_ROW_H_
#define KILN_CLIENTS_CPP_OP_ROW_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::internal {

enum class DTypeRule : uint8_t {
  kAttribute,
  kSame,
  kPromote,
  kPromoteFloat,
  kBool,
  kSecond,
  kInt64,
  kInt32,
  kUint32,
  kFloat32,
};

struct OpRow {
  std::string_view name;
  std::string_view operands;  // "x, weight, bias?"
  DTypeRule dtype_rule;
  int special_operand;  // not promoted, nor are those after it if it is the last; -1: none
};

// All rows; defined in the generated ops.cc.
absl::Span<const OpRow> OpRows();
// The version of the table that they come from.
uint32_t OpSetVersion();

// Returns null for an op that is not in the table.
const OpRow* FindRow(std::string_view op);

// Returns true if operand number `operand` takes part in promotion.
bool Promotes(const OpRow& row, size_t operand);

// Returns the result's dtype; kUnspecified if the operands are invalid, which the daemon will
// report.
DType ResultDType(const OpRow& row, absl::Span<const Value> operands, DType declared);

// Defined in the generated dtype.cc. Promote is the daemon's promotion (compiler/ops/promote.h);
// kUnspecified if two have no common dtype.
bool IsFloat(DType dtype);
DType Promote(DType a, DType b);

// Returns the dtype of a number beside a tensor of dtype `like`; see Operand.
DType WeakDType(const Number& number, DType like);

}  // namespace kiln::internal

#endif  // KILN_CLIENTS_CPP_OP_ROW_H_
