#include <array>
#include <bit>
#include <memory>
#include <string>
#include <thread>

#include "drivers/interface/kernel_image.h"
#include "drivers/interface/signal_group.h"
#include "drivers/interface/target.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers {
namespace {

KernelImage Example() {
  KernelImage image;
  image.name = "reduce_sum_512_800";
  image.architecture = "x86-64";
  image.code = std::string("\x00\xc3\xff code with zero bytes", 24);
  image.entry = 1;
  image.grid_size = 512;
  image.block_size = 128;
  image.shared_bytes = 2048;
  image.scratch_bytes = 4096;
  image.num_arguments = 3;
  image.takes_slot_table = true;
  image.runs_parts = true;
  image.finished = std::string(
      "\x7f"
      "ELF\0 a binary",
      14);
  image.access = {Access::kRead, Access::kReadWrite, Access::kWrite};
  image.flops = int64_t{1} << 40;
  image.bytes = 77;
  return image;
}

TEST(KernelImageTest, SurvivesARoundTrip) {
  const KernelImage image = Example();
  KernelImage read;
  ASSERT_TRUE(KernelImage::Deserialize(image.Serialize(), &read));
  EXPECT_EQ(read.name, image.name);
  EXPECT_EQ(read.architecture, image.architecture);
  EXPECT_EQ(read.code, image.code);
  EXPECT_EQ(read.entry, image.entry);
  EXPECT_EQ(read.grid_size, image.grid_size);
  EXPECT_EQ(read.block_size, image.block_size);
  EXPECT_EQ(read.shared_bytes, image.shared_bytes);
  EXPECT_EQ(read.scratch_bytes, image.scratch_bytes);
  EXPECT_EQ(read.num_arguments, image.num_arguments);
  EXPECT_EQ(read.takes_slot_table, image.takes_slot_table);
  EXPECT_EQ(read.runs_parts, image.runs_parts);
  EXPECT_EQ(read.finished, image.finished);
  EXPECT_EQ(read.access, image.access);
  EXPECT_EQ(read.flops, image.flops);
  EXPECT_EQ(read.bytes, image.bytes);
}

TEST(KernelImageTest, EveryDamagedByteIsFound) {
  const std::string good = Example().Serialize();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x10;
    KernelImage image;
    EXPECT_FALSE(KernelImage::Deserialize(bad, &image)) << "byte " << i;
    EXPECT_EQ(image.name, "");
  }
}

TEST(KernelImageTest, EveryOtherLengthIsRefused) {
  const std::string good = Example().Serialize();
  KernelImage image;
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(KernelImage::Deserialize(good.substr(0, size), &image)) << size;
  }
  EXPECT_FALSE(KernelImage::Deserialize(good + "x", &image));
}

TEST(KernelImageTest, UnknownAccessIsRefused) {
  KernelImage image = Example();
  image.access[1] = static_cast<Access>(3);
  KernelImage read;
  EXPECT_FALSE(KernelImage::Deserialize(image.Serialize(), &read));
}

TEST(SlotTableTest, ANumberHoldsSlotAndOffset) {
  constexpr int64_t kLargest = static_cast<int64_t>(kSlotOffsetMask);
  EXPECT_EQ(kLargest % kBufferAlignmentMin, 0);
  const uint64_t packed = PackSlot(kTableSlotsMax - 1, kLargest);
  EXPECT_EQ(packed >> kSlotOffsetBits, uint64_t{kTableSlotsMax - 1});
  EXPECT_EQ(packed & kSlotOffsetMask, kSlotOffsetMask);
  EXPECT_EQ(PackSlot(0, 128), 128u);
}

TEST(TargetTest, HasWholeWordsOfItsFeatures) {
  Target target;
  EXPECT_FALSE(target.Has("fma"));
  target.features = "+avx512vl,-fma,+f16c";
  EXPECT_TRUE(target.Has("f16c") && target.Has("avx512vl"));
  EXPECT_FALSE(target.Has("fma") || target.Has("avx512") || target.Has(""));
}

