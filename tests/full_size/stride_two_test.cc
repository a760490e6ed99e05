// Convolutions of stride two with their gradients, on every width: among them those whose gradients
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
  // Each shape in float32 and in one of the others.
  constexpr ir::DType kOthers[] = {ir::DType::kFloat64, ir::DType::kBFloat16, ir::DType::kFloat16};
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const ir::DType dtype : {ir::DType::kFloat32, kOthers[i % std::size(kOthers)]}) {
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
