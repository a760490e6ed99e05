// Compares generated functions with the C library's long double ones, over all exponents, at every
// width and with every set of instructions that this machine can execute.
#include "compiler/codegen/math/math.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/codegen/math/instructions.h"
#include "compiler/codegen/x86/x86.h"
#include "drivers/cpu/host.h"
#include "drivers/cpu/instructions.h"
#include "gtest/gtest.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using Emitter = std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* x, llvm::Value* y)>;

// All targets that this machine can execute, the widest first.
const std::vector<drivers::Target>& Targets() {
  static const std::vector<drivers::Target>& targets = *[] {
    auto* all = new std::vector<drivers::Target>;
    for (const std::string& words : drivers::cpu::ExecutableFeatures())
      all->push_back(*drivers::cpu::DetectTarget(1, words));
    return all;
  }();
  return targets;
}

// f(const T* x, const T* y, T* result) on `lanes` elements at once.
template <typename T>
class Compiled {
 public:
  Compiled(const drivers::Target& target, const Emitter& emit, int lanes) : lanes_(lanes) {
    llvm::LLVMContext context;
    llvm::Module module("math", context);
    llvm::IRBuilder<> b(context);
    auto* pointer = b.getPtrTy();
    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer}, false),
        llvm::Function::ExternalLinkage, "f", module);
    AllowInstructions(target, *function);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    // The caller's fast-math flags must not matter.
    llvm::FastMathFlags fast;
    fast.setFast();
    b.setFastMathFlags(fast);
    llvm::Type* type = sizeof(T) == 8 ? b.getDoubleTy() : b.getFloatTy();
    if (lanes > 1) type = llvm::FixedVectorType::get(type, lanes);
    auto load = [&](int i) {
      return b.CreateAlignedLoad(type, function->getArg(i), llvm::Align(sizeof(T)));
    };
    b.CreateAlignedStore(emit(b, load(0), load(1)), function->getArg(2), llvm::Align(sizeof(T)));
    b.CreateRetVoid();
    auto blob = EmitBlob(module, target, "f");
    EXPECT_TRUE(blob.ok()) << blob.status();
    if (!blob.ok()) return;
    size_ = blob->code.size();
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, blob->code.data(), size_);
    mprotect(memory_, size_, PROT_READ | PROT_EXEC);
    call_ = reinterpret_cast<void (*)(const T*, const T*, T*)>(static_cast<char*>(memory_) +
                                                               blob->entry);
  }
  ~Compiled() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  std::vector<T> Run(std::vector<T> x, std::vector<T> y) const {
    const size_t size = x.size();
    const size_t padded = (size + lanes_ - 1) / lanes_ * lanes_;
    x.resize(padded, T(1));
    y.resize(padded, T(1));
    std::vector<T> result(padded);
    for (size_t i = 0; call_ != nullptr && i < padded; i += lanes_) call_(&x[i], &y[i], &result[i]);
    result.resize(size);
    return result;
  }

 private:
  int lanes_;
  void* memory_ = nullptr;
  size_t size_ = 0;
  void (*call_)(const T*, const T*, T*) = nullptr;
};

using Reference = std::function<long double(long double x, long double y)>;

// Returns the error of `got` in units of the last place of a T near `want`; infinite for a wrong
// NaN or infinity, or a zero with the wrong sign.
template <typename T>
double UlpError(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (rounded == got)
    return rounded == 0 && std::signbit(rounded) != std::signbit(got) ? INFINITY : 0.5;
  // The number after the largest one is infinity.
  if (std::isinf(got)) got = std::copysign(std::numeric_limits<T>::max(), got);
  if (std::isinf(rounded)) want = std::copysign(std::numeric_limits<T>::max(), rounded);
  int exponent = 0;
  std::frexp(static_cast<long double>(rounded == 0 || std::isinf(rounded) ? got : rounded),
             &exponent);
  const int lowest = std::numeric_limits<T>::min_exponent;
  const long double ulp =
      std::ldexp(1.0L, std::max(exponent, lowest) - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

template <typename T>
std::vector<T> SpecialValues() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           Limits::denorm_min(),
                           Limits::min(),
                           Limits::min() / 2,
                           Limits::epsilon(),
                           T(0.5),
                           T(1),
                           T(1) + Limits::epsilon(),
                           T(1) - Limits::epsilon() / 2,
                           T(1.5),
                           T(2),
                           T(3),
                           T(4),
                           T(10),
                           T(88.7),
                           T(127.99),
                           T(128),
                           T(149),
                           T(150),
                           T(1024),
                           T(1074.5),
                           T(1e9),
                           T(M_PI),
                           T(M_PI_2),
                           T(16777215),
                           T(16777216),
                           T(9007199254740991.0),
                           T(100000),
                           T(100001),
                           T(1073741825.0),
                           Limits::max(),
                           Limits::infinity()};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  values.push_back(Limits::quiet_NaN());
  return values;
}

