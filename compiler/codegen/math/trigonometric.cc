// sin and cos: x = q pi/2 + r, then one of two polynomials of r, depending on q. Cody and Waite's
// reduction handles common arguments; if any lane needs more, Payne and Hanek's runs lane by lane.
#include <array>

#include "compiler/codegen/math/helper.h"
#include "compiler/codegen/math/lanes.h"
#include "compiler/codegen/math/math.h"
#include "compiler/codegen/math/payne_hanek.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

// sin(r) = r + r^3 S(r^2) and cos(r) = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4: fits to 2^-27.8 and
// 2^-32.8 for floats, Taylor series for doubles.
constexpr std::array kSinFloat = {-0x1.555544p-3, 0x1.1106d4p-7, -0x1.992360p-13};
constexpr std::array kCosFloat = {0x1.55554ap-5, -0x1.6c0c1cp-10, 0x1.99e24ap-16};
constexpr double kFactorial9 = 362880;
constexpr std::array kSinDouble = {-1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / kFactorial9,
                                   -1.0 / (kFactorial9 * 110),
                                   1.0 / (kFactorial9 * 17160),
                                   -1.0 / (kFactorial9 * 3603600),
                                   1.0 / (kFactorial9 * 980179200)};
constexpr std::array kCosDouble = {1.0 / 24,
                                   -1.0 / 720,
                                   1.0 / 40320,
                                   -1.0 / (kFactorial9 * 10),
                                   1.0 / (kFactorial9 * 1320),
                                   -1.0 / (kFactorial9 * 240240),
                                   1.0 / (kFactorial9 * 57657600)};
// pi/2 in three parts each.
constexpr std::array kHalfPiFloat = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
constexpr std::array kHalfPiDouble = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                      -0x1.f1976b7ed8fbcp-110};
// Up to here, the first product with a quadrant number is exact.
constexpr double kLargeFloat = 100000;
constexpr double kLargeDouble = 0x1p30;

struct Reduced {
  Value* rest;
  Value* quadrant;  // integer; only the two low bits are meaningful
};

Reduced CodyWaite(const Lanes& l, Value* x) {
  // The nearest integer to x 2/pi.
  Value* sum = l.MulAdd(x, l.F(0x1.45f306dc9c883p-1), l.F(l.RoundingConstant()));
  Value* minus_n = l.Neg(l.RoundedFloat(sum));
  Value* rest = x;
  for (double part : l.IsDouble() ? kHalfPiDouble : kHalfPiFloat)
    rest = l.Fma(minus_n, l.F(part), rest);
  return {rest, l.RoundedInteger(sum)};
}

Reduced ReduceLane(llvm::IRBuilderBase& b, Value* x, llvm::Type* integer) {
  Value* wide = b.CreateFPExt(x, b.getDoubleTy());
  llvm::BasicBlock& block = *b.GetInsertBlock();
  Value* parts = b.CreateCall(PayneHanek(*block.getParent(), *block.getModule()), {wide});
  return {b.CreateFPTrunc(b.CreateExtractValue(parts, 0), x->getType()),
          b.CreateTrunc(b.CreateExtractValue(parts, 1), integer)};
}

// Returns `small`, with the lanes where `is_large` reduced again.
Reduced ReduceLarge(const Lanes& l, Value* x, Value* is_large, Reduced small) {
  // Lanes that are not large get an argument that Payne and Hanek's reduction allows; its result is
  // not used.
  Value* safe = l.Select(is_large, l.Abs(x), l.F(0x1p20));
  Value* sign = l.b.CreateAnd(l.Bits(x), l.Bits(l.F(-0.0)));
  safe = l.FromBits(l.b.CreateOr(l.Bits(safe), sign));
  llvm::Type* integer = small.quadrant->getType()->getScalarType();
  Reduced large = small;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(l.type())) {
    for (unsigned i = 0; i < vector->getNumElements(); ++i) {
      Reduced lane = ReduceLane(l.b, l.b.CreateExtractElement(safe, i), integer);
      large.rest = l.b.CreateInsertElement(large.rest, lane.rest, i);
      large.quadrant = l.b.CreateInsertElement(large.quadrant, lane.quadrant, i);
    }
  } else {
    large = ReduceLane(l.b, safe, integer);
  }
  return {l.Select(is_large, large.rest, small.rest),
          l.Select(is_large, large.quadrant, small.quadrant)};
}

