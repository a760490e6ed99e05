#include "server/metrics/metrics.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

// One of everything.
void Exercise(Metrics& metrics) {
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  device->RunStarted(absl::Microseconds(3));
  device->RunFinished(0.002);
  device->RunFailed();
  device->KernelRan("reduce_sum_512", 0.0015);
  metrics.Compiled(0.2);
  metrics.CompileFailed();
  metrics.CompileWorkerFailed();
  metrics.ScheduleRefused();
  metrics.ProgramCacheLookup(true);
  metrics.KernelCacheLookup(false);
  metrics.Received(100);
  metrics.Sent(7);
  metrics.Failed(absl::StatusCode::kInvalidArgument);
  metrics.SetGauges([] {
    Gauges gauges;
    gauges.devices = {{"cpu:0", 10, 20, 5, 3, true}, {"cpu:1", 0, 20, 0, 0, false}};
    gauges.sessions = 4;
    gauges.users = {{"ann", "cpu:0", 1.5, 7, 64, 2, 3}};
    return gauges;
  });
}

TEST(Metrics, ShowsWhatHappened) {
  Metrics metrics("1.2.3");
  Exercise(metrics);
  const std::string text = metrics.Text();
  for (const char* line :
       {"kiln_build_info{version=\"1.2.3\"} 1", "kiln_replays_total{device=\"cpu:0\"} 1",
        "kiln_kernel_duration_seconds_count{device=\"cpu:0\",kernel=\"reduce_sum_512\"} 1",
        "kiln_program_duration_seconds_bucket{device=\"cpu:0\",le=\"0.0025\"} 1",
        "kiln_program_duration_seconds_bucket{device=\"cpu:0\",le=\"0.001\"} 0",
        "kiln_errors_total{code=\"invalid_argument\"} 1", "kiln_received_bytes_total 100",
        "kiln_device_memory_used_bytes{device=\"cpu:0\"} 10",
        "kiln_device_memory_cached_bytes{device=\"cpu:0\"} 5", "kiln_sessions 4",
        "kiln_refused_schedules_total 1", "kiln_compile_worker_failures_total 1",
        "kiln_device_healthy{device=\"cpu:1\"} 0",
        "kiln_user_device_seconds_total{user=\"ann\",device=\"cpu:0\"} 1.5",
        "kiln_user_runs_total{user=\"ann\",device=\"cpu:0\"} 7",
        "kiln_user_memory_bytes{user=\"ann\",device=\"cpu:0\"} 64",
        "kiln_user_sessions{user=\"ann\",device=\"cpu:0\"} 2",
        "kiln_user_waiting_operations{user=\"ann\",device=\"cpu:0\"} 3"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, KernelNamesAreBounded) {
  Metrics metrics("1");
  for (int i = 0; i < kMaxKernelNames + 50; ++i)
    metrics.ForDevice("cpu:0")->KernelRan(absl::StrCat("k", i), 1e-5);
  metrics.ForDevice("cpu:0")->KernelRan("k0", 1e-5);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("_count{device=\"cpu:0\",kernel=\"other\"} 50"));
  EXPECT_THAT(text, HasSubstr("_count{device=\"cpu:0\",kernel=\"k0\"} 2"));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("\"k", kMaxKernelNames + 1, "\""))));
}

TEST(Metrics, UsersNamesAreBounded) {
  Metrics metrics("1");
  std::vector<UserGauges> users;
  metrics.SetGauges([&users] {
    Gauges gauges;
    gauges.users = users;
    return gauges;
  });
  for (int i = 0; i < kMaxUserNames; ++i)
    users.push_back({absl::StrCat("m", i), "cpu:0", 0, 1, 0, 0, 0});
  metrics.Text();
  // Before the others in the order of names, but later.
  users.insert(users.begin(), {{"a1", "cpu:0", 0, 5, 0, 0, 0}, {"a2", "cpu:0", 0, 6, 0, 0, 0}});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("kiln_user_runs_total{user=\"m99\",device=\"cpu:0\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_user_runs_total{user=\"other\",device=\"cpu:0\"} 11"));
  EXPECT_THAT(text, Not(HasSubstr("\"a1\"")));
}

TEST(Metrics, PromtoolFindsNothing) {
  if (std::system("command -v promtool >/dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed";
  Metrics metrics("1.2.3");
  Exercise(metrics);
  const std::string path = absl::StrCat(testing::TempDir(), "/kiln_metrics.txt");
  std::ofstream(path) << metrics.Text();
  EXPECT_EQ(std::system(absl::StrCat("promtool check metrics < ", path).c_str()), 0);
  std::remove(path.c_str());
}

TEST(Metrics, ServesOnAFreePort) {
  Metrics metrics("1");
  const auto port = metrics.Listen("127.0.0.1:0");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_GT(*port, 0);
  Metrics second("1");
  EXPECT_FALSE(second.Listen(absl::StrCat("127.0.0.1:", *port)).ok());
}

}  // namespace
}  // namespace kiln::metrics
