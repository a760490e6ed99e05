// Random numbers: pure functions of a key, so that a program gives the same numbers on any devices
// and however it is split.
//
// Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3", 2011), in uint32 arithmetic. Element i in row-major order comes from the block with
// counter (i >> 32, i & 0xFFFFFFFF) under the key (k0, k1), whose two words are x0 and x1:
//   random_bits     x0 xor x1, like JAX's partitionable mode
//   random_uniform  (x0 xor x1) >> 8, times 2^-24
//   random_normal   Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v), u = ((x0 >> 8) + 1) 2^-24 in
//   (0, 1], v = (x1 >> 8) 2^-24
#include <array>
#include <numbers>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

struct Words {
  const Node* x0;
  const Node* x1;
};

const Node* Word(Builder& b, uint32_t value) { return b.ConstInt(DType::kUInt32, value); }

const Node* RotateLeft(Builder& b, const Node* x, uint32_t amount) {
  return b.Binary(Op::kOr, b.Binary(Op::kShl, x, Word(b, amount)),
                  b.Binary(Op::kShr, x, Word(b, 32 - amount)));
}

// Section 3.3 of the paper; five times four rounds, each group followed by an injection of the key
// schedule.
Words Threefry2x32(Builder& b, const Node* k0, const Node* k1, Words x) {
  static constexpr std::array<std::array<uint32_t, 4>, 2> kRotations = {
      {{13, 15, 26, 6}, {17, 29, 16, 24}}};
  constexpr uint32_t kParity = 0x1BD11BDA;
  const Node* k2 = b.Binary(Op::kXor, b.Binary(Op::kXor, k0, k1), Word(b, kParity));
  const std::array<const Node*, 3> keys = {k0, k1, k2};
  x = {b.Add(x.x0, k0), b.Add(x.x1, k1)};
  for (uint32_t group = 0; group < 5; ++group) {
    for (const uint32_t rotation : kRotations[group % 2]) {
      x.x0 = b.Add(x.x0, x.x1);
      x.x1 = b.Binary(Op::kXor, RotateLeft(b, x.x1, rotation), x.x0);
    }
    x.x0 = b.Add(x.x0, keys[(group + 1) % 3]);
    x.x1 = b.Add(b.Add(x.x1, keys[(group + 2) % 3]), Word(b, group + 1));
  }
  return x;
}

// Returns the counter words of `count` elements.
Words Counters(Builder& b, int64_t count) {
  // The high word is 0, and no 64-bit arithmetic is needed.
  if (count <= int64_t{1} << 32) {
    return {b.Full(DType::kUInt32, {count}, 0), b.Iota(DType::kUInt32, {count}, 0)};
  }
  const Node* index = b.Iota(DType::kUInt64, {count}, 0);
  const Node* high = b.Binary(Op::kShr, index, b.ConstInt(DType::kUInt64, 32));
  return {b.Cast(high, DType::kUInt32), b.Cast(index, DType::kUInt32)};
}

// Returns the two words of every element of `shape`, flat.
Words RandomWords(Builder& b, const Node* key, const Shape& shape) {
  return Threefry2x32(b, b.Slice(key, 0, 0, 1), b.Slice(key, 0, 1, 2),
                      Counters(b, ir::NumElements(shape)));
}

// Returns the upper 24 bits as a float32 whole number.
const Node* Upper24(Builder& b, const Node* word) {
  return b.Cast(b.Binary(Op::kShr, word, Word(b, 8)), DType::kFloat32);
}

constexpr double kScale = 1.0 / (1 << 24);

Expansion ExpandBits(Builder& b, Operands operands, const Attributes& attributes) {
  const Shape& shape = IntsOf(attributes, "shape");
  const Words words = RandomWords(b, operands[0], shape);
  return b.Reshape(b.Binary(Op::kXor, words.x0, words.x1), shape);
}

Expansion ExpandUniform(Builder& b, Operands operands, const Attributes& attributes) {
  const Expansion bits = ExpandBits(b, operands, attributes);
  if (!bits.ok()) return bits;
  return b.Mul(Upper24(b, *bits), kScale);
}

Expansion ExpandNormal(Builder& b, Operands operands, const Attributes& attributes) {
  const Shape& shape = IntsOf(attributes, "shape");
  const Words words = RandomWords(b, operands[0], shape);
  const Node* u = b.Mul(b.Add(Upper24(b, words.x0), 1.0), kScale);
  const Node* angle = b.Mul(Upper24(b, words.x1), 2 * std::numbers::pi * kScale);
  const Node* radius = b.Sqrt(b.Mul(b.Log(u), -2.0));
  return b.Reshape(b.Mul(radius, b.Cos(angle)), shape);
}

OpDef Random(std::string_view name, DTypeRule dtype_rule, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"key"}, dtype_rule, DTypeClass::kUInt32, expand, doc);
  row.attributes = {RequiredShape()};
  row.shape_rule = kAttributeShape;
  row.constraints = {kKeyRule};
  return row;
}

}  // namespace

std::vector<OpDef> RandomComposites() {
  return {
      Random("random_bits", DTypeRule::kUInt32, ExpandBits,
             "Threefry-2x32 with 20 rounds (Salmon et al., 2011) under a key of uint32[2]: element "
             "i is x0 xor x1 of the block with counter (i >> 32, i & 0xFFFFFFFF)"),
      Random("random_uniform", DTypeRule::kFloat32, ExpandUniform,
             "Uniform in [0, 1): the upper 24 bits of random_bits, times 2^-24"),
      Random("random_normal", DTypeRule::kFloat32, ExpandNormal,
             "Standard normal, by Box and Muller (1958) from the block's two words"),
  };
}

}  // namespace kiln::ops
