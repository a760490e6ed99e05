#include "compiler/ir/node.h"

#include <array>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "proto/check/check.h"

namespace kiln::ir {
namespace {

// In the order of Op.
constexpr std::array<std::string_view, kNumOps> kNames = {
    "const",
    "input",
    "iota",
    "neg",
    "reciprocal",
    "sqrt",
    "exp2",
    "log2",
    "sin",
    "trunc",
    "not",
    "cast",
    "bitcast",
    "add",
    "sub",
    "mul",
    "div",
    "idiv",
    "mod",
    "max",
    "min",
    "pow",
    "cmplt",
    "cmpeq",
    "cmpne",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "where",
    "reduce_sum",
    "reduce_prod",
    "reduce_max",
    "reshape",
    "permute",
    "expand",
    "pad",
    "shrink",
    "flip",
    "window",
    "unwindow",
    "gather_elements",
    "scatter_elements",
    "contiguous",
    "detach",
    "shard",
    "send",
    "mutable",
    "with_derivative",
    "gradient",
    "range",
    "load",
    "reduce",
};
// A forgotten name would leave the last one empty.
static_assert(!kNames.back().empty());

size_t Hash(std::monostate) { return 0; }
size_t Hash(const ConstValue& value) { return absl::HashOf(value.bits); }
size_t Hash(const InputAttr& attr) { return absl::HashOf(attr.index); }
size_t Hash(const IntAttr& attr) { return absl::HashOf(attr.value); }
size_t Hash(const IntsAttr& attr) { return absl::HashOf(attr.values); }
size_t Hash(const RangeAttr& attr) { return absl::HashOf(attr.id, attr.extent); }
size_t Hash(const ReduceAttr& attr) { return absl::HashOf(attr.kind); }
size_t Hash(const ScatterAttr& attr) { return absl::HashOf(attr.axis, attr.mode); }

struct ScatterModeRow {
  std::string_view name;
  std::optional<Op> combiner;
};
// In the order of ScatterMode.
constexpr std::array<ScatterModeRow, 5> kScatterModes = {{{"set", std::nullopt},
                                                          {"add", Op::kAdd},
                                                          {"mul", Op::kMul},
                                                          {"max", Op::kMax},
                                                          {"min", Op::kMin}}};

// The parts of a node before it exists, so that a lookup copies nothing.
struct Parts {
  Op op;
  DType dtype;
  absl::Span<const int64_t> shape;
  absl::Span<const Node* const> operands;
  const Attribute& attribute;
};

size_t Hash(const Parts& parts) {
  size_t attribute = std::visit([](const auto& attr) { return Hash(attr); }, parts.attribute);
  return absl::HashOf(parts.op, parts.dtype, parts.shape, parts.operands, parts.attribute.index(),
                      attribute);
}

bool Same(const Node& node, const Parts& parts) {
  return node.op() == parts.op && node.dtype() == parts.dtype &&
         absl::MakeConstSpan(node.shape()) == parts.shape && node.operands() == parts.operands &&
         node.attribute() == parts.attribute;
}

struct Probe {
  const Parts& parts;
  size_t hash;
};

}  // namespace

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

int64_t BytesOf(DType dtype, absl::Span<const int64_t> shape) {
  return NumElements(shape) * SizeOf(dtype);
}

std::string_view Name(Op op) {
  size_t index = static_cast<size_t>(op);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view Name(ScatterMode mode) { return kScatterModes[static_cast<size_t>(mode)].name; }

std::optional<ScatterMode> ParseScatterMode(std::string_view name) {
  for (size_t i = 0; i < kScatterModes.size(); ++i) {
    if (kScatterModes[i].name == name) return static_cast<ScatterMode>(i);
  }
  return std::nullopt;
}

std::optional<Op> CombinerOf(ScatterMode mode) {
  return kScatterModes[static_cast<size_t>(mode)].combiner;
}

ConstValue ConstValue::Float(double v) { return {std::bit_cast<uint64_t>(v)}; }
ConstValue ConstValue::Int(int64_t v) { return {static_cast<uint64_t>(v)}; }
double ConstValue::AsDouble() const { return std::bit_cast<double>(bits); }
int64_t ConstValue::AsInt() const { return static_cast<int64_t>(bits); }

struct Context::Impl {
  struct HashNode {
    using is_transparent = void;
    // Stored in the node, so that a table that grows does not rehash nodes.
    size_t operator()(const Node* node) const { return node->hash_; }
    size_t operator()(const Probe& probe) const { return probe.hash; }
  };
  struct EqualNode {
    using is_transparent = void;
    bool operator()(const Node* a, const Node* b) const { return a == b; }
    bool operator()(const Node* a, const Probe& b) const {
      return a->hash_ == b.hash && Same(*a, b.parts);
    }
    bool operator()(const Probe& a, const Node* b) const { return (*this)(b, a); }
  };

  std::vector<std::unique_ptr<Node>> arena;
  absl::flat_hash_set<const Node*, HashNode, EqualNode> nodes;
};

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;

const Node* Context::Get(Op op, DType dtype, Shape shape, std::vector<const Node*> operands,
                         Attribute attribute) {
  for (const Node* operand : operands) KILN_DCHECK(operand != nullptr);
  Parts parts{op, dtype, shape, operands, attribute};
  size_t hash = Hash(parts);
  auto found = impl_->nodes.find(Probe{parts, hash});
  if (found != impl_->nodes.end()) return *found;

  std::unique_ptr<Node> node(new Node());
  node->op_ = op;
  node->dtype_ = dtype;
  node->id_ = static_cast<uint32_t>(impl_->arena.size());
  node->hash_ = hash;
  node->shape_ = std::move(shape);
  node->operands_ = std::move(operands);
  node->attribute_ = std::move(attribute);
  const bool is_new = impl_->nodes.insert(node.get()).second;
  KILN_CHECK(is_new) << "node " << node->id_ << " is interned twice";
  impl_->arena.push_back(std::move(node));
  // Visits also the operands and the places in the table.
  KILN_VALIDATE(*this, 4 * impl_->arena.size());
  return impl_->arena.back().get();
}

void Context::Validate() const {
  KILN_CHECK_EQ(impl_->nodes.size(), impl_->arena.size());
  for (size_t i = 0; i < impl_->arena.size(); ++i) {
    const Node* node = impl_->arena[i].get();
    KILN_CHECK_EQ(node->id_, i);
    const auto found = impl_->nodes.find(node);
    KILN_CHECK(found != impl_->nodes.end() && *found == node) << "node " << i;
    for (const Node* operand : node->operands_) {
      const size_t id = operand->id_;
      const bool is_own = id < impl_->arena.size() && impl_->arena[id].get() == operand;
      KILN_CHECK(!is_own || id < i) << "node " << id << " is an operand of node " << i;
    }
  }
}

const Node* Context::WithOperands(const Node* node, std::vector<const Node*> operands) {
  return Get(node->op(), node->dtype(), node->shape(), std::move(operands), node->attribute());
}

size_t Context::size() const { return impl_->arena.size(); }

}  // namespace kiln::ir
