// Convolutions of stride two with their gradients, on every width, including those whose gradients
// were once wrong on eight lanes.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "tests/full_size/lanes.h"
#include "tests/full_size/layer_kernels.h"
#include "tests/full_size/sweep.h"

namespace kiln::full_size {
namespace {

std::vector<Layer> Shapes() {
  std::ifstream file(KILN_TEST_DATA "/stride_two.txt");
  const auto table = ParseNetworks(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!table.ok()) return {};
  return table->front().layers;
}

TEST(StrideTwo, AllShapesAsByThePlainSchedule) {
  constexpr int64_t kReferencePoints = 400'000;
  const std::vector<Layer> shapes = Shapes();
  ASSERT_EQ(shapes.size(), 44);
  SweepOptions options;
  options.lanes = ExecutableLanes();
  options.comparison.reference_points = kReferencePoints;
  Sweep sweep(options);
  PrintCaseOnCrash();
  // All in float32; those that were wrong also in float64 and bfloat16.
  constexpr size_t kWrong = 8;
  constexpr ir::DType kDTypes[] = {ir::DType::kFloat32, ir::DType::kFloat64, ir::DType::kBFloat16};
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const ir::DType dtype : kDTypes) {
      if (dtype != ir::DType::kFloat32 && i >= kWrong) continue;
      const auto sized = KernelsWithin(shapes[i], shapes[i].options.at('b')[0], dtype, {});
      ASSERT_TRUE(sized.ok()) << shapes[i].text << ": " << sized.status();
      for (const std::string& text : sized->kernels) {
        EXPECT_EQ(sweep.Try(text, shapes[i].text), "");
      }
    }
  }
  std::cout << sweep.Summary() << std::endl;
}

}  // namespace
}  // namespace kiln::full_size