// Returns bit patterns spread over all exponents, and `count` numbers within the range where the
// function does its work.
template <typename T>
std::vector<T> Samples(int count, T low, T high) {
  std::vector<T> samples = SpecialValues<T>();
  std::mt19937_64 random(12345);
  for (int i = 0; i < count; ++i) {
    T value;
    const uint64_t bits = random();
    std::memcpy(&value, &bits, sizeof(T));
    samples.push_back(value);
  }
  std::uniform_real_distribution<T> uniform(low, high);
  for (int i = 0; i < count; ++i) samples.push_back(uniform(random));
  return samples;
}

struct Function {
  std::string name;
  Emitter emit;
  Reference reference;
  double low, high;  // where results are neither trivial nor out of range
  double float_bound, double_bound;
};

Emitter Unary(llvm::Value* (*emit)(llvm::IRBuilderBase&, llvm::Value*)) {
  return [emit](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) { return emit(b, x); };
}

std::vector<Function> UnaryFunctions() {
  auto of = [](long double (*f)(long double)) {
    return [f](long double x, long double) { return f(x); };
  };
  return {
      {"exp2", Unary(EmitExp2), of(exp2l), -1080, 1030, 1.0, 1.0},
      {"exp2 near zero", Unary(EmitExp2), of(exp2l), -3, 3, 1.0, 1.0},
      {"exp", Unary(EmitExp), of(expl), -750, 715, 1.0, 1.0},
      {"exp near zero", Unary(EmitExp), of(expl), -90, 90, 1.0, 1.0},
      {"log2", Unary(EmitLog2), of(log2l), 0.25, 4, 1.0, 0.6},
      {"log", Unary(EmitLog), of(logl), 0.25, 4, 1.0, 0.6},
      {"log2 near one", Unary(EmitLog2), of(log2l), 0.99, 1.01, 1.0, 0.6},
      {"log near one", Unary(EmitLog), of(logl), 0.99, 1.01, 1.0, 0.6},
      {"sin", Unary(EmitSin), of(sinl), -10, 10, 2.0, 2.0},
      {"sin moderate", Unary(EmitSin), of(sinl), -200000, 200000, 2.0, 2.0},
      {"cos", Unary(EmitCos), of(cosl), -10, 10, 2.0, 2.0},
      {"cos moderate", Unary(EmitCos), of(cosl), -200000, 200000, 2.0, 2.0},
      {"sqrt", Unary(EmitSqrt), of(sqrtl), 0, 10, 0.5001, 0.5001},
      {"reciprocal", Unary(EmitReciprocal), [](long double x, long double) { return 1 / x; }, -2, 2,
       0.5001, 0.5001},
      {"trunc", Unary(EmitTrunc), of(truncl), -5, 5, 0.5, 0.5},
  };
}

// Compares the first `count` results.
template <typename T>
void Check(const drivers::Target& target, const Function& function, const std::vector<T>& x,
           const std::vector<T>& y, const std::vector<long double>& want, size_t count, int lanes) {
  count = std::min(count, x.size());
  const std::vector<T> got =
      Compiled<T>(target, function.emit, lanes)
          .Run({x.begin(), x.begin() + count}, {y.begin(), y.begin() + count});
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const double error = UlpError<T>(got[i], want[i]);
    if (error > worst) worst = error, at = i;
  }
  EXPECT_LE(worst, sizeof(T) == 8 ? function.double_bound : function.float_bound)
      << function.name << " of " << lanes << " lanes with " << target.variant << " at "
      << std::hexfloat << x[at] << ", " << y[at] << ": got " << got[at] << ", want "
      << static_cast<T>(want[at]);
  if (count == x.size()) {
    printf("%-16s %s  %-15s %.3f ulp at %a, %a\n", function.name.c_str(),
           sizeof(T) == 8 ? "double" : "float ", target.variant.c_str(), worst,
           static_cast<double>(x[at]), static_cast<double>(y[at]));
  }
}

