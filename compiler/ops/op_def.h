// The table of ops: one row per op that a client may send, primitive or composite. It is the single
// source of shape rules, attributes, gradients and reference semantics; the client bindings and the
// op documentation are generated from it.
#ifndef KILN_COMPILER_OPS_OP_DEF_H_
#define KILN_COMPILER_OPS_OP_DEF_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ops {

// Grows by one with every op or attribute added. A daemon accepts clients with this version or an
// older one.
inline constexpr int kOpSetVersion = 5;

// A wire attribute's value, free of protobuf.
using AttributeValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;
using Attributes = absl::flat_hash_map<std::string, AttributeValue>;

struct AttributeDef {
  std::string_view name;
  // kNumber takes an integer, a float or a bool (a constant's value); kFloat takes an integer too.
  enum class Type : uint8_t { kInt, kFloat, kBool, kString, kInts, kShape, kNumber } type;
  // Absent: the attribute is required.
  std::optional<AttributeValue> default_value;
  // What a value must be beyond its type: one of these strings (any if there are none), and a
  // number of this range, which NaN is in none of but kAny.
  std::vector<std::string_view> choices = {};
  enum class Range : uint8_t { kAny, kPositive, kNotNegative, kNotZero, kFraction } range = {};
};

// How a result's shape follows from operands and attributes, or what must hold of them besides, so
// that an expansion may trust it. The text says it for the daemon and for every client: the daemon
// evaluates it, bindings are generated from it (rules/rule_text.h has the notation). A rule stands
// beside the row that needs it; rules/shape_rules.h and rules/constraints.h have those of several
// files. tests/golden/shape_cases.json holds what languages make of rules to each other.
struct Rule {
  std::string_view name;      // one for each text; documents show it
  std::string_view operands;  // what the text calls them, with "?" after optional ones; it need not
                              // name all that the op has
  std::string_view text;
};
inline constexpr Rule kSameShape = {"same", "x", "-> x"};

enum class DTypeRule : uint8_t {
  kAttribute,     // the node's dtype field: sources, cast, bitcast
  kSame,          // operand 0's
  kPromote,       // the Python array API's promotion over all operands; operands are cast to it
  kPromoteFloat,  // as kPromote; integers and bool become float32
  kBool,          // bool; operands are promoted among themselves
  kSecond,        // operand 1's
  kInt64,
  kInt32,
  kUInt32,
  kFloat32,
};
std::string_view Name(DTypeRule rule);

enum class Kind : uint8_t {
  kSource,
  kUnary,
  kBinary,
  kTernary,
  kReduce,
  kMovement,
  kIndexed,
  kStructure,
  kComposite
};

// Which dtypes an operand may have. Numeric is float or integer.
enum class DTypeClass : uint8_t {
  kAny,
  kNumeric,
  kFloat,
  kInteger,
  kIntegerOrBool,
  kBool,
  kFloatOrBool,
  kUInt32
};
std::string_view Name(DTypeClass dtype_class);

struct RuleProgram;  // rules/rule_text.h

struct OpDef;
// Whether an operand, by its number, is the one that stands apart; see OpDef::special_operand.
bool IsSpecial(const OpDef& op, size_t operand);

// Builds tensor-level nodes over a Context; the vocabulary in which gradients and expansions are
// written. Binary ops broadcast and promote. Shapes are trusted to be legal (checked before). See
// builder.h.
class Builder;

// A tensor in host memory, for the reference semantics. See host_tensor.h.
struct HostTensor;

// Adjoints of the operands of `node`, given `upstream` of node's shape and dtype. Null: no gradient
// flows there.
using GradientFn = std::vector<const ir::Node*> (*)(Builder&, const ir::Node* node,
                                                    const ir::Node* upstream);
// The composite in terms of primitives (and of other composites' expansions).
using ExpandFn = absl::StatusOr<const ir::Node*> (*)(Builder&,
                                                     absl::Span<const ir::Node* const> operands,
                                                     const Attributes& attributes);
// The naive meaning on host tensors; `operands` have been broadcast and promoted as the primitive
// demands.
using EvaluateFn = absl::StatusOr<HostTensor> (*)(const ir::Node* node,
                                                  absl::Span<const HostTensor* const> operands);

struct OpDef {
  std::string_view name;
  Kind kind = Kind::kComposite;
  ir::Op op = ir::Op::kConst;                   // primitives only
  std::vector<std::string_view> operands = {};  // names, in order; "?" after a name marks an
                                                // optional one, "*" any number, at least one
  std::vector<AttributeDef> attributes = {};
  Rule shape_rule = kSameShape;
  DTypeRule dtype_rule = DTypeRule::kSame;
  DTypeClass operand_class = DTypeClass::kAny;
  // One operand may stand apart: it takes no part in promotion and has a class of its own, as
  // where's condition and gather's index do; where it stands for any number, all of them. -1: none.
  int special_operand = -1;
  DTypeClass special_class = DTypeClass::kInteger;
  std::vector<Rule> constraints = {};  // what must hold besides
  GradientFn gradient =
      nullptr;  // primitives only; null: not differentiable (its gradient is zero)
  EvaluateFn evaluate = nullptr;  // primitives only
  ExpandFn expand = nullptr;      // composites only
  std::string_view doc = {};      // one line: what it computes, and the source of its definition
  // The shape rule, then the constraints, as trees; op_table.cc reads them.
  std::vector<std::shared_ptr<const RuleProgram>> programs = {};
};

// All rows, in families' order (elementwise, reduce, movement, indexed, source, structure,
// composites).
absl::Span<const OpDef> AllOps();
// Null if there is none.
const OpDef* FindOp(std::string_view name);
// The row of a primitive.
const OpDef& DefOf(ir::Op op);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_OP_DEF_H_