Value* Join(llvm::IRBuilderBase& b, Value* x, llvm::BasicBlock* x_from, Value* y,
            llvm::BasicBlock* y_from) {
  llvm::PHINode* phi = b.CreatePHI(x->getType(), 2);
  phi->addIncoming(x, x_from);
  phi->addIncoming(y, y_from);
  return phi;
}

// Branches around the slow reduction.
Reduced Reduce(const Lanes& l, Value* x) {
  Reduced small = CodyWaite(l, x);
  Value* is_large = l.Greater(l.Abs(x), l.F(l.IsDouble() ? kLargeDouble : kLargeFloat));
  Value* any = l.type()->isVectorTy() ? l.b.CreateOrReduce(is_large) : is_large;
  llvm::BasicBlock* entry = l.b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(l.b.getContext(), "large", entry->getParent());
  auto* join = llvm::BasicBlock::Create(l.b.getContext(), "reduced", entry->getParent());
  l.b.CreateCondBr(any, slow, join);
  l.b.SetInsertPoint(slow);
  Reduced large = ReduceLarge(l, x, is_large, small);
  l.b.CreateBr(join);
  l.b.SetInsertPoint(join);
  return {Join(l.b, small.rest, entry, large.rest, slow),
          Join(l.b, small.quadrant, entry, large.quadrant, slow)};
}

Value* SineOfQuadrant(const Lanes& l, Reduced reduced) {
  Value* r = reduced.rest;
  Value* z = l.Mul(r, r);
  Value* s = l.IsDouble() ? l.Polynomial(z, kSinDouble) : l.Polynomial(z, kSinFloat);
  Value* c = l.IsDouble() ? l.Polynomial(z, kCosDouble) : l.Polynomial(z, kCosFloat);
  Value* sine = l.MulAdd(l.Mul(z, r), s, r);
  Value* cosine = l.MulAdd(l.Mul(z, z), c, l.MulAdd(z, l.F(-0.5), l.F(1)));
  // The quadrant's low bit selects the polynomial, the next one the sign.
  Value* odd = l.b.CreateICmpNE(l.b.CreateAnd(reduced.quadrant, l.I(1)), l.I(0));
  Value* sign = l.b.CreateAnd(l.b.CreateShl(reduced.quadrant, l.I(l.IsDouble() ? 62 : 30)),
                              l.Bits(l.F(-0.0)));
  return l.FromBits(l.b.CreateXor(l.Bits(l.Select(odd, cosine, sine)), sign));
}

// Returns x where r^3 is below r's last place: keeps zeros' signs and denormals.
Value* KeepTiny(const Lanes& l, Value* x, Value* sine) {
  return l.Select(l.Less(l.Abs(x), l.F(l.IsDouble() ? 0x1p-27 : 0x1p-12)), x, sine);
}

Value* Sine(llvm::IRBuilderBase& builder, absl::Span<Value* const> x) {
  Lanes l(builder, x[0]->getType());
  return KeepTiny(l, x[0], SineOfQuadrant(l, Reduce(l, x[0])));
}

Value* Cosine(llvm::IRBuilderBase& builder, absl::Span<Value* const> x) {
  Lanes l(builder, x[0]->getType());
  Reduced reduced = Reduce(l, x[0]);
  // cos(x) is sin(x + pi/2).
  reduced.quadrant = builder.CreateAdd(reduced.quadrant, l.I(1));
  return SineOfQuadrant(l, reduced);
}

}  // namespace

llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x) {
  return CallHelper(builder, "sin", {x}, Sine);
}

llvm::Value* EmitCos(llvm::IRBuilderBase& builder, llvm::Value* x) {
  return CallHelper(builder, "cos", {x}, Cosine);
}

}  // namespace kiln::codegen
