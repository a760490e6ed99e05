#include "tests/server/trainer.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/server/client.h"

namespace kiln::testing {

constexpr int kFloats = 16384;  // 64 KiB a read
constexpr uint64_t kFirstResult = 10;

Trainer::Trainer(const std::string& address) {
  thread_ = std::thread([this, address] {
    Train(address);
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  });
}

Trainer::~Trainer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool Trainer::Advances(int steps) const {
  absl::MutexLock lock(&mutex_);
  const int until = steps_ + steps;
  const auto is_over = [&]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return steps_ >= until || ended_; };
  mutex_.Await(absl::Condition(&is_over));
  return steps_ >= until;
}

bool Trainer::CountStep() {
  absl::MutexLock lock(&mutex_);
  ++steps_;
  return !stopping_;
}

void Trainer::Train(const std::string& address) {
  Client client(address);
  ASSERT_TRUE(client.opened.ok()) << client.opened.error_message();
  auto stream = client.Connect();
  const auto call = [&](v1::ConnectRequest request) {
    request.set_acknowledged(stream->next_sequence() - 1);
    return stream->Call(std::move(request));
  };
  ASSERT_FALSE(call(Define(1, AccumulateGraph(kFloats))).has_error());
  ASSERT_FALSE(call(Write(1, std::vector<float>(kFloats))).has_error());
  ASSERT_FALSE(call(Write(2, std::vector<float>(kFloats, 0.1f))).has_error());
  float sum = 0;
  for (uint64_t step = 0;; ++step) {
    sum += 0.1f;
    const v1::Result ran = call(RunProgram(1, {1, 2}, {kFirstResult + step}));
    ASSERT_FALSE(ran.has_error()) << step << ": " << ran.error().message();
    const v1::Result read = call(Read(1));
    ASSERT_FALSE(read.has_error()) << step << ": " << read.error().message();
    ASSERT_EQ(Floats(read.data()), std::vector<float>(kFloats, sum)) << step;
    ASSERT_FALSE(call(Release({kFirstResult + step})).has_error()) << step;
    stream->ForgetAnswers();
    if (!CountStep()) return;
  }
}

}  // namespace kiln::testing
