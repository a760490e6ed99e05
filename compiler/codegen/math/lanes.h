// The operations of which elementary functions are made: floating-point and integer operations on
// one type, which is float, double or a vector of them. Internal to codegen/math.
#ifndef KILN_COMPILER_CODEGEN_MATH_LANES_H_
#define KILN_COMPILER_CODEGEN_MATH_LANES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "compiler/codegen/math/instructions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

// A sum of two values, of which the second is below the first's last place.
struct DoubleDouble {
  llvm::Value* high;
  llvm::Value* low;
};

class Lanes {
 public:
  using Value = llvm::Value;

  // Operations on `type`. While it lives, the builder has no fast-math flags.
  Lanes(llvm::IRBuilderBase& builder, llvm::Type* type)
      : b(builder),
        guard_(builder),
        type_(type),
        integer_type_(IntegerOf(type)),
        fused_(MayUse(builder, Instruction::kFusedMultiplyAdd)) {
    b.clearFastMathFlags();
  }

  bool IsDouble() const { return type_->getScalarSizeInBits() == 64; }
  int MantissaBits() const { return IsDouble() ? 52 : 23; }
  int ExponentBias() const { return IsDouble() ? 1023 : 127; }
  llvm::Type* type() const { return type_; }

  Value* F(double value) const { return llvm::ConstantFP::get(type_, value); }
  Value* I(int64_t value) const { return llvm::ConstantInt::getSigned(integer_type_, value); }
  Value* Infinity() const { return llvm::ConstantFP::getInfinity(type_); }
  Value* NaN() const { return llvm::ConstantFP::getNaN(type_); }

