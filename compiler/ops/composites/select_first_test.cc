// Selection at many lengths, counts and levels, compared with a stable sort.
#include "compiler/ops/composites/select_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "compiler/ops/testing/evaluate.h"

namespace kiln::ops {
namespace {

using ir::DType;

constexpr DType kOrderedDTypes[] = {DType::kBool,    DType::kInt8,    DType::kUInt8,
                                    DType::kInt32,   DType::kUInt32,  DType::kInt64,
                                    DType::kUInt64,  DType::kFloat16, DType::kBFloat16,
                                    DType::kFloat32, DType::kFloat64};

// Few distinct values, with those that have rules of their own.
HostTensor ManyEqual(DType dtype, const ir::Shape& shape, uint32_t seed) {
  std::minstd_rand random(seed);
  HostTensor values = HostTensor::Zeros(dtype, shape);
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
  constexpr int64_t kEnds[] = {0, -1, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int32_t>::min()};
  for (int64_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<int64_t>(random() % 12) - 6;
    const size_t special = random() % 20;
    if (ir::IsFloat(dtype)) {
      values.SetFloat(i, special < 5 ? kSpecial[special] : static_cast<double>(number) / 2);
    } else {
      values.SetInt(i, special < 5 ? kEnds[special] : number);
    }
  }
  return values;
}

// Returns whether element i is less than element j; NaN is larger than all.
bool IsLess(const HostTensor& x, int64_t i, int64_t j) {
  if (ir::IsFloat(x.dtype)) {
    if (std::isnan(x.Float(i))) return false;
    return std::isnan(x.Float(j)) || x.Float(i) < x.Float(j);
  }
  if (x.dtype == DType::kUInt64) {
    return static_cast<uint64_t>(x.Int(i)) < static_cast<uint64_t>(x.Int(j));
  }
  return x.Int(i) < x.Int(j);
}

std::vector<int64_t> ExpectedPositions(const HostTensor& x, int64_t count, bool descending) {
  const int64_t outer = x.shape[0], length = x.shape[1], inner = x.shape[2];
  std::vector<int64_t> expected(outer * count * inner);
  for (int64_t column = 0; column < outer * inner; ++column) {
    const int64_t first = column / inner * length * inner + column % inner;
    std::vector<int64_t> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const int64_t a = first + i * inner, b = first + j * inner;
      return descending ? IsLess(x, b, a) : IsLess(x, a, b);
    });
    for (int64_t i = 0; i < count; ++i) {
      expected[(column / inner * count + i) * inner + column % inner] = order[i];
    }
  }
  return expected;
}

void ExpectSelected(DType dtype, const ir::Shape& shape, int64_t count, bool descending,
                    const std::optional<BlockLevels>& levels) {
  ir::Context context;
  Builder b(context);
  const HostTensor x = ManyEqual(dtype, shape, static_cast<uint32_t>(shape[1] + count));
  const ir::Node* positions =
      FirstPositions(b, b.Input(0, dtype, shape), {shape[1], shape[1]}, count, descending, levels);
  const auto result = Evaluate({&positions, 1}, {&x, 1});
  ASSERT_TRUE(result.ok()) << result.status();
  const HostTensor& got = (*result)[0];
  ASSERT_EQ(got.shape, ir::Shape({shape[0], count, shape[2]}));
  const std::vector<int64_t> expected = ExpectedPositions(x, count, descending);
  for (int64_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got.Int(i), expected[i])
        << i << ": " << count << " of " << shape[1] << ", " << ir::Name(dtype)
        << (descending ? ", descending" : "") << (levels.has_value() ? ", ratio " : "")
        << (levels.has_value() ? std::to_string(levels->ratio) : "");
  }
}

TEST(SelectFirstTest, AtManyLengthsAndLevels) {
  int selected = 0;
  for (const int64_t length : {5, 16, 31, 64, 100, 333}) {
    for (const int64_t count : {1, 2, 3, 8, 13, 64}) {
      for (const int64_t ratio : {2, 3, 7, 16}) {
        for (int number = 1; number <= 4; ++number) {
          const BlockLevels levels = MakeBlockLevels(length, ratio, number);
          if (count > length || !CanSelect(levels, length, count)) continue;
          ++selected;
          ExpectSelected(DType::kFloat32, {1, length, 1}, count, length % 2 == 0, levels);
          // Keys and positions apart.
          ExpectSelected(DType::kInt64, {1, length, 1}, count, length % 2 == 1, levels);
        }
      }
    }
  }
  EXPECT_GT(selected, 100);
}

