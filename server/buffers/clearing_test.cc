// Tests of memory that passes from one user to another, on the CPU device, which caches freed
// blocks.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/driver.h"
#include "gtest/gtest.h"
#include "server/buffers/block_owners.h"
#include "server/buffers/pool.h"
#include "server/testing/fake_device.h"

namespace kiln::buffers {
namespace {

class ClearingTest : public ::testing::Test {
 protected:
  std::shared_ptr<Value> Allocate(int64_t bytes, const std::shared_ptr<Account>& account,
                                  int64_t bytes_min = 0) {
    return *pool_->Allocate(std::make_shared<TensorType>(TensorType{ir::DType::kInt8, {bytes}}),
                            account, bytes_min);
  }
  static char* Bytes(const Value& value) {
    return static_cast<char*>(value.buffer()->host_pointer());
  }
  // Checks all of the device's buffer, also beyond the requested size.
  static bool IsClear(const Value& value) {
    return std::all_of(Bytes(value), Bytes(value) + value.buffer()->bytes(),
                       [](char byte) { return byte == 0; });
  }
  // Fills memory for `account` and frees it.
  void LeaveBehind(int64_t bytes, const std::shared_ptr<Account>& account) {
    const auto value = Allocate(bytes, account);
    std::memset(Bytes(*value), 's', static_cast<size_t>(value->buffer()->bytes()));
  }

  std::string why_none_;
  const std::vector<std::unique_ptr<drivers::Device>> devices_ =
      *drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none_);
  const std::shared_ptr<Pool> pool_ = std::make_shared<Pool>(*devices_[0], 0);
  const std::shared_ptr<Account> ann_ = std::make_shared<Account>();
  const std::shared_ptr<Account> bob_ = std::make_shared<Account>();
};

TEST_F(ClearingTest, NobodyReadsWhatAnotherHasLeftBehind) {
  for (const int64_t bytes : {int64_t{100}, int64_t{1} << 16, int64_t{3} << 20}) {
    LeaveBehind(bytes, ann_);
    const auto value = Allocate(bytes, bob_);
    EXPECT_TRUE(IsClear(*value)) << bytes;
  }
}

TEST_F(ClearingTest, TheRoomBehindASmallValueIsClearAsWell) {
  LeaveBehind(4096, ann_);
  EXPECT_TRUE(IsClear(*Allocate(10, bob_, /*bytes_min=*/4096)));
}

TEST_F(ClearingTest, IntermediateResultsAreNobodysToRead) {
  auto arena = *pool_->AllocateBytes(1 << 16);
  std::memset(arena->host_pointer(), 's', 1 << 16);
  pool_->Free(std::move(arena));
  EXPECT_TRUE(IsClear(*Allocate(1 << 16, ann_)));
}

// Replays have no extra cost.
TEST_F(ClearingTest, OnesOwnMemoryIsNotCleared) {
  const auto session = std::make_shared<Account>(ann_), later = std::make_shared<Account>(ann_);
  LeaveBehind(1 << 16, session);
  const int64_t before = pool_->cleared_bytes();
  for (int i = 0; i < 100; ++i) LeaveBehind(1 << 16, i % 2 == 0 ? session : later);
  EXPECT_EQ(pool_->cleared_bytes(), before);
}

// Clearing them would touch every page, on the thread that executes the session's operations.
TEST_F(ClearingTest, FreshPagesAreLeftForWhoeverWritesThem) {
  const auto value = Allocate(int64_t{3} << 20, ann_);
  EXPECT_EQ(pool_->cleared_bytes(), 0);
  EXPECT_TRUE(IsClear(*value));
  LeaveBehind(1 << 16, ann_);
  EXPECT_GE(pool_->cleared_bytes(), 1 << 16) << "small blocks are what the process had there";
}

// Returns the same block each time, as if the system had had it meanwhile.
class OneBlockDevice : public kiln::testing::FakeDevice {
 public:
  OneBlockDevice() : FakeDevice("fake:0", 1 << 20) {}
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> Allocate(int64_t bytes) override {
    return std::make_unique<Block>(*this);
  }
  drivers::Buffer::Contents contents = drivers::Buffer::Contents::kLeft;

 private:
  class Block : public drivers::Buffer {
   public:
    explicit Block(OneBlockDevice& device) : device_(device), contents_(device.contents) {}
    int64_t bytes() const override { return sizeof(device_.bytes_); }
    void* host_pointer() const override { return device_.bytes_; }
    Contents contents() const override { return contents_; }

   private:
    OneBlockDevice& device_;
    const Contents contents_;
  };
  char bytes_[64] = {};
};

TEST(Clearing, WhatTheProcessHadThereIsNobodysOwn) {
  OneBlockDevice device;
  const auto pool = std::make_shared<Pool>(device, 0);
  const auto ann = std::make_shared<Account>();
  const auto type = std::make_shared<TensorType>(TensorType{ir::DType::kInt8, {64}});
  const auto allocate = [&] { return *pool->Allocate(type, ann); };
  allocate().reset();
  EXPECT_EQ(pool->cleared_bytes(), 64);
  allocate().reset();
  EXPECT_EQ(pool->cleared_bytes(), 64) << "her own";
  device.contents = drivers::Buffer::Contents::kUnknown;
  allocate().reset();
  EXPECT_EQ(pool->cleared_bytes(), 128) << "somebody else may have written there since";
}

TEST(BlockOwners, FewAreRemembered) {
  BlockOwners owners(/*blocks_max=*/2);
  const int blocks[3] = {}, ann = 0, bob = 0;
  owners.GivenBack(&blocks[0], &ann);
  owners.GivenBack(&blocks[1], &ann);
  EXPECT_TRUE(owners.Take(&blocks[0], &ann));
  EXPECT_FALSE(owners.Take(&blocks[0], &ann)) << "it is taken";
  EXPECT_FALSE(owners.Take(&blocks[1], &bob));
  owners.GivenBack(&blocks[0], &ann);
  owners.GivenBack(&blocks[1], &ann);
  owners.GivenBack(&blocks[2], &ann);
  EXPECT_FALSE(owners.Take(&blocks[0], &ann));
  EXPECT_TRUE(owners.Take(&blocks[2], &ann));
}

}  // namespace
}  // namespace kiln::buffers