  Value* Add(Value* x, Value* y) const { return b.CreateFAdd(x, y); }
  Value* Sub(Value* x, Value* y) const { return b.CreateFSub(x, y); }
  Value* Mul(Value* x, Value* y) const { return b.CreateFMul(x, y); }
  Value* Div(Value* x, Value* y) const { return b.CreateFDiv(x, y); }
  Value* Neg(Value* x) const { return b.CreateFNeg(x); }
  Value* Abs(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  // Returns whether multiplication and addition are one instruction.
  bool IsFused() const { return fused_; }
  // x * y + z, rounded as if once: exact if the result has few enough digits. If it takes several
  // instructions, doubles must be below 2^900.
  Value* Fma(Value* x, Value* y, Value* z) const {
    if (fused_) return b.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {x, y, z});
    if (!IsDouble()) return Narrow(b.CreateFAdd(b.CreateFMul(Widen(x), Widen(y)), Widen(z)));
    const DoubleDouble product = TwoProduct(x, y);
    const DoubleDouble sum = TwoSum(product.high, z);
    return Add(sum.high, Add(sum.low, product.low));
  }
  // x * y + z, with the product rounded or not.
  Value* MulAdd(Value* x, Value* y, Value* z) const {
    return fused_ ? Fma(x, y, z) : Add(Mul(x, y), z);
  }
  Value* Trunc(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x); }
  // coefficients[0] + x * (coefficients[1] + …), by Horner's rule.
  Value* Polynomial(Value* x, absl::Span<const double> coefficients) const {
    Value* sum = F(coefficients.back());
    for (int i = static_cast<int>(coefficients.size()) - 2; i >= 0; --i)
      sum = MulAdd(sum, x, F(coefficients[i]));
    return sum;
  }

  // Comparisons are false for NaN.
  Value* Less(Value* x, Value* y) const { return b.CreateFCmpOLT(x, y); }
  Value* Greater(Value* x, Value* y) const { return b.CreateFCmpOGT(x, y); }
  Value* Equal(Value* x, Value* y) const { return b.CreateFCmpOEQ(x, y); }
  Value* Select(Value* condition, Value* x, Value* y) const {
    return b.CreateSelect(condition, x, y);
  }
  // NaN stays NaN.
  Value* Clamp(Value* x, double low, double high) const {
    Value* below = Select(Less(x, F(low)), F(low), x);
    return Select(Greater(below, F(high)), F(high), below);
  }

  Value* Bits(Value* x) const { return b.CreateBitCast(x, integer_type_); }
  Value* FromBits(Value* bits) const { return b.CreateBitCast(bits, type_); }
  Value* ToFloat(Value* integer) const { return b.CreateSIToFP(integer, type_); }
  // 2^exponent for an integer exponent in the normal range.
  Value* PowerOfTwo(Value* exponent) const {
    return FromBits(b.CreateShl(b.CreateAdd(exponent, I(ExponentBias())), I(MantissaBits())));
  }
  // Adding this rounds |x| < 2^(mantissa bits - 2) to an integer, which is then in the low bits of
  // the sum.
  double RoundingConstant() const { return IsDouble() ? 0x1.8p52 : 0x1.8p23; }
  // Returns the integer in a sum with RoundingConstant().
  Value* RoundedInteger(Value* sum) const {
    return b.CreateSub(Bits(sum), Bits(F(RoundingConstant())));
  }
  Value* RoundedFloat(Value* sum) const { return Sub(sum, F(RoundingConstant())); }

  // Error-free sums, the first for |x| >= |y| or x = 0, and the error-free product (Dekker 1971,
  // Knuth 1969). The limit on doubles is the same as for Fma.
  DoubleDouble FastTwoSum(Value* x, Value* y) const {
    Value* sum = Add(x, y);
    return {sum, Add(Sub(x, sum), y)};
  }
  DoubleDouble TwoSum(Value* x, Value* y) const {
    Value* sum = Add(x, y);
    Value* of_y = Sub(sum, x);
    return {sum, Add(Sub(x, Sub(sum, of_y)), Sub(y, of_y))};
  }
  DoubleDouble TwoProduct(Value* x, Value* y) const {
    Value* product = Mul(x, y);
    if (fused_) return {product, Fma(x, y, Neg(product))};
    if (!IsDouble()) {
      Value* exact = b.CreateFMul(Widen(x), Widen(y));
      return {product, Narrow(b.CreateFSub(exact, Widen(product)))};
    }
    const DoubleDouble u = Halves(x);
    const DoubleDouble v = Halves(y);
    Value* error = Sub(Mul(u.high, v.high), product);
    error = Add(Add(error, Mul(u.high, v.low)), Mul(u.low, v.high));
    return {product, Add(error, Mul(u.low, v.low))};
  }
  // x * y for two such sums, without the product of the low parts.
  DoubleDouble Multiply(DoubleDouble x, DoubleDouble y) const {
    DoubleDouble product = TwoProduct(x.high, y.high);
    product.low = MulAdd(x.high, y.low, MulAdd(x.low, y.high, product.low));
    return product;
  }
  DoubleDouble Constant(double high, double low) const { return {F(high), F(low)}; }

  llvm::IRBuilderBase& b;

 private:
  static llvm::Type* IntegerOf(llvm::Type* type) {
    llvm::Type* element = llvm::IntegerType::get(type->getContext(), type->getScalarSizeInBits());
    auto* vector = llvm::dyn_cast<llvm::VectorType>(type);
    return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
  }

  Value* Widen(Value* x) const { return b.CreateFPExt(x, type_->getWithNewType(b.getDoubleTy())); }
  Value* Narrow(Value* x) const { return b.CreateFPTrunc(x, type_); }
  // Splits a double into a sum of two of 26 bits each (Veltkamp 1968).
  DoubleDouble Halves(Value* x) const {
    Value* large = Mul(x, F(0x1p27 + 1));
    Value* high = Sub(large, Sub(large, x));
    return {high, Sub(x, high)};
  }

  llvm::IRBuilderBase::FastMathFlagGuard guard_;
  llvm::Type* type_;
  llvm::Type* integer_type_;
  bool fused_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_LANES_H_
