#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/buffers/pool.h"
#include "server/errors/errors.h"
#include "server/testing/fake_device.h"

namespace kiln::buffers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuffersTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TensorType> Floats(int64_t count) {
    return std::make_shared<TensorType>(TensorType{ir::DType::kFloat32, {count}});
  }
  kiln::testing::FakeDevice device_{"cpu:0", 1 << 20};
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>(device_, 1000);
  std::shared_ptr<Account> user_ = std::make_shared<Account>();
  std::shared_ptr<Account> session_ = std::make_shared<Account>(user_);
};

TEST_F(BuffersTest, LastOwnerFreesAndAccountsFollow) {
  auto value = *pool_->Allocate(Floats(100), session_);
  auto second = value;
  EXPECT_EQ(session_->bytes(), 400);
  EXPECT_EQ(user_->bytes(), 400);
  EXPECT_EQ(user_->buffers(), 1);
  EXPECT_EQ(pool_->used_bytes(), 400);
  value.reset();
  EXPECT_EQ(device_.allocated_bytes(), 400);
  second.reset();
  EXPECT_EQ(device_.allocated_bytes(), 0);
  EXPECT_EQ(pool_->used_bytes(), 0);
  EXPECT_EQ(session_->bytes(), 0);
  EXPECT_EQ(user_->buffers(), 0);
}

TEST_F(BuffersTest, WhatAUserMayHaveIsCheckedFirst) {
  const auto user = std::make_shared<Account>(nullptr, quota::Scope{},
                                              quota::Scope{"ann", quota::Resource::kBuffers});
  const auto on_device =
      std::make_shared<Account>(user, quota::Scope{"ann", quota::Resource::kDeviceMemory, "cpu:0"});
  const auto session = std::make_shared<Account>(on_device);
  user->SetLimits(0, 2);
  on_device->SetLimits(400, 0);
  int reclaimed = 0;
  pool_->SetReclaimer([&] { ++reclaimed; });
  auto value = *pool_->Allocate(Floats(60), session);
  const auto refused = pool_->Allocate(Floats(50), session);
  EXPECT_EQ(errors::Reason(refused.status()), "QUOTA_EXCEEDED");
  EXPECT_EQ(errors::Details(refused.status()).at("device"), "cpu:0");
  EXPECT_EQ(errors::Details(refused.status()).at("used"), "240");
  EXPECT_EQ(errors::Details(pool_->Allocate(Floats(1), session, 200).status()).at("asked"), "200");
  // Nothing of other users is reclaimed for it, and no account counts it.
  EXPECT_EQ(reclaimed, 0);
  for (const auto& account : {session, on_device, user}) {
    EXPECT_EQ(account->bytes(), 240);
    EXPECT_EQ(account->buffers(), 1);
  }
  auto second = *pool_->Allocate(Floats(1), session);
  EXPECT_EQ(errors::Details(pool_->Allocate(Floats(1), session).status()).at("quota"), "buffers");
  EXPECT_EQ(session->bytes(), 244);
  // An allocation that the device refuses is not counted either.
  on_device->SetLimits(0, 0);
  second.reset();
  EXPECT_EQ(errors::Reason(pool_->Allocate(Floats(500), session).status()), "OUT_OF_MEMORY");
  EXPECT_EQ(user->bytes(), 240);
  value.reset();
  EXPECT_EQ(user->buffers(), 0);
}

