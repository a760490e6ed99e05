#include "compiler/codegen/math/payne_hanek.h"

#include <cstdint>

#include "compiler/codegen/math/instructions.h"
#include "compiler/codegen/math/lanes.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

constexpr char kName[] = "kiln.reduce_large_angle";

// 64 zeros, then the bits of 2/pi after the binary point.
constexpr uint64_t kTwoOverPi[] = {0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                   0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
constexpr int kWords = sizeof(kTwoOverPi) / sizeof(kTwoOverPi[0]);

class Reduction {
 public:
  explicit Reduction(llvm::Function* function)
      : b(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
        module_(*function->getParent()) {}

  void Run(Value* x) {
    // |x| = significand * 2^exponent.
    Value* bits = b.CreateBitCast(x, b.getInt64Ty());
    Value* biased = b.CreateAnd(b.CreateLShr(bits, 52), 0x7ff);
    Value* significand = b.CreateOr(b.CreateAnd(bits, (uint64_t{1} << 52) - 1), uint64_t{1} << 52);
    // The first bit of 2/pi whose product with the significand's last bit is below four quadrants.
    Value* first_bit = b.CreateSub(biased, b.getInt64(1075 - 62));
    Turns(significand, first_bit);
    Value* quadrant = b.CreateAdd(b.CreateLShr(high_, 62), Rounded());
    Value* rest = Radians();
    // Only |x| was reduced: for a negative x, both parts change their sign.
    Value* negative = b.CreateICmpSLT(bits, b.getInt64(0));
    rest = b.CreateSelect(negative, b.CreateFNeg(rest), rest);
    quadrant = b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant);
    Value* finite = b.CreateICmpNE(biased, b.getInt64(0x7ff));
    rest = b.CreateSelect(finite, rest, llvm::ConstantFP::getNaN(b.getDoubleTy()));
    Value* parts[] = {rest, quadrant};
    b.CreateAggregateRet(parts, 2);
  }

 private:
  // A number of 128 bits. LLVM's SPIR-V backend has no such integers.
  struct Wide {
    Value* high;
    Value* low;
  };

  // high_:middle_:low_ = significand * 192 bits of 2/pi, modulo 2^192: quadrants in fixed point,
  // with 190 bits of fraction.
  void Turns(Value* significand, Value* first_bit) {
    Value* word = b.CreateLShr(first_bit, 6);
    Value* shift = b.CreateAnd(first_bit, 63);
    const Wide low = Product(significand, Window(word, shift, 2));
    Wide middle = Product(significand, Window(word, shift, 1));
    middle.low = b.CreateAdd(middle.low, low.high);
    Value* carry = b.CreateICmpULT(middle.low, low.high);
    middle.high = b.CreateAdd(middle.high, b.CreateZExt(carry, b.getInt64Ty()));
    low_ = low.low;
    middle_ = middle.low;
    high_ = b.CreateAdd(b.CreateMul(significand, Window(word, shift, 0)), middle.high);
  }

  // The product of two 64-bit numbers, computed from their halves.
  Wide Product(Value* x, Value* y) {
    const auto low = [&](Value* of) { return b.CreateAnd(of, 0xffffffff); };
    const auto high = [&](Value* of) { return b.CreateLShr(of, 32); };
    Value* lows = b.CreateMul(low(x), low(y));
    Value* crossed[] = {b.CreateMul(low(x), high(y)), b.CreateMul(high(x), low(y))};
    Value* highs = b.CreateMul(high(x), high(y));
    Value* middle = b.CreateAdd(high(lows), b.CreateAdd(low(crossed[0]), low(crossed[1])));
    highs = b.CreateAdd(highs, b.CreateAdd(high(crossed[0]), high(crossed[1])));
    return {b.CreateAdd(highs, high(middle)), b.CreateOr(b.CreateShl(middle, 32), low(lows))};
  }

  Value* Window(Value* word, Value* shift, int i) {
    return Funnel(Load(b.CreateAdd(word, b.getInt64(i))),
                  Load(b.CreateAdd(word, b.getInt64(i + 1))), shift);
  }

  // Returns the upper half of high:low << shift, for shifts below 64.
  Value* Funnel(Value* high, Value* low, Value* shift) {
    Value* rest = b.CreateLShr(b.CreateLShr(low, 1), b.CreateSub(b.getInt64(63), shift));
    return b.CreateOr(b.CreateShl(high, shift), rest);
  }

  Value* Load(Value* index) {
    return b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), Table(), {index}));
  }

  llvm::GlobalVariable* Table() {
    if (table_ == nullptr) {
      // OpenCL's constants have a separate address space.
      const unsigned space = module_.getTargetTriple().isSPIRV() ? 2 : 0;
      auto* data = llvm::ConstantDataArray::get(module_.getContext(),
                                                llvm::ArrayRef<uint64_t>(kTwoOverPi, kWords));
      table_ = new llvm::GlobalVariable(module_, data->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, data, "", nullptr,
                                        llvm::GlobalValue::NotThreadLocal, space);
    }
    return table_;
  }

  // Returns 1 if the fraction is a half or more, so that it counts down from the next quadrant.
  Value* Rounded() { return b.CreateAnd(b.CreateLShr(high_, 61), 1); }

  // Returns the signed fraction of a quadrant in radians, from its 106 leading bits.
  Value* Radians() {
    const Wide fraction = {Funnel(high_, middle_, b.getInt64(2)),
                           Funnel(middle_, low_, b.getInt64(2))};
    Value* negative = b.CreateICmpSLT(fraction.high, b.getInt64(0));
    const Wide negated = Negate(fraction);
    const Wide magnitude = {b.CreateSelect(negative, negated.high, fraction.high),
                            b.CreateSelect(negative, negated.low, fraction.low)};
    Value* zeros = LeadingZeros(magnitude);
    const Wide normal = ShiftLeft(magnitude, zeros);
    Value* exponent = b.CreateSub(b.getInt64(1023 - 53), zeros);
    Value* scale = b.CreateBitCast(b.CreateShl(exponent, 52), b.getDoubleTy());
    // The leading 106 bits as two doubles of 53 bits each, both exact.
    Value* high = b.CreateFMul(Mantissa(b.CreateLShr(normal.high, 11)), scale);
    Value* low = b.CreateFMul(Mantissa(Funnel(normal.high, normal.low, b.getInt64(42))),
                              b.CreateFMul(scale, Number(0x1p-53)));
    Value* result = TimesHalfPi(high, low);
    return b.CreateSelect(negative, b.CreateFNeg(result), result);
  }

  Wide Negate(const Wide& x) {
    Value* carry = b.CreateZExt(b.CreateICmpEQ(x.low, b.getInt64(0)), b.getInt64Ty());
    return {b.CreateAdd(b.CreateNot(x.high), carry), b.CreateNeg(x.low)};
  }
  Value* LeadingZeros(const Wide& x) {
    const auto count = [&](Value* of) {
      return b.CreateIntrinsic(llvm::Intrinsic::ctlz, {b.getInt64Ty()}, {of, b.getFalse()});
    };
    Value* none = b.CreateICmpEQ(x.high, b.getInt64(0));
    return b.CreateSelect(none, b.CreateAdd(count(x.low), b.getInt64(64)), count(x.high));
  }
  // Shifts by less than 128.
  Wide ShiftLeft(const Wide& x, Value* shift) {
    Value* small = b.CreateAnd(shift, 63);
    Value* low = b.CreateShl(x.low, small);
    Value* whole = b.CreateICmpUGE(shift, b.getInt64(64));
    return {b.CreateSelect(whole, low, Funnel(x.high, x.low, small)),
            b.CreateSelect(whole, b.getInt64(0), low)};
  }

  // Returns the last 53 bits as a number.
  Value* Mantissa(Value* bits) {
    Value* mantissa = b.CreateAnd(bits, (uint64_t{1} << 53) - 1);
    return b.CreateSIToFP(mantissa, b.getDoubleTy());
  }

  Value* TimesHalfPi(Value* high, Value* low) {
    const Lanes l(b, b.getDoubleTy());
    // pi/2 in two parts; the product of the low parts is too small to matter.
    Value* pi = Number(0x1.921fb54442d18p+0);
    const DoubleDouble product = l.TwoProduct(high, pi);
    Value* error = l.MulAdd(high, Number(0x1.1a62633145c07p-54), product.low);
    return l.Add(product.high, l.MulAdd(low, pi, error));
  }

  Value* Number(double value) { return llvm::ConstantFP::get(b.getDoubleTy(), value); }

  llvm::IRBuilder<> b;
  llvm::Module& module_;
  llvm::GlobalVariable* table_ = nullptr;
  Value* high_ = nullptr;
  Value* middle_ = nullptr;
  Value* low_ = nullptr;
};

}  // namespace

llvm::Function* PayneHanek(const llvm::Function& caller, llvm::Module& module) {
  if (llvm::Function* made = module.getFunction(kName)) return made;
  llvm::LLVMContext& context = module.getContext();
  auto* result =
      llvm::StructType::get(llvm::Type::getDoubleTy(context), llvm::Type::getInt64Ty(context));
  auto* type = llvm::FunctionType::get(result, {llvm::Type::getDoubleTy(context)}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, kName, module);
  function->setDoesNotThrow();
  AllowInstructionsOf(caller, *function);
  Reduction(function).Run(function->getArg(0));
  return function;
}

}  // namespace kiln::codegen
