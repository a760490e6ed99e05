// mma.sync and ldmatrix. The lane of each element is defined by PTX ISA, "Matrix Fragments for
// mma".
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

// An m16n8kK product of elements of `bytes` bytes. Registers have 4 bytes, so a lane has 16 * K *
// bytes / 32 / 4 registers of A and half as many of B.
constexpr int kRows = 16;
constexpr int kColumns = 8;
constexpr int kDepthMax = 16;

void WaitForMatrix(Thread& thread, const Instruction& i) { thread.Stop(i, ThreadState::kInWarp); }

bool WholeWarp(Warp& warp, const Instruction& i, uint32_t members) {
  if (members == ~uint32_t{0}) return true;
  warp.Fail(std::countr_zero(members), i, "not all 32 threads of the warp take part");
  return false;
}

struct Product {
  int depth;              // K
  Type type;              // of the elements of A and B
  bool halves;            // C and D are f16, two per register
  const uint32_t* slots;  // of D, A, B and C

  int per_register() const { return 4 / BytesOf(type); }
  int a_registers() const { return depth / (2 * per_register()); }
  int b_registers() const { return a_registers() / 2; }
  int c_registers() const { return halves ? 2 : 4; }
};

double ElementOf(const Product& product, uint64_t bits, int index) {
  if (product.type == Type::kTf32) return ToDouble(Type::kTf32, bits & ~uint64_t{0x1fff});
  return ToDouble(product.type, bits >> (16 * index) & 0xffff);
}

// A's registers come in pairs, for rows r and r + 8, of the columns of one group of four lanes.
void ReadA(const Warp& warp, const Product& product, double (&a)[kRows][kDepthMax]) {
  const int each = product.per_register();
  const uint32_t* slots = product.slots + product.c_registers();
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < product.a_registers(); ++r) {
      const uint64_t bits = warp.slot(lane, slots[r]);
      for (int e = 0; e < each; ++e)
        a[lane / 4 + 8 * (r % 2)][lane % 4 * each + e + r / 2 * 4 * each] =
            ElementOf(product, bits, e);
    }
  }
}
void ReadB(const Warp& warp, const Product& product, double (&b)[kDepthMax][kColumns]) {
  const int each = product.per_register();
  const uint32_t* slots = product.slots + product.c_registers() + product.a_registers();
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < product.b_registers(); ++r) {
      const uint64_t bits = warp.slot(lane, slots[r]);
      for (int e = 0; e < each; ++e)
        b[lane % 4 * each + e + r * 4 * each][lane / 4] = ElementOf(product, bits, e);
    }
  }
}

// The products are exact and summed in double, then rounded once; a GPU's last bits may differ.
void PassProduct(Warp& warp, const Instruction& i, uint32_t members) {
  if (!WholeWarp(warp, i, members)) return;
  const Product product{static_cast<int>(i.operation), i.type, i.bytes == 2,
                        warp.block->program->lists.data() + i.list};
  double a[kRows][kDepthMax];
  double b[kDepthMax][kColumns];
  ReadA(warp, product, a);
  ReadB(warp, product, b);
  const uint32_t* c =
      product.slots + product.c_registers() + product.a_registers() + product.b_registers();
  const Type sum_type = product.halves ? Type::kF16 : Type::kF32;
  const int each = product.halves ? 2 : 1;
  const int bits_each = product.halves ? 16 : 32;
  for (int lane = 0; lane < 32; ++lane) {
    std::array<uint64_t, 4> results{};
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + 8 * (e / 2);
      const int column = lane % 4 * 2 + e % 2;
      const uint64_t held = warp.slot(lane, c[e / each]) >> (bits_each * (e % each));
      double sum = ToDouble(sum_type, held & ((uint64_t{1} << bits_each) - 1));
      for (int k = 0; k < product.depth; ++k) sum += a[row][k] * b[k][column];
      results[e / each] |= FromDouble(sum_type, sum) << (bits_each * (e % each));
    }
    for (int r = 0; r < product.c_registers(); ++r) warp.slot(lane, product.slots[r]) = results[r];
  }
}

void AddRegisters(StatementDecoder& decoder, size_t index, int count, Type type, bool writes) {
  const Operand& vector = decoder.operand(index);
  if (vector.kind != Operand::Kind::kVector || static_cast<int>(vector.elements.size()) != count)
    return decoder.Invalid(absl::StrCat("operand ", index, " needs ", count, " registers"));
  for (const Operand& element : vector.elements)
    decoder.AddToList(writes ? decoder.Write(element, type) : decoder.Read(element, type));
}

