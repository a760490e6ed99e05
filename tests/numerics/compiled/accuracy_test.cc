// Compares compiled elementary functions with the C library's in double: the largest error in units
// in the last place of float32. Each bound is the measured error, rounded up; a composite that
// loses digits anywhere in its range exceeds it.
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

struct Function {
  std::string op;
  double (*reference)(double);
  double low, high;
  double bound;
};

double Elu(double x) { return x > 0 ? x : std::expm1(x); }

const Function kFunctions[] = {
    {"exp", [](double x) { return std::exp(x); }, -87, 88, 1.5},
    {"log", [](double x) { return std::log(x); }, 1e-30, 1e30, 1.5},
    {"sin", [](double x) { return std::sin(x); }, -1e4, 1e4, 2},
    {"cos", [](double x) { return std::cos(x); }, -1e4, 1e4, 2},
    {"tan", [](double x) { return std::tan(x); }, -100, 100, 4},
    {"tanh", [](double x) { return std::tanh(x); }, -10, 10, 2.5},
    {"erf", [](double x) { return std::erf(x); }, -5, 5, 2.5},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 3},
    {"softplus",
     [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, -80,
     80, 3},
    {"elu", Elu, -20, 20, 2.5},
    {"celu", Elu, -20, 20, 2.5},
    {"selu",
     [](double x) {
       return 1.0507009873554804934193349852946 *
              (x > 0 ? x : 1.6732632423543772848170429916717 * std::expm1(x));
     },
     -20, 20, 3.5},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0, 1e30, 0.5},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1e-30, 1e30, 1.5},
};

// Returns arguments that are spread evenly over the range, and powers of two down to tiny
// magnitudes.
std::vector<double> Arguments(const Function& function) {
  constexpr int kEven = 60000;
  std::vector<double> values;
  for (int i = 0; i < kEven; ++i) {
    values.push_back(function.low + (function.high - function.low) * i / kEven);
  }
  for (double x = 1e-30; x < function.high; x *= 1.003) {
    values.push_back(x);
    if (function.low < 0 && -x >= function.low) values.push_back(-x);
  }
  return values;
}

class AccuracyTest : public testing::TestWithParam<Function> {};

TEST_P(AccuracyTest, KeepsItsDigits) {
  const Function& function = GetParam();
  const std::vector<double> values = Arguments(function);
  const ir::Shape shape = {static_cast<int64_t>(values.size())};
  const HostTensor x = HostTensor::Of(DType::kFloat32, shape, values);
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  ops::Builder builder(*graph.context);
  graph.inputs = {{DType::kFloat32, shape}};
  const auto result = ops::BuildOp(builder, *ops::FindOp(function.op),
                                   {builder.Input(0, DType::kFloat32, shape)}, {}, DType::kInvalid);
  ASSERT_TRUE(result.ok()) << result.status();
  graph.outputs = {*result};
  const auto actual = RunCompiled(graph, {x});
  ASSERT_TRUE(actual.ok()) << actual.status();
  double worst = 0;
  double at = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double want = function.reference(x.Float(i));
    const auto rounded = static_cast<float>(want);
    if (!std::isnormal(rounded)) continue;  // primitives_test tests the ends of the range
    const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
    const double ulp = static_cast<double>(next) - std::abs(rounded);
    const double error = std::abs((*actual)[0].Float(i) - want) / ulp;
    if (error > worst || std::isnan(error)) {
      worst = error;
      at = x.Float(i);
    }
  }
  EXPECT_LE(worst, function.bound) << "at " << at;
  RecordProperty("ulps", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(All, AccuracyTest, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return info.param.op; });

}  // namespace
}  // namespace kiln::numerics
