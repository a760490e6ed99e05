// 2^x and e^x: splits the argument into an integer n, whose power of two is exact, and a small
// rest, for which there is a polynomial.
#include "compiler/codegen/math/exponential.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "compiler/codegen/math/instructions.h"
#include "compiler/codegen/math/lanes.h"
#include "compiler/codegen/math/math.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

// 2^f = 1 + f P(f) for |f| <= 1/2, to 2^-28.3.
constexpr std::array kExp2Float = {0x1.62e430p-1, 0x1.ebfbdcp-3,  0x1.c6af7ap-5,
                                   0x1.3b2dd4p-7, 0x1.5f094ap-10, 0x1.41788ap-13};
// e^r = 1 + r + r^2 P(r) for |r| <= log(2)/2, to 2^-28.2.
constexpr std::array kExpFloat = {0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558b4p-5, 0x1.1239a0p-7,
                                  0x1.6a495ep-10};

// Returns ratio^k / k! for k = first, first + 1, …: the Taylor series of exp(ratio x), which for 13
// terms is as good as a fit.
template <size_t kTerms>
std::array<double, kTerms> Series(long double ratio, int first) {
  std::array<double, kTerms> terms;
  long double term = 1;
  for (int k = 1; k < first; ++k) term *= ratio / k;
  for (size_t i = 0; i < kTerms; ++i) {
    term *= ratio / static_cast<long double>(first + i);
    terms[i] = static_cast<double>(term);
  }
  return terms;
}

constexpr long double kLog2 = 0.693147180559945309417232121458176568L;

// Returns AVX-512's instruction for value * 2^n for this type, or 0 if there is none.
llvm::Intrinsic::ID ScaleInstruction(const Lanes& l) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(l.type());
  if (vector == nullptr || !MayUse(l.b, Instruction::kScale)) return 0;
  switch (vector->getPrimitiveSizeInBits()) {
    case 512:
      return l.IsDouble() ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                          : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    case 256:
      return l.IsDouble() ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                          : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256;
    default:
      return 0;
  }
}

Value* EmitScaleInstruction(const Lanes& l, llvm::Intrinsic::ID instruction, Value* value,
                            Value* n) {
  constexpr int kCurrentRounding = 4;
  const auto lanes = llvm::cast<llvm::FixedVectorType>(l.type())->getNumElements();
  // Masks have at least eight bits, even for fewer lanes.
  llvm::IntegerType* mask = l.b.getIntNTy(std::max(lanes, 8U));
  std::vector<Value*> arguments = {value, n, value, llvm::Constant::getAllOnesValue(mask)};
  if (l.type()->getPrimitiveSizeInBits() == 512)
    arguments.push_back(l.b.getInt32(kCurrentRounding));
  return l.b.CreateIntrinsic(instruction, {}, arguments);
}

// Returns value * 2^n, rounded once, where `sum` is n + l.RoundingConstant(). It takes two steps,
// of which only the second rounds, so that n may exceed the normal range.
Value* Scale(const Lanes& l, Value* value, Value* sum) {
  if (const llvm::Intrinsic::ID instruction = ScaleInstruction(l); instruction != 0)
    return EmitScaleInstruction(l, instruction, value, l.RoundedFloat(sum));
  Value* n = l.RoundedInteger(sum);
  Value* half = l.b.CreateAShr(n, l.I(1));
  return l.Mul(l.Mul(value, l.PowerOfTwo(half)), l.PowerOfTwo(l.b.CreateSub(n, half)));
}

}  // namespace

// 1 + f log(2) is summed without error, so that only the rest of the series is rounded.
Value* EmitPreciseExp2(const Lanes& l, DoubleDouble x) {
  Value* bounded = l.Clamp(x.high, -1077, 1025);
  Value* sum = l.Add(bounded, l.F(l.RoundingConstant()));
  DoubleDouble f = l.FastTwoSum(l.Sub(bounded, l.RoundedFloat(sum)), x.low);
  DoubleDouble linear = l.Multiply(f, l.Constant(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56));
  Value* square = l.Mul(f.high, f.high);
  Value* tail = l.MulAdd(square, l.Polynomial(f.high, Series<12>(kLog2, 2)), linear.low);
  DoubleDouble lead = l.FastTwoSum(l.F(1), linear.high);
  return Scale(l, l.Add(lead.high, l.Add(lead.low, tail)), sum);
}

llvm::Value* EmitExp2(llvm::IRBuilderBase& builder, llvm::Value* x) {
  Lanes l(builder, x->getType());
  // Outside these bounds the result is infinity, or rounds to zero.
  Value* bounded = l.IsDouble() ? l.Clamp(x, -1077, 1025) : l.Clamp(x, -152, 129);
  Value* sum = l.Add(bounded, l.F(l.RoundingConstant()));
  Value* f = l.Sub(bounded, l.RoundedFloat(sum));
  Value* p = l.IsDouble() ? l.Polynomial(f, Series<13>(kLog2, 1)) : l.Polynomial(f, kExp2Float);
  return Scale(l, l.Fma(f, p, l.F(1)), sum);
}

llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x) {
  Lanes l(builder, x->getType());
  // As for exp2, the result outside these bounds is infinity, or rounds to zero.
  Value* bounded = l.IsDouble() ? l.Clamp(x, -746, 710) : l.Clamp(x, -105, 89);
  // The nearest integer to x log2(e).
  Value* sum = l.MulAdd(bounded, l.F(0x1.71547652b82fep+0), l.F(l.RoundingConstant()));
  Value* n = l.RoundedFloat(sum);
  // log(2) in two parts (Cody and Waite 1980).
  Value* high = l.F(l.IsDouble() ? 0x1.62e42fefa39efp-1 : 0x1.62e430p-1);
  Value* low = l.F(l.IsDouble() ? 0x1.abc9e3b39803fp-56 : -0x1.05c610p-29);
  Value* r = l.MulAdd(l.Neg(n), low, l.Fma(l.Neg(n), high, bounded));
  Value* p = l.IsDouble() ? l.Polynomial(r, Series<12>(1, 2)) : l.Polynomial(r, kExpFloat);
  Value* power = l.Add(l.MulAdd(l.Mul(r, r), p, r), l.F(1));
  return Scale(l, power, sum);
}

}  // namespace kiln::codegen