void DecodeProduct(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const int shape = decoder.TakeOneOf({"m16n8k16", "m16n8k8", "m16n8k4"}, 3);
  if (!decoder.Take("row") || !decoder.Take("col")) return decoder.Refuse("the layout");
  constexpr int kDepths[] = {16, 8, 4, 0};
  const Type to = decoder.TakeType();
  const Type a = decoder.TakeType();
  const Type b = decoder.TakeType();
  const Type c = decoder.TakeType();
  const int depth = kDepths[shape];
  const bool short_floats = a == Type::kF16 || a == Type::kBf16;
  const bool known = a == b && to == c &&
                     (short_floats ? depth >= 8 : a == Type::kTf32 && depth > 0 && depth <= 8) &&
                     (to == Type::kF32 || (to == Type::kF16 && a == Type::kF16));
  if (!known) return decoder.Refuse("the shape or the types");
  if (!decoder.Expect(4, 4)) return;
  i.operation = depth;
  i.type = a;
  i.bytes = BytesOf(to);
  i.collective = PassProduct;
  const Product product{depth, a, to == Type::kF16, nullptr};
  const Type sums = to == Type::kF16 ? Type::kB32 : Type::kF32;
  decoder.StartList();
  AddRegisters(decoder, 0, product.c_registers(), sums, true);
  AddRegisters(decoder, 1, product.a_registers(), Type::kB32, false);
  AddRegisters(decoder, 2, product.b_registers(), Type::kB32, false);
  AddRegisters(decoder, 3, product.c_registers(), sums, false);
}

// Eight lanes hold the addresses of a matrix's rows of 16 bytes.
bool ReadMatrix(Warp& warp, const Instruction& i, int matrix, uint16_t (&elements)[8][8]) {
  for (int row = 0; row < 8; ++row) {
    Thread& thread = warp.lane(matrix * 8 + row);
    uint64_t address = thread.slots[i.a];
    if (i.from == Type::kU32) address &= 0xffffffff;  // a 32-bit register
    address += static_cast<uint64_t>(i.offset);
    const uint8_t* bytes = IsAligned(thread, i, address, 16)
                               ? Locate(thread, i, i.space, address, 16, AccessKind::kRead)
                               : nullptr;
    if (bytes == nullptr) return false;
    std::memcpy(elements[row], bytes, 16);
  }
  return true;
}

void PassLoadMatrix(Warp& warp, const Instruction& i, uint32_t members) {
  if (!WholeWarp(warp, i, members)) return;
  const uint32_t* slots = warp.block->program->lists.data() + i.list;
  const int count = static_cast<int>(i.list_size);
  const bool transposed = i.operation != 0;
  uint16_t matrices[4][8][8];
  for (int matrix = 0; matrix < count; ++matrix)
    if (!ReadMatrix(warp, i, matrix, matrices[matrix])) return;
  for (int matrix = 0; matrix < count; ++matrix) {
    const auto& elements = matrices[matrix];
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      const uint64_t low = transposed ? elements[column][row] : elements[row][column];
      const uint64_t high = transposed ? elements[column + 1][row] : elements[row][column + 1];
      warp.slot(lane, slots[matrix]) = high << 16 | low;
    }
  }
}

void DecodeLoadMatrix(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  constexpr int kCounts[] = {1, 2, 4, 0};
  const int count = kCounts[decoder.TakeOneOf({"x1", "x2", "x4"}, 3)];
  i.operation = decoder.Take("trans");
  const Space space = decoder.TakeSpace();
  const bool known = decoder.Take("m8n8") && decoder.TakeType() == Type::kB16 && count > 0;
  if (!known || (space != Space::kShared && space != Space::kGeneric))
    return decoder.Refuse("the shape or the type");
  if (!decoder.Expect(2, 2)) return;
  i.collective = PassLoadMatrix;
  decoder.ReadAddress(1, space);
  decoder.StartList();
  AddRegisters(decoder, 0, count, Type::kB32, true);
}

}  // namespace

void DecodeMatrix(StatementDecoder& decoder) {
  if (!decoder.Take("sync") || !decoder.Take("aligned"))
    return decoder.Refuse("without .sync.aligned");
  decoder.instruction.execute = WaitForMatrix;
  if (decoder.head() == "mma") return DecodeProduct(decoder);
  DecodeLoadMatrix(decoder);
}

}  // namespace kiln::stand_ins::ptx
