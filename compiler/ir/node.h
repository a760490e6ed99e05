// The compiler's only intermediate representation: an immutable, interned node.
//
// The same Node is used at two levels. At the *tensor* level a node is an operation on whole
// tensors and has a shape. At the *kernel* level (see compiler/kernel/kernel.h) a node is a scalar
// expression over loop ranges: the shape is empty, and kRange, kLoad and kReduce replace the
// movement ops. spec.h says which op is legal where.
//
// Interning (hash-consing) makes structural equality pointer equality within one Context, so common
// subexpressions exist once and rewrites can memoise on pointers. (Filliâtre and Conchon,
// "Type-safe modular hash-consing", 2006.)
#ifndef KILN_COMPILER_IR_NODE_H_
#define KILN_COMPILER_IR_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/dtype.h"

namespace kiln::ir {

// Row-major, outermost first; empty is a scalar. Every size is >= 0.
using Shape = std::vector<int64_t>;

// Returns the product of the sizes. Requires: it fits in int64, which the graph's checks ensure.
int64_t NumElements(absl::Span<const int64_t> shape);
// The bytes of a dense tensor. The same requirement.
int64_t BytesOf(DType dtype, absl::Span<const int64_t> shape);

// Every operation of the core. Composites (matmul, softmax, …) are not here: the graph level
// expands them by their row in compiler/ops before a Node exists for them.
enum class Op : uint8_t {
  // Sources.
  kConst,  // scalar, attribute ConstValue; at the tensor level expanded by kExpand where a shape is
           // needed
  kInput,  // attribute InputAttr
  kIota,   // shape; value is the index along attribute IntAttr (the axis)
  // Unary.
  kNeg,
  kReciprocal,
  kSqrt,
  kExp2,
  kLog2,
  kSin,
  kTrunc,
  kNot,
  kCast,
  kBitcast,
  // Binary. Operands have one dtype and one shape. idiv and mod floor, as Python's.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kIDiv,
  kMod,
  kMax,
  kMin,
  kPow,
  kCmpLt,
  kCmpEq,
  kCmpNe,  // result kBool
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
  // Ternary: condition (bool), then, else.
  kWhere,
  // Reductions over the axes in IntsAttr; those dimensions stay, with size 1.
  kReduceSum,
  kReduceProd,
  kReduceMax,
  // Movement: no arithmetic, only indices.
  kReshape,  // to `shape`
  kPermute,  // IntsAttr: result dimension i is operand dimension ints[i]
  kExpand,   // size-1 dimensions to `shape`; ranks agree
  kPad,      // IntsAttr: before0, after0, before1, …; fills with zero
  kShrink,   // IntsAttr: begin0, end0, begin1, …
  kFlip,     // IntsAttr: axes
  // Sliding windows. IntsAttr {axis, size, stride, dilation}: the axis of size I becomes
  // O = (I - dilation*(size-1) - 1) / stride + 1, and a last dimension of `size` is appended:
  // result[…, o, …, k] = operand[…, o*stride + k*dilation, …].
  // The division rounds down: positions after the last whole window are not used.
  kWindow,
  // The adjoint view. IntsAttr {axis, I, stride, dilation}: the axis of size O becomes I, and the
  // last dimension (k) stays:
  // result[…, i, …, k] = operand[…, (i - k*dilation)/stride, …, k]
  // where that index is whole and in range, else zero.
  // The gradient of kWindow is kUnwindow followed by a sum over k.
  kUnwindow,
  // Indexed, after ONNX's ops of these names. x and index have the same rank. In the dimensions
  // other than the axis, index has x's sizes or 1, and 1 is broadcast to x's size.
  // (x, index), IntAttr: axis. The result has x's shape but index's size at the axis:
  // result[…, i, …] = x[…, index[…, i, …], …].
  // An index out of range (negative ones included) reads zero.
  kGatherElements,
  // (x, index, values), ScatterAttr. values has the shape of a gather at the index. The result is x
  // with each value combined into the element that the gather would read there, in the order of i;
  // an index out of range changes nothing.
  kScatterElements,
  // Structure.
  kContiguous,  // identity that is materialised
  kDetach,      // identity without gradient
  // Identity that specifies the value's layout on the graph's mesh. IntsAttr: for each dimension
  // the number of the mesh's axes that split it, then these axes (graph/mesh.h).
  kShard,
  // Identity whose result is on another device of a graph in stages (graph/stages.h). IntsAttr: the
  // number of the source device, and of the destination device.
  kSend,
  // Identity in its own memory, which a scatter overwrites. IntAttr tells copies apart. partition
  // makes it.
  kMutable,
  // Operands (y, x, derivative) of one shape; the result is y. A gradient also flows to x,
  // elementwise: upstream * derivative; none flows to derivative. A function whose best formula
  // differentiates badly is y = detach(formula) with this op around it.
  kWithDerivative,
  kGradient,  // operands (y, x[, upstream]): dy/dx, y scalar unless upstream is given; autodiff
              // replaces it