TEST(SelectFirstTest, OfAllDTypes) {
  for (const DType dtype : kOrderedDTypes) {
    for (const bool descending : {false, true}) {
      ExpectSelected(dtype, {2, 150, 3}, 5, descending, MakeBlockLevels(150, 4, 2));
      ExpectSelected(dtype, {2, 150, 3}, 5, descending, std::nullopt);
      ExpectSelected(dtype, {3, 40, 1}, 1, descending, std::nullopt);
      ExpectSelected(dtype, {1, 20, 2}, 20, descending, std::nullopt);
    }
  }
}

// Padding sorts after NaN and the largest integers, of which there may be many.
TEST(SelectFirstTest, PaddingIsNeverChosen) {
  for (const DType dtype : {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kFloat64}) {
    ir::Context context;
    Builder b(context);
    HostTensor x = HostTensor::Zeros(dtype, {1, 21, 1});
    for (int64_t i = 0; i < x.size(); ++i) {
      if (ir::IsFloat(dtype)) {
        x.SetFloat(i, NAN);
      } else {
        x.SetInt(i, dtype == DType::kInt32 ? std::numeric_limits<int32_t>::max()
                                           : std::numeric_limits<int64_t>::max());
      }
    }
    const ir::Node* positions = FirstPositions(b, b.Input(0, dtype, x.shape), {21, 21}, 6, false,
                                               MakeBlockLevels(21, 3, 1));
    const auto result = Evaluate({&positions, 1}, {&x, 1});
    ASSERT_TRUE(result.ok()) << result.status();
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ((*result)[0].Int(i), i) << ir::Name(dtype);
  }
}

TEST(SelectFirstTest, LevelsAreChosenWhereTheyAreFaster) {
  const auto vocabulary = ChooseBlockLevels(64, 50257, 50);
  ASSERT_TRUE(vocabulary.has_value());
  EXPECT_TRUE(CanSelect(*vocabulary, 50257, 50));
  EXPECT_GE(vocabulary->lengths[0], 50257);
  EXPECT_LE(vocabulary->lengths.back(), 1024);
  EXPECT_TRUE(ChooseBlockLevels(1, 1 << 20, 1000).has_value());
  // Half of the elements, all of them, the lowest one, and short rows.
  EXPECT_FALSE(ChooseBlockLevels(64, 8192, 4096).has_value());
  EXPECT_FALSE(ChooseBlockLevels(1, 1 << 20, 1 << 20).has_value());
  EXPECT_FALSE(ChooseBlockLevels(64, 50257, 1).has_value());
  EXPECT_FALSE(ChooseBlockLevels(8192, 64, 8).has_value());
  EXPECT_FALSE(ChooseBlockLevels(1, 100, 3).has_value());
}

TEST(SelectFirstTest, EveryChoiceCanSelect) {
  for (const int64_t columns : {1, 64, 100'000}) {
    for (int64_t length = 2; length < 100'000'000; length = length * 3 + 1) {
      for (int64_t count = 1; count <= length; count = count * 2 + 1) {
        const auto levels = ChooseBlockLevels(columns, length, count);
        if (!levels.has_value()) continue;
        EXPECT_TRUE(CanSelect(*levels, length, count)) << count << " of " << length;
        EXPECT_GE(levels->lengths[0], length);
      }
    }
  }
}

TEST(SelectFirstTest, LevelsThatAreTooLongCannotSelect) {
  const int64_t length = int64_t{1} << 50;
  EXPECT_FALSE(CanSelect(MakeBlockLevels(length, int64_t{1} << 40, 2), length, 1));
  EXPECT_TRUE(CanSelect(MakeBlockLevels(length, int64_t{1} << 10, 2), length, 1));
  for (const int64_t count : {int64_t{2}, int64_t{1000}, length / 3, length - 1}) {
    const auto levels = ChooseBlockLevels(64, length, count);
    EXPECT_TRUE(!levels.has_value() || CanSelect(*levels, length, count)) << count;
  }
}

}  // namespace
}  // namespace kiln::ops
