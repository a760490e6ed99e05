// The vocabulary in which math_*.cc are written: floating-point and integer operations on one type,
// which is float, double or a vector of them. Only math*.cc may include this.
#ifndef KILN_COMPILER_CODEGEN_MATH_LANES_H_
#define KILN_COMPILER_CODEGEN_MATH_LANES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

// A sum of two values of which the second is below the first's last place.
struct DoubleDouble {
  llvm::Value* high;
  llvm::Value* low;
};

class Lanes {
 public:
  using Value = llvm::Value;

  // Operations on `type`; while it lives, the builder has no fast-math flags.
  Lanes(llvm::IRBuilderBase& builder, llvm::Type* type)
      : b(builder), guard_(builder), type_(type), integer_type_(IntegerOf(type)) {
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
  // x * y + z, rounded once.
  Value* Fma(Value* x, Value* y, Value* z) const {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {x, y, z});
  }
  Value* Trunc(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x); }
  // coefficients[0] + x * (coefficients[1] + …), by Horner's rule.
  Value* Polynomial(Value* x, absl::Span<const double> coefficients) const {
    Value* sum = F(coefficients.back());
    for (int i = static_cast<int>(coefficients.size()) - 2; i >= 0; --i)
      sum = Fma(sum, x, F(coefficients[i]));
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
  // Adding this rounds |x| < 2^(mantissa bits - 2) to an integer, which then stands in the low bits
  // of the sum.
  double RoundingConstant() const { return IsDouble() ? 0x1.8p52 : 0x1.8p23; }
  // The integer in a sum with RoundingConstant().
  Value* RoundedInteger(Value* sum) const {
    return b.CreateSub(Bits(sum), Bits(F(RoundingConstant())));
  }
  Value* RoundedFloat(Value* sum) const { return Sub(sum, F(RoundingConstant())); }

  // Error-free sum, for |x| >= |y| or x = 0, and error-free product (Dekker 1971; with fused
  // multiply-add).
  DoubleDouble FastTwoSum(Value* x, Value* y) const {
    Value* sum = Add(x, y);
    return {sum, Add(Sub(x, sum), y)};
  }
  DoubleDouble TwoProduct(Value* x, Value* y) const {
    Value* product = Mul(x, y);
    return {product, Fma(x, y, Neg(product))};
  }
  // x * y for two such sums, without the product of the low parts.
  DoubleDouble Multiply(DoubleDouble x, DoubleDouble y) const {
    DoubleDouble product = TwoProduct(x.high, y.high);
    product.low = Fma(x.high, y.low, Fma(x.low, y.high, product.low));
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

  llvm::IRBuilderBase::FastMathFlagGuard guard_;
  llvm::Type* type_;
  llvm::Type* integer_type_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_LANES_H_
