// The table of ops as far as a client needs it: how many operands an op takes, and its result's
// dtype. compiler/ops/op_def.h explains the rules, and the daemon checks everything else.
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
  int special_operand;  // takes no part in promotion, nor do those after it if it is the last; -1
};

// All rows; generated into ops.cc.
absl::Span<const OpRow> OpRows();
// The version of the table they are from.
uint32_t OpSetVersion();

// Null of an op that the table did not have.
const OpRow* FindRow(std::string_view op);

// Whether operand number `operand` takes part in promotion.
bool Promotes(const OpRow& row, size_t operand);

// The result's dtype; kUnspecified where the operands are a mistake, which the daemon will name.
DType ResultDType(const OpRow& row, absl::Span<const Value> operands, DType declared);

// The Python array API's promotion, completed; kUnspecified where there is none.
DType Promote(DType a, DType b);

// The dtype of a number beside a tensor of dtype `like`; see Operand.
DType WeakDType(const Number& number, DType like);

}  // namespace kiln::internal

#endif  // KILN_CLIENTS_CPP_OP_ROW_H_