TEST(TargetTest, SummaryIsForPeople) {
  Target target;
  target.architecture = "x86-64";
  EXPECT_EQ(target.Summary(), "x86-64");
  target.variant = "avx2,-fma";
  EXPECT_EQ(target.Summary(), "x86-64/avx2,-fma");
}

TEST(TargetTest, CacheKeyNamesEveryField) {
  const Target base;
  Target other = base;
  other.architecture = "x86-64";
  EXPECT_NE(base.CacheKey(), other.CacheKey());
  other = base;
  other.processor = "x86-64-v4";
  EXPECT_NE(base.CacheKey(), other.CacheKey());
  other = base;
  other.features = "+fma";
  EXPECT_NE(base.CacheKey(), other.CacheKey());
  for (auto field :
       {&Limits::vector_bytes, &Limits::vector_registers, &Limits::compute_units,
        &Limits::threads_per_block, &Limits::threads_per_subgroup, &Limits::threads_per_shuffle,
        &Limits::bytes_per_access, &Limits::threads_per_unit, &Limits::arguments_max}) {
    other = base;
    other.limits.*field += 1;
    EXPECT_NE(base.CacheKey(), other.CacheKey());
  }
  for (auto field :
       {&Limits::register_bytes_per_unit, &Limits::shared_bytes_per_block, &Limits::local_bytes_max,
        &Limits::near_memory_bytes, &Limits::private_cache_bytes, &Limits::buffer_alignment}) {
    other = base;
    other.limits.*field += 1;
    EXPECT_NE(base.CacheKey(), other.CacheKey());
  }
  for (auto field : {&Capabilities::fma, &Capabilities::fp64, &Capabilities::fp16,
                     &Capabilities::bf16, &Capabilities::matrix, &Capabilities::async_copies}) {
    other = base;
    other.capabilities.*field = !(base.capabilities.*field);
    EXPECT_NE(base.CacheKey(), other.CacheKey());
  }
}

TEST(TargetTest, CacheKeyNamesEveryCost) {
  constexpr size_t kNumbers = sizeof(Costs) / sizeof(double);
  const Target base;
  for (size_t i = 0; i < kNumbers; ++i) {
    auto numbers = std::bit_cast<std::array<double, kNumbers>>(base.costs);
    numbers[i] += 1;
    Target other = base;
    other.costs = std::bit_cast<Costs>(numbers);
    EXPECT_NE(base.CacheKey(), other.CacheKey()) << "number " << i;
  }
}

TEST(TargetTest, CacheKeyNamesWhoFinishes) {
  Target base;
  base.finisher = {"opencl", "a GPU, a vendor", "1.0"};
  for (auto field : {&Finisher::driver, &Finisher::device, &Finisher::version}) {
    Target other = base;
    other.finisher.*field += "x";
    EXPECT_NE(base.CacheKey(), other.CacheKey());
  }
}

TEST(TargetTest, CacheKeyLeavesOutWhatChangesNoCode) {
  const Target base;
  Target other = base;
  other.variant = "avx2";
  other.rates.launch_seconds *= 2;
  EXPECT_EQ(base.CacheKey(), other.CacheKey());
}

Target SomeProcessor() {
  Target target;
  target.architecture = "x86-64";
  target.processor = "x86-64-v3";
  target.features = "+avx2,+fma,-f16c";
  target.limits.vector_bytes = 32;
  target.limits.compute_units = 4;
  target.limits.near_memory_bytes = 48 << 10;
  return target;
}

// Another text would lose all settings that users have measured.
TEST(TargetTest, HardwareKeysStayAsTheyAre) {
  EXPECT_EQ(SomeProcessor().HardwareKey(),
            "x86-64;x86-64-v3;+avx2,+fma,-f16c;u4;v32x16;t1x1;s0;m49152;c1048576");
  Target gpu;
  gpu.architecture = "nvptx64";
  gpu.processor = "sm_90";
  gpu.features = "+ptx83";
  gpu.limits = {.vector_bytes = 4,
                .vector_registers = 255,
                .compute_units = 132,
                .threads_per_block = 1024,
                .threads_per_subgroup = 32,
                .threads_per_unit = 2048,
                .shared_bytes_per_block = 49152,
                .near_memory_bytes = 233472,
                .private_cache_bytes = 397187};
  EXPECT_EQ(gpu.HardwareKey(), "nvptx64;sm_90;;u132;v4x255;t32x2048;s49152;m233472;c397187");
}

