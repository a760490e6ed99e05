#include "compiler/codegen/math_payne_hanek.h"

#include <cstdint>

#include "compiler/codegen/instructions.h"
#include "compiler/codegen/math_lanes.h"
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
    // Only |x| was reduced: with x, both parts change their sign.
    Value* negative = b.CreateICmpSLT(bits, b.getInt64(0));
    rest = b.CreateSelect(negative, b.CreateFNeg(rest), rest);
    quadrant = b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant);
    Value* finite = b.CreateICmpNE(biased, b.getInt64(0x7ff));
    rest = b.CreateSelect(finite, rest, llvm::ConstantFP::getNaN(b.getDoubleTy()));
    Value* parts[] = {rest, quadrant};
    b.CreateAggregateRet(parts, 2);
  }

 private:
  // high_:middle_:low_ = significand * 192 bits of 2/pi, modulo 2^192: a fixed-point number of
  // quadrants with 190 bits after the point.
  void Turns(Value* significand, Value* first_bit) {
    Value* word = b.CreateLShr(first_bit, 6);
    Value* shift = b.CreateAnd(first_bit, 63);
    Value* low = b.CreateMul(Wide(significand), Wide(Window(word, shift, 2)));
    Value* middle = b.CreateAdd(b.CreateMul(Wide(significand), Wide(Window(word, shift, 1))),
                                b.CreateLShr(low, 64));
    Value* high = b.CreateAdd(b.CreateMul(Wide(significand), Wide(Window(word, shift, 0))),
                              b.CreateLShr(middle, 64));
    low_ = Narrow(low);
    middle_ = Narrow(middle);
    high_ = Narrow(high);
  }

  Value* Window(Value* word, Value* shift, int i) {
    Value* first = Load(b.CreateAdd(word, b.getInt64(i)));
    Value* second = Load(b.CreateAdd(word, b.getInt64(i + 1)));
    return b.CreateIntrinsic(llvm::Intrinsic::fshl, {b.getInt64Ty()}, {first, second, shift});
  }

  Value* Load(Value* index) {
    return b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), Table(), {index}));
  }

  llvm::GlobalVariable* Table() {
    if (table_ == nullptr) {
      auto* data = llvm::ConstantDataArray::get(module_.getContext(),
                                                llvm::ArrayRef<uint64_t>(kTwoOverPi, kWords));
      table_ = new llvm::GlobalVariable(module_, data->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, data);
    }
    return table_;
  }

  // 1 if the fraction is a half or more, so that it counts down from the next quadrant.
  Value* Rounded() { return b.CreateAnd(b.CreateLShr(high_, 61), 1); }

  // The signed fraction of a quadrant as radians, from its 106 leading bits.
  Value* Radians() {
    Value* point = b.CreateOr(b.CreateShl(Wide(high_), 66), b.CreateShl(Wide(middle_), 2));
    Value* fraction = b.CreateOr(point, Wide(b.CreateLShr(low_, 62)));
    Value* negative = b.CreateICmpSLT(fraction, llvm::ConstantInt::get(fraction->getType(), 0));
    Value* magnitude = b.CreateSelect(negative, b.CreateNeg(fraction), fraction);
    Value* zeros =
        b.CreateIntrinsic(llvm::Intrinsic::ctlz, {magnitude->getType()}, {magnitude, b.getFalse()});
    Value* normal = b.CreateShl(magnitude, zeros);
    Value* exponent = b.CreateSub(b.getInt64(1023 - 53), Narrow(zeros));
    Value* scale = b.CreateBitCast(b.CreateShl(exponent, 52), b.getDoubleTy());
    // The leading 106 bits as two doubles of 53 bits each, both exact.
    Value* high = b.CreateFMul(Mantissa(normal, 75), scale);
    Value* low = b.CreateFMul(Mantissa(normal, 22), b.CreateFMul(scale, Number(0x1p-53)));
    Value* result = TimesHalfPi(high, low);
    return b.CreateSelect(negative, b.CreateFNeg(result), result);
  }

  Value* Mantissa(Value* bits, int first) {
    Value* mantissa = b.CreateAnd(Narrow(b.CreateLShr(bits, first)), (uint64_t{1} << 53) - 1);
    return b.CreateSIToFP(mantissa, b.getDoubleTy());
  }

  Value* TimesHalfPi(Value* high, Value* low) {
    const Lanes l(b, b.getDoubleTy());
    // pi/2 in two parts; the product of the low parts is too small to be seen.
    Value* pi = Number(0x1.921fb54442d18p+0);
    const DoubleDouble product = l.TwoProduct(high, pi);
    Value* error = l.MulAdd(high, Number(0x1.1a62633145c07p-54), product.low);
    return l.Add(product.high, l.MulAdd(low, pi, error));
  }

  Value* Number(double value) { return llvm::ConstantFP::get(b.getDoubleTy(), value); }
  Value* Wide(Value* x) { return b.CreateZExt(x, b.getInt128Ty()); }
  Value* Narrow(Value* x) { return b.CreateTrunc(x, b.getInt64Ty()); }

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
