// Kernels that take minutes: their clients can stop them, and waiting clients get the device.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

// About ten minutes on one core, in one kernel.
constexpr int64_t kElements = int64_t{1} << 39;
constexpr uint64_t kLong = 1;

class LongRunTest : public ProcessTest {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "kernels run to their ends under this sanitizer";
#endif
    ProcessTest::SetUp();
    Start();
  }
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    flags.insert(flags.end(), {"--log_level=debug", "--cpu_threads=2"});
    return flags;
  }
  // Returns the run's number once the device has it.
  uint64_t StartLongRun(Stream& stream) {
    EXPECT_FALSE(stream.Call(Define(kLong, SumOfSines(kElements))).has_error());
    const size_t before = Log().size();
    const uint64_t run = stream.Send(RunProgram(kLong, {}, {1}));
    EXPECT_TRUE(
        Eventually([&] { return Log().find("event=run_started", before) != std::string::npos; }));
    return run;
  }
  void ExpectOthersAreServed() {
    Client other(address_);
    auto stream = other.Connect();
    EXPECT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
    EXPECT_FALSE(stream->Call(Define(1, AddGraph(2))).has_error());
    const v1::Result run = stream->Call(RunProgram(1, {1, 1}, {2}));
    EXPECT_FALSE(run.has_error()) << run.error().message();
    EXPECT_THAT(Floats(stream->Call(Read(2)).data()), ::testing::ElementsAre(2, 4));
  }
};

TEST_F(LongRunTest, EndsWhenItIsCancelled) {
  Client client(address_);
  auto stream = client.Connect();
  const uint64_t run = StartLongRun(*stream);
  v1::ConnectRequest cancel;
  cancel.mutable_cancel()->set_first(run);
  EXPECT_FALSE(stream->Call(cancel).has_error());
  EXPECT_EQ(Reason(stream->Answer(run).error()), "CANCELLED");
  ExpectOthersAreServed();
  // The session continues.
  EXPECT_FALSE(stream->Call(Write(2, {3})).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(2)).data()), ::testing::ElementsAre(3));
}

TEST_F(LongRunTest, EndsWithItsSession) {
  Client client(address_);
  auto stream = client.Connect();
  StartLongRun(*stream);
  v1::CloseSessionRequest close;
  close.set_session_id(client.session.session_id());
  EXPECT_TRUE(Try(client.sessions, &v1::SessionService::Stub::CloseSession, close).ok());
  ExpectOthersAreServed();
}

// The next daemon repeats the run.
TEST_F(LongRunTest, EndsWithTheDaemon) {
  Client client(address_);
  auto stream = client.Connect();
  StartLongRun(*stream);
  EXPECT_EQ(End(SIGTERM), 0) << Log();
}

}  // namespace
}  // namespace kiln::testing
