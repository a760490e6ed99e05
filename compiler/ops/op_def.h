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

// Increases by one with every op or attribute added. A daemon accepts clients with this version or
// an older one.
inline constexpr int kOpSetVersion = 5;

// A wire attribute's value, independent of protobuf.
using AttributeValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;
using Attributes = absl::flat_hash_map<std::string, AttributeValue>;

struct AttributeDef {
  std::string_view name;
  // kNumber takes an integer, a float or a bool (a constant's value); kFloat takes an integer too.
  enum class Type : uint8_t { kInt, kFloat, kBool, kString, kInts, kShape, kNumber } type;
  // Absent: the attribute is required.
  std::optional<AttributeValue> default_value;
  // Further limits on a value: it must be one of these strings (any if empty), or a number in this
  // range. NaN is only in kAny.
  std::vector<std::string_view> choices = {};
  enum class Range : uint8_t { kAny, kPositive, kNotNegative, kNotZero, kFraction } range = {};
};

// A rule for a result's shape, from operands and attributes, or a constraint on them that an
// expansion may rely on. The same text serves the daemon and every client: the daemon evaluates it,
// and bindings are generated from it (rules/rule_text.h describes the notation). A rule is next to
// the row that uses it; rules/shape_rules.h and rules/constraints.h have rules shared by several
// files. tests/golden/shape_cases.json checks the implementations in all languages against each
// other.
struct Rule {
  std::string_view name;      // unique per text; documents show it
  std::string_view operands;  // names of operands in the text, with "?" after optional ones; need
                              // not name all of the op's operands
  std::string_view text;
};
inline constexpr Rule kSameShape = {"same", "x", "-> x"};

enum class DTypeRule : uint8_t {
  kAttribute,     // the node's dtype field: sources, cast, bitcast
  kSame,          // operand 0's
  kPromote,       // the Python array API's promotion of all operands; operands are cast to it
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

// The dtypes that an operand may have. Numeric is float or integer.
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
// Returns whether an operand, by its index, is special; see OpDef::special_operand.
bool IsSpecial(const OpDef& op, size_t operand);

// Builds tensor-level nodes over a Context; gradients and expansions are written with it. Binary
// ops broadcast and promote. Requires legal shapes (checked before). See builder.h.
class Builder;

// A tensor in host memory, for the reference semantics. See host_tensor.h.
struct HostTensor;

// Returns the adjoints of the operands of `node`, given `upstream` of node's shape and dtype. Null:
// no gradient flows to that operand.
using GradientFn = std::vector<const ir::Node*> (*)(Builder&, const ir::Node* node,
                                                    const ir::Node* upstream);
// Expands the composite to primitives (and other composites' expansions).
using ExpandFn = absl::StatusOr<const ir::Node*> (*)(Builder&,
                                                     absl::Span<const ir::Node* const> operands,
                                                     const Attributes& attributes);
// Evaluates the reference semantics on host tensors. Requires: `operands` have been broadcast and
// promoted for the primitive.
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
  // One operand may be special: it takes no part in promotion and has its own class, like where's
  // condition and gather's index. If it is marked with "*", all operands from it on are special.
  // -1: none.
  int special_operand = -1;
  DTypeClass special_class = DTypeClass::kInteger;
  std::vector<Rule> constraints = {};  // further requirements
  GradientFn gradient =
      nullptr;  // primitives only; null: not differentiable (its gradient is zero)
  EvaluateFn evaluate = nullptr;  // primitives only
  ExpandFn expand = nullptr;      // composites only
  // Composites: gets short floats as they are, and casts them where that is best. Others get
  // float32.
  bool casts_operands = false;
  std::string_view doc = {};  // one line: what it computes, and the source of its definition
  // The shape rule, then the constraints, as trees; op_table.cc parses them.
  std::vector<std::shared_ptr<const RuleProgram>> programs = {};
};

// Returns all rows, by family (elementwise, reduce, movement, indexed, source, structure,
// composites).
absl::Span<const OpDef> AllOps();
// Returns null if there is none.
const OpDef* FindOp(std::string_view name);
// Returns the row of a primitive.
const OpDef& DefOf(ir::Op op);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_OP_DEF_H_
