// The table of ops: one row per op that a client may send, primitive or composite. It is the single
// source of shape rules, attributes, gradients and reference semantics; the client bindings and the
// op documentation are generated from it.
#ifndef KILN_COMPILER_OPS_OP_DEF_H_
#define KILN_COMPILER_OPS_OP_DEF_H_

#include <cstdint>
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
inline constexpr int kOpSetVersion = 3;

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

// How the result's shape follows from operands and attributes. A short list that each client
// language implements once; tests/golden/shape_cases.json keeps them equal.
enum class ShapeRule : uint8_t {
  kAttribute,  // the attribute "shape"
  kSame,       // operand 0's
  kBroadcast,  // NumPy broadcasting of all operands
  kReduce,     // attributes "axes" (negative count from the end; empty list: all) and "keepdims"
  kReshape,
  kPermute,
  kExpand,
  kPad,
  kShrink,
  kFlip,
  kWindow,
  kUnwindow,
  kGatherElements,   // x, index of x's rank; attribute "axis"
  kScatterElements,  // and values of the gathered shape
  kGather,           // x, index -> x.shape[:axis] + index.shape + x.shape[axis+1:]
  kScatter,          // and values of the gathered shape
  kTakeAlongAxis,    // x, index of x's rank; they broadcast but for the axis
  kPutAlongAxis,     // index broadcasts to x's shape but for the axis, values to the index's
  kIndex,     // x, index… that broadcast together in place of as many dimensions from "axis" on
  kIndexPut,  // x, values that broadcast to what kIndex gives, index…
  kMatmul,    // NumPy matmul, batch dimensions broadcast, 1-d operands promoted
  kLinear,    // x (…,K), weight (N,K), bias (N)? -> (…,N)
  kAttention,  // query (…,L,E), key (…,S,E), value (…,S,V) -> (…,L,V); leading dimensions broadcast
  kConv,  // x (N,C,…), weight (O,C/groups,…); attributes stride, padding, dilation, groups
  kConvTranspose,  // x (N,C,…), weight (C,O/groups,…); as kConv, and output_padding
  kPool,           // x (…, spatial); attributes kernel, stride, padding, dilation?, ceil_mode
  kResize,         // x's last dimensions become the attribute "size"
  kUnfold,         // x (N,C,…) -> (N, C * taps, windows); attributes kernel, stride, padding, …
  kFold,           // the other way, to the attribute "size"
  kPixelShuffle,   // (…,C,H,W) -> (…,C/f²,H*f,W*f) by the attribute "factor"
  kPixelUnshuffle,
  kConcat,     // attribute "axis"
  kOneHot,     // operand 0's shape plus attribute "classes"
  kLoss,       // operand 0's, or () as the attribute "reduction" says; operands agree
  kLabelLoss,  // as kLoss, without the class dimension; labels (N,…), or as the scores
  kRowLoss,    // as kLoss, without the last dimension
  kPairwise,   // broadcast, reduced over the attribute "axis"; "keepdims"
  kHalf,       // operand 0's with the attribute "axis" halved
  kTopK,       // the attribute "axis" has the size of the attribute "k"
  kEinsum,     // attribute "equation"; see einsum.h
  kDiagonal,   // attributes axis1 and axis2 become a last dimension, offset columns to the right
  kDiagEmbed,  // (…,N) -> (…,M,M), M = N + |attribute "offset"|
  kSolve,  // a (…,N,N), b (…,N,M) or (N) -> (…,N,M) or (…,N); leading dimensions broadcast
  kDeterminant,  // (…,N,N) -> (…)
  kQr,  // (…,M,N) -> (…,M,K) or, as attribute "part" says, (…,K,N); K = min(M, N), or M if
        // "complete"
  kGradient,  // operand 1's
};
std::string_view Name(ShapeRule rule);

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

// What must hold of operands and attributes beyond the rules of shape and dtype, so that an
// expansion may trust it. As the rules, each is implemented once by every client language, which
// shape_cases.h keeps equal; see constraints.h.
enum class Constraint : uint8_t {
  kAxis,            // the attribute "axis" is one of operand 0's
  kOrderAxis,       // as kAxis, where a scalar counts as one dimension
  kAxisOfResult,    // as kAxis, of the result
  kSharedAxes,      // the attribute "shared_axes" are axes of operand 0
  kOneAxis,         // the attribute "axes" names one axis or none
  kMatrices,        // operand 0 is (…, rows, columns)
  kSquare,          // operand 0 is (…, N, N)
  kFewColumns,      // the smaller of its last two dimensions is at most 512
  kThreeAlongAxis,  // the result has size 3 along the attribute "axis"
  kShifts,          // the attributes "shifts" and "axes" go together, axes are operand 0's
  kReflectPadding,  // what the attribute "padding" adds is there to repeat: …
  kCircularPadding,
  kReplicatePadding,
  kSequence,          // operand 1 has one dimension
  kKey,               // the operand "key" is (2,)
  kLastAxes,          // operand 0 has as many dimensions as the attribute "axes", further operands
                      // the shape of those last ones
  kChannels,          // operand 0 is (N, C, …), further operands are (C,)
  kSpatial,           // operand 0 is (N, C, spatial)
  kGroups,            // the attribute "groups" divides the channels
  kSlopes,            // operand 1 is one number, or one for each channel of operand 0
  kOrderedBounds,     // the attribute "min" is less than "max"
  kRotary,            // operands 1 and 2 broadcast to operand 0 with half its features or fewer
  kIndexLabels,       // operand 1 has operand 0's shape without the class dimension
  kLabels,            // as kIndexLabels if it is integers, operand 0's shape if it is floats
  kLabelForEachRow,   // operand 2 has operand 0's shape without the last dimension
  kEqualShapes,       // all operands have one shape
  kEqualDTypes,       // operand 2 has operand 0's dtype
  kNumbersToCombine,  // operand 0 is no bool, unless the attribute "mode" is "set"
  kUpstreamDType,     // operand 2, if there is one, has operand 0's dtype
  kEqualBits,         // operand 0 and the result have one size and are not bool
  kNumericResult,     // the result is no bool
  kFloatResult,       // the result is a float
};
std::string_view Name(Constraint constraint);

struct OpDef;
// Whether an operand, by its number, is the one that stands apart; see OpDef::special_operand.
bool IsSpecial(const OpDef& op, size_t operand);

// Builds tensor-level nodes over a Context; the vocabulary in which gradients and expansions are
// written. Binary ops broadcast and promote. Shapes are trusted to be legal (checked before). See
// builder.h.
class Builder;

// A tensor in host memory, for the reference semantics. See evaluate.h.
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
  ShapeRule shape_rule = ShapeRule::kSame;
  DTypeRule dtype_rule = DTypeRule::kSame;
  DTypeClass operand_class = DTypeClass::kAny;
  // One operand may stand apart: it takes no part in promotion and has a class of its own, as
  // where's condition and gather's index do; where it stands for any number, all of them. -1: none.
  int special_operand = -1;
  DTypeClass special_class = DTypeClass::kInteger;
  std::vector<Constraint> constraints = {};
  GradientFn gradient =
      nullptr;  // primitives only; null: not differentiable (its gradient is zero)
  EvaluateFn evaluate = nullptr;  // primitives only
  ExpandFn expand = nullptr;      // composites only
  std::string_view doc = {};      // one line: what it computes, and the source of its definition
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