TEST_F(BuffersTest, ReservationsAreGivenUpForWhatDoesNotFit) {
  int reclaimed = 0, asked = 0;
  pool_->SetReclaimer([&] { ++reclaimed; });
  const auto account = std::make_shared<Account>();
  bool gives_up = false;
  auto firm = *pool_->Reserve(100, account);
  auto reserved = *pool_->Reserve(300, account, [&] {
    ++asked;
    return gives_up;
  });
  EXPECT_EQ(account->bytes(), 400);
  EXPECT_FALSE(pool_->Allocate(Floats(200), session_).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(reclaimed, 1);
  // More than the device has is refused at once.
  EXPECT_FALSE(pool_->Allocate(Floats(300), session_).ok());
  EXPECT_FALSE(pool_->Reserve(1001, account).ok());
  EXPECT_EQ(asked, 1);
  gives_up = true;
  const auto value = pool_->Allocate(Floats(200), session_);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(reclaimed, 1);
  EXPECT_EQ(pool_->used_bytes(), 900);
  EXPECT_EQ(account->bytes(), 100);
  // It is asked once, and its end counts nothing.
  EXPECT_FALSE(pool_->Reserve(200, account).ok());
  EXPECT_EQ(asked, 2);
  reserved.reset();
  EXPECT_EQ(pool_->used_bytes(), 900);
  firm.reset();
  EXPECT_EQ(pool_->used_bytes(), 800);
}

TEST_F(BuffersTest, ReservationsMakeRoomForOthers) {
  const auto account = std::make_shared<Account>();
  auto first = *pool_->Reserve(600, account, [] { return true; });
  const auto second = pool_->Reserve(600, account, [] { return true; });
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(pool_->used_bytes(), 600);
  first.reset();
  EXPECT_EQ(pool_->used_bytes(), 600);
}

TEST_F(BuffersTest, OfASessionsArenasTheLargestCounts) {
  const auto on_device = std::make_shared<Account>(
      user_, quota::Scope{"ann", quota::Resource::kDeviceMemory, "cpu:0"});
  const auto session = std::make_shared<Account>(on_device);
  on_device->SetLimits(100, 0);
  auto first = *session->AddArena(60);
  auto second = *session->AddArena(80);
  auto third = *session->AddArena(60);
  EXPECT_EQ(on_device->bytes(), 80);
  EXPECT_EQ(session->buffers(), 0);
  EXPECT_EQ(errors::Details(session->AddArena(101).status()).at("asked"), "21");
  first.reset();
  EXPECT_EQ(user_->bytes(), 80);
  second.reset();
  EXPECT_EQ(user_->bytes(), 60);
  // Runs of another session may execute at the same time.
  EXPECT_FALSE(std::make_shared<Account>(on_device)->AddArena(60).ok());
  third.reset();
  EXPECT_EQ(user_->bytes(), 0);
}

TEST_F(BuffersTest, LimitNamesTheNumbers) {
  auto value = *pool_->Allocate(Floats(200), session_);
  const auto refused = pool_->Allocate(Floats(100), session_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("400 bytes do not fit on cpu:0: 800 of 1000"));
  EXPECT_EQ(errors::Reason(refused.status()), "OUT_OF_MEMORY");
  EXPECT_EQ(pool_->used_bytes(), 800);
  EXPECT_EQ(session_->bytes(), 800);
}

TEST_F(BuffersTest, DeviceRefusalIsPassedOn) {
  auto pool = std::make_shared<Pool>(device_, int64_t{1} << 40);
  EXPECT_EQ(pool->total_bytes(), device_.info().memory_bytes);
  const auto taken = *device_.Allocate(device_.info().memory_bytes / 2);
  const auto refused = pool->Allocate(Floats(device_.info().memory_bytes / 6), session_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->used_bytes(), 0);
}

TEST_F(BuffersTest, ABrokenDeviceIsNotOutOfMemory) {
  device_.Break("the context is poisoned");
  const auto refused = pool_->Allocate(Floats(1), session_);
  EXPECT_EQ(refused.status(), absl::InternalError("the context is poisoned"));
  EXPECT_EQ(pool_->used_bytes(), 0);
}

TEST_F(BuffersTest, FillAndRead) {
  auto value = *pool_->Allocate(Floats(2), session_);
  std::vector<absl::Status> ended;
  const auto done = [&ended](const absl::Status& status) { ended.push_back(status); };
  pool_->Fill(*value, {"abc", "", "defgh"}, done);
  std::vector<char> read(3);
  pool_->Read(*value, 2, absl::MakeSpan(read), done);
  EXPECT_THAT(ended, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_THAT(read, ElementsAre('c', 'd', 'e'));
  EXPECT_TRUE(Pool::IsHostMemory(*value));
}

TEST_F(BuffersTest, FillAndReadEndOnTheDevicesThread) {
  device_.HideMemory();
  device_.HoldCopies();
  auto value = *pool_->Allocate(Floats(2), session_);
  EXPECT_FALSE(Pool::IsHostMemory(*value));
  std::vector<absl::Status> ended;
  const auto done = [&ended](const absl::Status& status) { ended.push_back(status); };
  pool_->Fill(*value, {"abc", "defgh"}, done);
  std::vector<char> read(3);
  pool_->Read(*value, 2, absl::MakeSpan(read), done);
  EXPECT_TRUE(ended.empty());
  EXPECT_FALSE(pool_->WaitForCopies(absl::ZeroDuration()));
  device_.LetCopiesGo();
  EXPECT_TRUE(pool_->WaitForCopies(absl::ZeroDuration()));
  EXPECT_THAT(ended, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_THAT(read, ElementsAre('c', 'd', 'e'));
  device_.Break("the context is poisoned");
  pool_->Fill(*value, {"abc", "defgh"}, done);
  pool_->Read(*value, 2, absl::MakeSpan(read), done);
  EXPECT_THAT(ended, ElementsAre(absl::OkStatus(), absl::OkStatus(),
                                 absl::InternalError("the context is poisoned"),
                                 absl::InternalError("the context is poisoned")));
  EXPECT_TRUE(pool_->WaitForCopies(absl::ZeroDuration()));
}

// A device that delays copies until they are released one by one.
class OneByOneDevice : public kiln::testing::FakeDevice {
 public:
  OneByOneDevice() : FakeDevice("cpu:0", 1 << 20) { HideMemory(); }
  absl::Status StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                 absl::Span<const char> source, CopyDone done) override {
    waiting.push_back([this, &destination, offset, source, done = std::move(done)](bool works) {
      if (!works) return done(absl::InternalError("no"));
      EXPECT_TRUE(FakeDevice::StartCopyToDevice(destination, offset, source, done).ok());
    });
    return absl::OkStatus();
  }
  void EndOne(bool works = true) {
    const auto copy = std::move(waiting.front());
    waiting.pop_front();
    copy(works);
  }
  std::deque<std::function<void(bool works)>> waiting;
};

TEST_F(BuffersTest, CopiesComeBetweenThePiecesOfAnother) {
  OneByOneDevice device;
  auto pool = std::make_shared<Pool>(device, 1000);
  auto large = *pool->Allocate(Floats(3), session_);
  auto small = *pool->Allocate(Floats(1), session_);
  std::vector<std::string> ended;
  pool->Fill(*large, {"abcd", "efgh", "ijkl"},
             [&](const absl::Status&) { ended.push_back("large"); });
  pool->Fill(*small, {"mnop"}, [&](const absl::Status&) { ended.push_back("small"); });
  EXPECT_EQ(device.waiting.size(), 2u);
  while (!device.waiting.empty()) device.EndOne();
  EXPECT_THAT(ended, ElementsAre("small", "large"));
  std::string read(12, ' ');
  pool->Read(*large, 0, absl::MakeSpan(read), [](const absl::Status&) {});
  EXPECT_EQ(read, "abcdefghijkl");
  // The error of one piece ends the whole copy.
  auto failing = *pool->Allocate(Floats(2), session_);
  pool->Fill(*failing, {"abcd", "efgh"},
             [&](const absl::Status& status) { ended.push_back(status.ToString()); });
  device.EndOne(false);
  EXPECT_TRUE(device.waiting.empty());
  EXPECT_THAT(ended, ElementsAre("small", "large", "INTERNAL: no"));
}

TEST_F(BuffersTest, ResolvesOnceAndCallsWaiters) {
  auto value = *pool_->Allocate(Floats(1), session_);
  std::vector<std::string> calls;
  EXPECT_TRUE(
      value->AddWaiter([&](const absl::Status& status) { calls.push_back(status.ToString()); }));
  EXPECT_FALSE(value->resolved());
  value->Resolve(absl::OkStatus());
  value->Resolve(absl::InternalError("late"));
  EXPECT_TRUE(value->resolved());
  EXPECT_TRUE(value->status().ok());
  EXPECT_FALSE(value->AddWaiter([&](const absl::Status&) { calls.push_back("never"); }));
  EXPECT_THAT(calls, ElementsAre("OK"));
}

TEST_F(BuffersTest, FailedValueHasNoMemory) {
  const auto value = Value::Failed(absl::InternalError("why"));
  EXPECT_TRUE(value->resolved());
  EXPECT_EQ(value->status().message(), "why");
  EXPECT_EQ(value->buffer(), nullptr);
  EXPECT_EQ(value->bytes(), 0);
}

TEST_F(BuffersTest, WaitersFromManyThreadsAreEachCalledOnce) {
  auto value = *pool_->Allocate(Floats(1), session_);
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        if (!value->AddWaiter([&](const absl::Status&) { ++called; })) ++called;
      }
    });
  }
  value->Resolve(absl::OkStatus());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(called, 400);
}

TEST(TensorType, Checks) {
  EXPECT_TRUE(CheckTensorType({ir::DType::kFloat32, {3, 0}}).ok());
  EXPECT_TRUE(CheckTensorType({ir::DType::kBool, {}}).ok());
  EXPECT_FALSE(CheckTensorType({ir::DType::kInvalid, {3}}).ok());
  EXPECT_FALSE(CheckTensorType({ir::DType::kFloat32, {-1}}).ok());
  EXPECT_FALSE(CheckTensorType({ir::DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}}).ok());
  EXPECT_EQ((TensorType{ir::DType::kFloat32, {8, 3}}).ToString(), "float32[8, 3]");
  EXPECT_EQ((TensorType{ir::DType::kFloat32, {8, 3}}).bytes(), 96);
}

}  // namespace
}  // namespace kiln::buffers
