// A training with snapshots, whose daemon is killed repeatedly.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/checkpoints/fixture.h"
#include "tests/server/exact_client.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;

// Killed at random moments: after an upload was answered, and between a run and its answer.
TEST_F(SnapshotTest, TrainingAndUploadsGoOn) {
  for (const uint64_t seed : {1, 2, 3}) {
    Random random(seed);
    Start();
    Summer summer(address_, 1, 1000);
    double uploaded = 0;
    for (int i = 0; i < 40; ++i) {
      summer.Step();
      if (i % 5 == 0) {
        const std::string blob = absl::StrCat("blob ", i);
        const std::vector<float> floats(1000, static_cast<float>(i));
        const std::string bytes(reinterpret_cast<const char*>(floats.data()), 4000);
        ASSERT_TRUE(summer.Settle());
        ASSERT_TRUE(const_cast<Client&>(summer.client()).Upload(blob, bytes).ok());
        // The client has been told that its blob is there.
        if (random() % 2 == 0) {
          KillAndStart();
          ASSERT_EQ(summer.Attach(), "");
        }
        const uint64_t handle = summer.NewHandle();
        summer.Do(WriteBlob(handle, blob, 1000));
        const uint64_t read = summer.Do(Read(handle));
        if (random() % 2 == 0) {
          KillAndStart();
          ASSERT_EQ(summer.Attach(), "");
        }
        EXPECT_EQ(Floats(summer.stream().Answer(read).data()), floats);
        ASSERT_TRUE(summer.Settle());
        uploaded += i;
      }
      if (random() % 8 == 0) {
        KillAndStart();
        ASSERT_EQ(summer.Attach(), "");
      }
    }
    EXPECT_GT(uploaded, 0);
    summer.ExpectRight();
    End(SIGKILL);
    fs::remove_all(folder_ + "/state");
    fs::remove(folder_ + "/log");
  }
}

}  // namespace
}  // namespace kiln::testing
