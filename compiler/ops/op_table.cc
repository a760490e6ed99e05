#include <array>
#include <cassert>
#include <iterator>

#include "compiler/ops/op_def.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/rule_text.h"
#include "proto/check/check.h"

namespace kiln::ops {
namespace {

void Append(std::vector<OpDef>& rows, std::vector<OpDef> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// Listed explicitly: self-registering rows would come in an order that depends on the linker.
std::vector<OpDef> MakeRows() {
  std::vector<OpDef> rows;
  Append(rows, ElementwiseOps());
  Append(rows, ReduceOps());
  Append(rows, MovementOps());
  Append(rows, IndexedOps());
  Append(rows, SourceOps());
  Append(rows, StructureOps());
  Append(rows, MathComposites());
  Append(rows, ExponentialComposites());
  Append(rows, TrigonometricComposites());
  Append(rows, SpecialComposites());
  Append(rows, NumberComposites());
  Append(rows, LogicComposites());
  Append(rows, ActivationComposites());
  Append(rows, PiecewiseComposites());
  Append(rows, StatisticsComposites());
  Append(rows, LinearComposites());
  Append(rows, AttentionComposites());
  Append(rows, ConvolutionComposites());
  Append(rows, PoolComposites());
  Append(rows, ResizeComposites());
  Append(rows, BorderComposites());
  Append(rows, FoldComposites());
  Append(rows, NormalizationComposites());
  Append(rows, DistanceComposites());
  Append(rows, LossComposites());
  Append(rows, LabelLossComposites());
  Append(rows, RowLossComposites());
  Append(rows, ArrangeComposites());
  Append(rows, RandomComposites());
  Append(rows, DropoutComposites());
  Append(rows, IndexedComposites());
  Append(rows, CumulativeComposites());
  Append(rows, SortComposites());
  Append(rows, MatrixComposites());
  Append(rows, EinsumComposites());
  Append(rows, FactorizationComposites());
  return rows;
}

using Programs = absl::flat_hash_map<std::string_view, std::shared_ptr<const RuleProgram>>;

// Parses the rules of a row; `known` has the programs of the rows before it.
void AddPrograms(OpDef& row, Programs& known) {
  std::vector<Rule> rules = {row.shape_rule};
  rules.insert(rules.end(), row.constraints.begin(), row.constraints.end());
  for (const Rule& rule : rules) {
    // A name identifies one text, so rows that share a rule share its program.
    std::shared_ptr<const RuleProgram>& program = known[rule.name];
    if (program == nullptr) program = std::make_shared<RuleProgram>(ParseRule(rule).value());
    row.programs.push_back(program);
  }
}

struct Table {
  std::vector<OpDef> rows = MakeRows();
  absl::flat_hash_map<std::string, const OpDef*> by_name;
  std::array<const OpDef*, ir::kNumOps> by_op{};

  Table() {
    Programs programs;
    for (OpDef& row : rows) {
      AddPrograms(row, programs);
      const bool is_new = by_name.emplace(std::string(row.name), &row).second;
      KILN_CHECK(is_new) << "two ops are called " << row.name;
      // Composites have no ir::Op.
      if (row.kind == Kind::kComposite) continue;
      const OpDef*& of_op = by_op[static_cast<int>(row.op)];
      KILN_CHECK(of_op == nullptr) << of_op->name << " and " << row.name << " are one op";
      of_op = &row;
    }
    // As much work as building it.
    KILN_VALIDATE(*this, 1);
  }

  // Checks that both indexes are the inverse of the rows.
  void Validate() const {
    KILN_CHECK_EQ(by_name.size(), rows.size());
    for (const OpDef& row : rows) {
      const auto found = by_name.find(std::string(row.name));
      KILN_CHECK(found != by_name.end() && found->second == &row) << row.name;
      KILN_CHECK_EQ(row.programs.size(), 1 + row.constraints.size()) << row.name;
      if (row.kind != Kind::kComposite)
        KILN_CHECK(by_op[static_cast<int>(row.op)] == &row) << row.name;
    }
    for (const OpDef* row : by_op) KILN_CHECK(row == nullptr || row->kind != Kind::kComposite);
  }
};

const Table& TheTable() {
  // Never destroyed, so that it outlives every thread that uses it.
  static const Table& table = *new Table;
  return table;
}

}  // namespace

absl::Span<const OpDef> AllOps() { return TheTable().rows; }

const OpDef* FindOp(std::string_view name) {
  const auto found = TheTable().by_name.find(std::string(name));
  return found == TheTable().by_name.end() ? nullptr : found->second;
}

const OpDef& DefOf(ir::Op op) {
  const OpDef* row = TheTable().by_op[static_cast<int>(op)];
  KILN_CHECK(row != nullptr) << ir::Name(op) << " is not a tensor-level op";
  return *row;
}

bool IsSpecial(const OpDef& op, size_t operand) {
  if (op.special_operand < 0) return false;
  const auto special = static_cast<size_t>(op.special_operand);
  const bool any_number = op.operands[special].back() == '*';
  return operand == special || (any_number && operand > special);
}

std::string_view Name(DTypeRule rule) {
  static constexpr std::string_view kNames[] = {"attribute", "same",   "promote", "promote_float",
                                                "bool",      "second", "int64",   "int32",
                                                "uint32",    "float32"};
  static_assert(std::size(kNames) == static_cast<size_t>(DTypeRule::kFloat32) + 1);
  return kNames[static_cast<int>(rule)];
}

std::string_view Name(DTypeClass dtype_class) {
  static constexpr std::string_view kNames[] = {
      "any", "numeric", "float", "integer", "integer_or_bool", "bool", "float_or_bool", "uint32"};
  static_assert(std::size(kNames) == static_cast<size_t>(DTypeClass::kUInt32) + 1);
  return kNames[static_cast<int>(dtype_class)];
}

}  // namespace kiln::ops