TEST(TargetTest, HardwareKeyNamesTheDevice) {
  const Target base = SomeProcessor();
  for (auto field : {&Target::architecture, &Target::processor, &Target::features}) {
    Target other = base;
    other.*field += "x";
    EXPECT_NE(base.HardwareKey(), other.HardwareKey());
  }
  for (auto field : {&Limits::vector_bytes, &Limits::vector_registers, &Limits::compute_units,
                     &Limits::threads_per_subgroup, &Limits::threads_per_unit}) {
    Target other = base;
    other.limits.*field += 1;
    EXPECT_NE(base.HardwareKey(), other.HardwareKey());
  }
  for (auto field : {&Limits::shared_bytes_per_block, &Limits::near_memory_bytes,
                     &Limits::private_cache_bytes}) {
    Target other = base;
    other.limits.*field += 1;
    EXPECT_NE(base.HardwareKey(), other.HardwareKey());
  }
}

TEST(TargetTest, HardwareKeyLeavesOutWhatAVersionOfKilnDecides) {
  const Target base = SomeProcessor();
  Target other = base;
  other.variant = "avx2";
  other.costs = kGpuCosts;
  other.rates = kGpuRates;
  other.finisher = {"opencl", "a device", "1.0"};
  other.capabilities.bf16 = true;
  other.features += ",+ptx90";
  other.limits.threads_per_block = 7;
  other.limits.arguments_max = 7;
  other.limits.local_bytes_max = 7;
  other.limits.bytes_per_access = 7;
  other.limits.threads_per_shuffle = 7;
  other.limits.register_bytes_per_unit = 7;
  other.limits.buffer_alignment *= 2;
  EXPECT_EQ(base.HardwareKey(), other.HardwareKey());
  EXPECT_NE(base.CacheKey(), other.CacheKey());
}

template <typename Row>
void ExpectFilledIn(const Row& row) {
  constexpr size_t kNumbers = sizeof(Row) / sizeof(double);
  for (const double number : std::bit_cast<std::array<double, kNumbers>>(row)) EXPECT_GT(number, 0);
}

TEST(CostsTest, EveryRowIsFilledIn) {
  ExpectFilledIn(kVectorCoreCosts);
  ExpectFilledIn(kGpuCosts.storage);
  ExpectFilledIn(kVectorCoreRates);
  ExpectFilledIn(kGpuRates);
}

TEST(SignalGroupTest, WhatIsDecidedWasCountedAsAChange) {
  SignalGroup group(std::make_shared<Signals>(2));
  int64_t seen = group.changes();
  EXPECT_FALSE(group.IsDecided(0));
  group.Raise(0);
  EXPECT_NE(group.changes(), seen);
  group.WaitForChange(seen);
  EXPECT_TRUE(group.IsDecided(0));
  EXPECT_FALSE(group.IsDecided(1));
  seen = group.changes();
  group.Abort(absl::CancelledError("nobody will signal"));
  EXPECT_NE(group.changes(), seen);
  EXPECT_TRUE(group.IsDecided(1));
  EXPECT_TRUE(group.Wait(0).ok());
  EXPECT_EQ(group.Wait(1).code(), absl::StatusCode::kCancelled);
}

TEST(SignalGroupTest, EveryChangeWakesWhoeverWaitsForOne) {
  SignalGroup group(std::make_shared<Signals>(1));
  for (const bool sleeps : {false, true}) {
    const int64_t seen = group.changes();
    std::thread changer([&] {
      if (sleeps) {
        EXPECT_TRUE(kiln::testing::Eventually([&] { return group.sleepers() == 1; }));
      }
      group.Change();
    });
    group.WaitForChange(seen);
    EXPECT_EQ(group.changes(), seen + 1);
    changer.join();
  }
}

}  // namespace
}  // namespace kiln::drivers
