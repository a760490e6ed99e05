// Tests of values in parts: bytes written to the whole are in each device's part, and are read
// back.
#include "server/buffers/whole.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/testing/fake_device.h"

namespace kiln::buffers {
namespace {

// Every spec of up to `rank` dimensions over the mesh's axes, where each axis splits at most one
// dimension.
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

// The memory of a part, element by element; kPadding where the whole has no element.
constexpr int32_t kPadding = -1;
std::vector<int32_t> Expected(const Placement& placement, const std::vector<int64_t>& shape,
                              int64_t place) {
  const Part part = PartOf(placement, shape, place);
  std::vector<int32_t> elements;
  int64_t count = 1;
  for (const int64_t size : part.memory) count *= size;
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    int64_t stride = 1;
    int64_t at = 0;
    bool is_there = true;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
      const int64_t index = part.begin[dim] + rest % part.memory[dim];
      at += index * stride;
      is_there = is_there && index < shape[dim];
      rest /= part.memory[dim];
    }
    elements.push_back(is_there ? static_cast<int32_t>(at) : kPadding);
  }
  return elements;
}

absl::string_view BytesOf(const std::vector<int32_t>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(int32_t)};
}

void ExpectOk(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

std::vector<int32_t> ElementsOf(const Value& part) {
  std::vector<int32_t> elements(static_cast<size_t>(part.bytes()) / sizeof(int32_t));
  part.pool()->Read(
      part, 0,
      absl::MakeSpan(reinterpret_cast<char*>(elements.data()), elements.size() * sizeof(int32_t)),
      ExpectOk);
  return elements;
}

// Writes in pieces of this size, which end in the middle of runs and of elements.
void Write(Value& value, absl::string_view bytes, size_t piece) {
  for (size_t at = 0; at < bytes.size(); at += piece)
    FillWhole(value, static_cast<int64_t>(at), bytes.substr(at, piece), ExpectOk);
}

std::string Read(const Value& value, size_t piece) {
  std::string read(static_cast<size_t>(value.bytes()), '\0');
  for (size_t at = 0; at < read.size(); at += piece) {
    ReadWhole(value, static_cast<int64_t>(at),
              absl::MakeSpan(read).subspan(at, std::min(piece, read.size() - at)), ExpectOk);
  }
  return read;
}

Placement On(const graph::Mesh& mesh, const graph::Spec& spec) {
  Placement placement{{}, mesh, spec};
  for (int i = 0; i < graph::NumDevices(mesh); ++i)
    placement.devices.push_back(absl::StrCat("cpu:", i));
  return placement;
}

// All shapes of this rank with these sizes.
std::vector<std::vector<int64_t>> AllShapes(size_t rank, const std::vector<int64_t>& sizes) {
  std::vector<std::vector<int64_t>> shapes = {{}};
  for (size_t dim = 0; dim < rank; ++dim) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& shape : shapes) {
      for (const int64_t size : sizes) {
        longer.push_back(shape);
        longer.back().push_back(size);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

// Written bytes are in the parts, and reads return them, for any content of the padding.
TEST_F(WholeTest, EverySpecOfEveryShapeOnSeveralMeshes) {
  const std::vector<graph::Mesh> meshes = {
      {{{"a", 2}}}, {{{"a", 3}}}, {{{"a", 2}, {"b", 2}}}, {{{"a", 1}, {"b", 4}}}};
  std::vector<std::vector<int64_t>> shapes = {{}, {12}, {12, 12}, {4, 12, 12}, {7, 13}, {5, 6, 11}};
  for (const auto& more : {AllShapes(1, {0, 1, 2, 3, 4, 5, 6, 7, 9}), AllShapes(2, {0, 1, 2, 3, 5}),
                           AllShapes(3, {1, 2, 3, 5})})
    shapes.insert(shapes.end(), more.begin(), more.end());
  int padded = 0;
  for (const graph::Mesh& mesh : meshes) {
    for (const std::vector<int64_t>& shape : shapes) {
      for (const graph::Spec& spec : AllSpecs(static_cast<int>(mesh.axes.size()), shape.size())) {
        const Placement placement = On(mesh, spec);
        SCOPED_TRACE(absl::StrCat(placement.ToString(), " of ", absl::StrJoin(shape, ",")));
        const auto value = Make(placement, shape);
        // As left by an earlier user of the device's memory.
        for (const auto& part : value->parts())
          part->pool()->FillPart(*part, 0, std::string(static_cast<size_t>(part->bytes()), '\xa5'),
                                 ExpectOk);
        const std::string bytes = Counting(static_cast<size_t>(value->bytes() / 4));
        Write(*value, bytes, 101);
        for (size_t place = 0; place < value->parts().size(); ++place) {
          std::vector<int32_t> found = ElementsOf(*value->parts()[place]);
          const std::vector<int32_t> want = Expected(placement, shape, static_cast<int64_t>(place));
          ASSERT_EQ(found.size(), want.size());
          for (size_t i = 0; i < want.size(); ++i) {
            if (want[i] == kPadding) found[i] = kPadding;
          }
          ASSERT_EQ(found, want);
          if (found.empty()) continue;
          padded += std::count(want.begin(), want.end(), kPadding) > 0 ? 1 : 0;
          value->parts()[place]->pool()->FillPart(*value->parts()[place], 0, BytesOf(found),
                                                  ExpectOk);
        }
        ASSERT_EQ(Read(*value, 97), bytes);
      }
    }
  }
  EXPECT_GT(padded, 1000);
}

// With parts that are equal on all devices, and with smaller ones on the last devices.
TEST_F(WholeTest, PartsOfUnequalSizes) {
  const Placement placement = On({{{"a", 4}}}, {{0}, {}});
  for (const auto& [size, want] :
       std::vector<std::pair<int64_t, std::vector<int64_t>>>{{8, {2, 2, 2, 2}},
                                                             {7, {2, 2, 2, 1}},
                                                             {5, {2, 2, 1, 0}},
                                                             {3, {1, 1, 1, 0}},
                                                             {1, {1, 0, 0, 0}},
                                                             {0, {0, 0, 0, 0}}}) {
    std::vector<int64_t> has;
    for (int64_t device = 0; device < 4; ++device) {
      const Part part = PartOf(placement, {size, 3}, device);
      has.push_back(part.shape[0]);
      EXPECT_EQ(part.memory, (std::vector<int64_t>{want[0], 3}));
    }
    EXPECT_EQ(has, want) << size;
    EXPECT_EQ(Make(placement, {size, 3})->parts()[3]->bytes(), want[0] * 3 * 4);
  }
}

// For any two layouts, a copy from one to the other through host memory keeps the content.
TEST_F(WholeTest, MovesBetweenLayouts) {
  const std::vector<int64_t> shape = {5, 7};
  std::vector<Placement> placements;
  for (const graph::Mesh& mesh :
       {graph::Mesh{{{"a", 2}}}, graph::Mesh{{{"a", 3}}}, graph::Mesh{{{"a", 2}, {"b", 2}}}}) {
    for (const graph::Spec& spec : AllSpecs(static_cast<int>(mesh.axes.size()), shape.size()))
      placements.push_back(On(mesh, spec));
  }
  const std::string bytes = Counting(5 * 7);
  for (const Placement& from : placements) {
    const auto source = Make(from, shape);
    Write(*source, bytes, 1000);
    for (const Placement& to : placements) {
      const auto target = Make(to, shape);
      Write(*target, Read(*source, 33), 33);
      ASSERT_EQ(Read(*target, 1000), bytes) << from.ToString() << " to " << to.ToString();
    }
  }
}

// Padding needs no more host memory than the copied bytes: a piece of a part is at most as long.
TEST_F(WholeTest, PiecesOfPartsAreNoLongerThanTheirsOfTheWhole) {
  for (const std::vector<int64_t>& shape : AllShapes(3, {1, 3, 5})) {
    for (const graph::Spec& spec : AllSpecs(1, 3)) {
      const Placement placement = On({{{"a", 4}}}, spec);
      for (int64_t device = 0; device < 4; ++device) {
        const Part part = PartOf(placement, shape, device);
        const int64_t whole = 4 * shape[0] * shape[1] * shape[2];
        for (int64_t begin = 0; begin < whole; begin += 7) {
          for (const int64_t end : {begin + 9, begin + 50, begin + 200}) {
            int64_t first = -1;
            int64_t last = 0;
            ForEachRunWithin(shape, 4, part, begin, end, [&](int64_t, int64_t at, int64_t bytes) {
              EXPECT_GE(at, last);
              if (first < 0) first = at;
              last = at + bytes;
            });
            EXPECT_LE(last - first, end - begin);
          }
        }
      }
    }
  }
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
