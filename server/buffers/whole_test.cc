// Values in parts: what is written to the whole is what each device has, and what is read again.
#include "server/buffers/whole.h"

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/testing/fake_device.h"

namespace kiln::buffers {
namespace {

// Every spec of up to `rank` dimensions over the mesh's axes, each of which splits one at most.
std::vector<graph::Spec> AllSpecs(int axes, size_t rank) {
  std::vector<graph::Spec> specs = {graph::Spec(rank)};
  for (int axis = 0; axis < axes; ++axis) {
    for (size_t i = specs.size(); i-- > 0;) {
      for (size_t dim = 0; dim < rank; ++dim) {
        graph::Spec more = specs[i];
        more[dim].push_back(axis);
        specs.push_back(more);
        if (more[dim].size() < 2) continue;
        std::swap(more[dim][0], more[dim].back());
        specs.push_back(more);
      }
    }
  }
  return specs;
}

class WholeTest : public ::testing::Test {
 protected:
  WholeTest() {
    for (int i = 0; i < 4; ++i) {
      devices_.push_back(
          std::make_unique<kiln::testing::FakeDevice>(absl::StrCat("cpu:", i), 1 << 20));
      pools_.push_back(std::make_shared<Pool>(*devices_.back(), 0));
    }
  }

  std::shared_ptr<Value> Make(const Placement& placement, const std::vector<int64_t>& shape) {
    const auto account = std::make_shared<Account>();
    return *AllocateParts(std::make_shared<const TensorType>(TensorType{ir::DType::kInt32, shape}),
                          std::make_shared<const Placement>(placement),
                          [&](size_t place, std::shared_ptr<const TensorType> part) {
                            return pools_[place]->Allocate(std::move(part), account);
                          });
  }

  std::vector<std::unique_ptr<kiln::testing::FakeDevice>> devices_;
  std::vector<std::shared_ptr<Pool>> pools_;
};

std::string Counting(size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return {reinterpret_cast<const char*>(numbers.data()), count * sizeof(int32_t)};
}

// One element after another, by their indices.
std::string Expected(const Part& part, const std::vector<int64_t>& shape) {
  std::string bytes;
  int64_t count = 1;
  for (const int64_t size : part.shape) count *= size;
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    int64_t stride = 1;
    int32_t at = 0;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
      at += static_cast<int32_t>((part.begin[dim] + rest % part.shape[dim]) * stride);
      rest /= part.shape[dim];
    }
    bytes.append(reinterpret_cast<const char*>(&at), sizeof(at));
  }
  return bytes;
}

TEST_F(WholeTest, EverySpecOnSeveralMeshes) {
  const std::vector<graph::Mesh> meshes = {
      {{{"a", 2}}}, {{{"a", 3}}}, {{{"a", 2}, {"b", 2}}}, {{{"a", 1}, {"b", 4}}}};
  int tried = 0;
  for (const graph::Mesh& mesh : meshes) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {12}, {12, 4 * 3}, {4, 12, 12}, {12, 0}}) {
      for (const graph::Spec& spec : AllSpecs(static_cast<int>(mesh.axes.size()), shape.size())) {
        if (!graph::CheckEvenSpec(mesh, spec, shape, "it").ok()) continue;
        ++tried;
        Placement placement{{}, mesh, spec};
        for (int i = 0; i < graph::NumDevices(mesh); ++i)
          placement.devices.push_back(absl::StrCat("cpu:", i));
        const auto value = Make(placement, shape);
        const std::string bytes = Counting(static_cast<size_t>(value->bytes() / 4));
        // In pieces that end in the middle of runs and of elements.
        const size_t piece = 101;
        for (size_t at = 0; at < bytes.size(); at += piece) {
          FillWhole(*value, static_cast<int64_t>(at), absl::string_view(bytes).substr(at, piece),
                    [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
        }
        for (size_t place = 0; place < value->parts().size(); ++place) {
          std::string part(static_cast<size_t>(value->parts()[place]->bytes()), '\0');
          pools_[place]->Read(*value->parts()[place], 0, absl::MakeSpan(part),
                              [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
          EXPECT_EQ(part, Expected(PartOf(placement, shape, static_cast<int64_t>(place)), shape))
              << placement.ToString();
        }
        std::string read(bytes.size(), '\0');
        for (size_t at = 0; at < bytes.size(); at += 97) {
          ReadWhole(*value, static_cast<int64_t>(at),
                    absl::MakeSpan(read).subspan(at, std::min<size_t>(97, bytes.size() - at)),
                    [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
        }
        EXPECT_EQ(read, bytes) << placement.ToString();
      }
    }
  }
  EXPECT_GT(tried, 50);
}

TEST_F(WholeTest, OfEqualPartsOneIsRead) {
  const Placement placement{
      {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}, {{{"a", 2}, {"b", 2}}}, {{1}, {}}};
  EXPECT_EQ(DifferentParts(placement, {4, 2}), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(DifferentParts({{"cpu:0", "cpu:1"}, {{{"a", 2}}}, {{}}}, {4}),
            (std::vector<size_t>{0}));
}

TEST_F(WholeTest, APartThatCannotBeMadeLeavesNothing) {
  const auto account = std::make_shared<Account>();
  int made = 0;
  const auto value = AllocateParts(
      std::make_shared<const TensorType>(TensorType{ir::DType::kInt32, {8}}),
      std::make_shared<const Placement>(Placement{{"cpu:0", "cpu:1"}, {{{"a", 2}}}, {{0}}}),
      [&](size_t place,
          std::shared_ptr<const TensorType> part) -> absl::StatusOr<std::shared_ptr<Value>> {
        if (made++ == 1) return absl::ResourceExhaustedError("full");
        return pools_[place]->Allocate(std::move(part), account);
      });
  EXPECT_EQ(value.status(), absl::ResourceExhaustedError("full"));
  EXPECT_EQ(account->bytes(), 0);
  EXPECT_EQ(pools_[0]->used_bytes(), 0);
}

TEST_F(WholeTest, ALostPartFailsIt) {
  const auto value = Make({{"cpu:0", "cpu:1"}, {{{"a", 2}}}, {{0}}}, {8});
  value->Resolve(absl::OkStatus());
  pools_[1]->BeginLife();
  EXPECT_TRUE(value->lost());
  std::string read(32, '\0');
  absl::Status status;
  ReadWhole(*value, 0, absl::MakeSpan(read), [&](const absl::Status& got) { status = got; });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace kiln::buffers