template <typename T>
void CheckEverywhere(const Function& function, const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<long double> want;
  for (size_t i = 0; i < x.size(); ++i) want.push_back(function.reference(x[i], y[i]));
  constexpr size_t kFew = 3000;  // where only the width differs
  for (const drivers::Target& target : Targets()) {
    const int natural = target.limits.vector_bytes / 4;
    Check<T>(target, function, x, y, want, x.size(), natural);
    for (int lanes : {1, 4, 8, 16}) {
      if (lanes == 1 || (&target == &Targets()[0] && lanes != natural))
        Check<T>(target, function, x, y, want, kFew, lanes);
    }
  }
}

TEST(MathTest, UnaryFloat) {
  for (const Function& function : UnaryFunctions()) {
    const auto x = Samples<float>(200000, function.low, function.high);
    CheckEverywhere<float>(function, x, x);
  }
}

TEST(MathTest, UnaryDouble) {
  for (const Function& function : UnaryFunctions()) {
    const auto x = Samples<double>(100000, function.low, function.high);
    CheckEverywhere<double>(function, x, x);
  }
}

// Numbers close to multiples of pi/2 lose the most digits in the reduction.
TEST(MathTest, SineNearItsZeros) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (int64_t k = 1; k < 2000000; k += 1 + k / 997) {
    const long double zero = k * (M_PIl / 2);
    floats.push_back(static_cast<float>(zero));
    doubles.push_back(static_cast<double>(zero));
  }
  // The worst cases of Muller's "Elementary Functions", chapter on range reduction.
  doubles.push_back(0x1.6ac5b262ca1ffp+849);
  floats.push_back(0x1.47d0fep+34);
  for (const Function& function : UnaryFunctions()) {
    if (function.name != "sin" && function.name != "cos") continue;
    CheckEverywhere<float>(function, floats, floats);
    CheckEverywhere<double>(function, doubles, doubles);
  }
}

template <typename T>
void CheckPow(double bound) {
  Function pow{"pow", EmitPow, powl, 0, 0, bound, bound};
  std::vector<T> x, y;
  for (T a : SpecialValues<T>()) {
    for (T b : SpecialValues<T>()) x.push_back(a), y.push_back(b);
  }
  CheckEverywhere<T>(pow, x, y);
  // Random bases; the exponents spread the results over the whole range.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> bases = Samples<T>(50000, 0.5, 2), exponents;
  const T range = std::numeric_limits<T>::max_exponent + std::numeric_limits<T>::digits;
  for (T& base : bases) {
    const T scale = range / std::fabs(std::log2(std::fabs(base)));
    exponents.push_back(uniform(random) * (std::isfinite(scale) ? scale : T(1)));
    if (base < 0) exponents.back() = std::trunc(exponents.back());
  }
  CheckEverywhere<T>(pow, bases, exponents);
}

TEST(MathTest, PowFloat) { CheckPow<float>(1.0); }
TEST(MathTest, PowDouble) { CheckPow<double>(1.0); }

TEST(MathTest, MaxAndMinPropagateNaN) {
  std::vector<float> x, y;
  for (float a : SpecialValues<float>()) {
    for (float b : SpecialValues<float>()) x.push_back(a), y.push_back(b);
  }
  for (const drivers::Target& target : Targets()) {
    const int lanes = target.limits.vector_bytes / 4;
    const auto max = Compiled<float>(target, EmitMax, lanes).Run(x, y);
    const auto min = Compiled<float>(target, EmitMin, lanes).Run(x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) || std::isnan(y[i])) {
        EXPECT_TRUE(std::isnan(max[i]) && std::isnan(min[i])) << x[i] << " " << y[i];
      } else {
        EXPECT_EQ(max[i], std::max(x[i], y[i]));
        EXPECT_EQ(min[i], std::min(x[i], y[i]));
      }
    }
  }
}

}  // namespace
}  // namespace kiln::codegen