  // Kernel level only.
  kRange,   // RangeAttr; an int64 that runs from 0 to extent-1
  kLoad,    // IntAttr: the kernel's buffer; operands (index[, valid]); zero where valid is false
  kReduce,  // ReduceAttr; operands (value, range…): combines value over all points of the ranges
};
std::string_view Name(Op op);
inline constexpr int kNumOps = static_cast<int>(Op::kReduce) + 1;

// Attributes. Each op has one kind, given above; monostate for none.
struct ConstValue {
  // Bits of the value: two's complement for integers and bool, IEEE double for floats of every
  // width.
  uint64_t bits = 0;
  static ConstValue Float(double v);
  static ConstValue Int(int64_t v);
  double AsDouble() const;  // for float dtypes
  int64_t AsInt() const;    // for integer dtypes and bool
  bool operator==(const ConstValue&) const = default;
};
struct InputAttr {
  int64_t index = 0;
  bool operator==(const InputAttr&) const = default;
};
struct IntAttr {
  int64_t value = 0;
  bool operator==(const IntAttr&) const = default;
};
struct IntsAttr {
  std::vector<int64_t> values;
  bool operator==(const IntsAttr&) const = default;
};
struct RangeAttr {
  int64_t id = 0;  // unique within a kernel
  int64_t extent = 0;
  bool operator==(const RangeAttr&) const = default;
};
// The new value of an element that a value is scattered to: the value itself (the last one wins),
// or old op value.
enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMax, kMin };
struct ScatterAttr {
  int64_t axis = 0;
  ScatterMode mode = ScatterMode::kSet;
  bool operator==(const ScatterAttr&) const = default;
};
enum class ReduceKind : uint8_t { kSum, kProd, kMax };
struct ReduceAttr {
  ReduceKind kind = ReduceKind::kSum;
  bool operator==(const ReduceAttr&) const = default;
};
using Attribute = std::variant<std::monostate, ConstValue, InputAttr, IntAttr, IntsAttr, RangeAttr,
                               ReduceAttr, ScatterAttr>;

// "set", "add", "mul", "max", "min".
std::string_view Name(ScatterMode mode);
std::optional<ScatterMode> ParseScatterMode(std::string_view name);
// Returns the binary op that combines; nothing for kSet.
std::optional<Op> CombinerOf(ScatterMode mode);

class Context;

// Immutable. Lives as long as its Context; compare by pointer.
class Node {
 public:
  Op op() const { return op_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  absl::Span<const Node* const> operands() const { return operands_; }
  const Node* operand(int i) const { return operands_[i]; }
  const Attribute& attribute() const { return attribute_; }
  template <typename T>
  const T& attr() const {
    return std::get<T>(attribute_);
  }
  // Creation order within the Context: operands have smaller ids than their users.
  uint32_t id() const { return id_; }

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

 private:
  friend class Context;
  Node() = default;
  Op op_ = Op::kConst;
  DType dtype_ = DType::kInvalid;
  uint32_t id_ = 0;
  size_t hash_ = 0;
  Shape shape_;
  std::vector<const Node*> operands_;
  Attribute attribute_;
};

// The bytes of its value, dense.
inline int64_t BytesOf(const Node* node) { return BytesOf(node->dtype(), node->shape()); }

// Returns the integers of a movement or a reduction. ExtentOf returns the extent of a range.
inline const std::vector<int64_t>& IntsOf(const Node* node) {
  return node->attr<IntsAttr>().values;
}
inline int64_t ExtentOf(const Node* range) { return range->attr<RangeAttr>().extent; }

// Owns and interns nodes. Not thread-safe: one per compilation, or per kernel and thread.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns the one node with these parts. Does not check them: spec.h verifies. Requires: the
  // operands are nodes of this context, or of one that outlives it (of a kernel that the caller
  // must not change).
  const Node* Get(Op op, DType dtype, Shape shape, std::vector<const Node*> operands,
                  Attribute attribute = {});

  // Returns `node` with other operands and everything else equal.
  const Node* WithOperands(const Node* node, std::vector<const Node*> operands);

  size_t size() const;

 private:
  struct Impl;
  // Checks that ids are positions in the order of creation, that operands are earlier nodes, and
  // that each node is in the table once.
  void Validate() const;
  std::unique_ptr<Impl> impl_;
};

// Nodes do not store their source lines in the user's program; graph::Graph::sources does.

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_NODE_H_
