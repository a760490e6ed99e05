#include "server/metrics/metrics.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/program_times.h"

namespace kiln::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

// Calls every method.
void Exercise(Metrics& metrics) {
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  device->RunStarted(absl::Microseconds(3));
  device->RunFinished({"ann", "a87a8ab9ef22"}, 0.002, nullptr);
  device->RunFailed();
  device->KernelRan({"ann", "a87a8ab9ef22"}, "reduce_sum_512", 0.0015);
  metrics.Compiled(0.2);
  metrics.CompileFailed();
  metrics.CompileWorkerFailed();
  metrics.ScheduleRefused();
  metrics.ProgramCacheLookup(true);
  metrics.KernelCacheLookup(false);
  metrics.TuneTried("asked", /*timed=*/5, /*refused=*/2);
  metrics.KernelTuned("idle", "faster");
  metrics.TuneEnded("idle", 1.5);
  metrics.Received(100);
  metrics.Sent(7);
  metrics.Failed(absl::StatusCode::kInvalidArgument);
  metrics.Abandoned();
  metrics.CompileWorkerStarted();
  metrics.CallEnded("ProgramService/ListKernels", 0.002);
  metrics.LoginFailed("BAD_TOKEN");
  metrics.ConnectionRefused();
  metrics.Scraped(1000, 0.25);
  metrics.SetGauges([] {
    Gauges gauges;
    gauges.devices = {{"cpu:0", 10, 20, 5, 3, true, 12.5, 4096, 8, 0.25, 61.5, 217.25, 1.41e9},
                      {"cpu:1", 0, 20, 0, 0, false}};
    gauges.sessions = 4;
    gauges.users = {{"ann", "cpu:0", 1.5, 7, 64, 2, 3, 0.5}};
    gauges.user_totals = {{"ann", 2.5, absl::Minutes(1), 1}};
    gauges.program_infos = {{"a87a8ab9ef22", "step", "cpu:0"}, {"a87a8ab9ef22", "again", "cpu:1"}};
    gauges.disks = {{"state", 100, 400}};
    gauges.saved_session_bytes = 9;
    return gauges;
  });
}

TEST(Metrics, ShowsWhatHappened) {
  Metrics metrics("1.2.3", "664d6a6eeeb7");
  Exercise(metrics);
  const std::string text = metrics.Text();
  for (const char* line :
       {"kiln_build_info{commit=\"664d6a6eeeb7\",version=\"1.2.3\"} 1",
        "kiln_replays_total{device=\"cpu:0\"} 1",
        "kiln_kernel_duration_seconds_count{device=\"cpu:0\",user=\"ann\",program=\"a87a8ab9ef22\","
        "kernel=\"reduce_sum_512\"} 1",
        "kiln_program_duration_seconds_bucket{device=\"cpu:0\",user=\"ann\","
        "program=\"a87a8ab9ef22\",le=\"0.0025\"} 1",
        "kiln_program_duration_seconds_bucket{device=\"cpu:0\",user=\"ann\","
        "program=\"a87a8ab9ef22\",le=\"0.001\"} 0",
        "kiln_errors_total{code=\"invalid_argument\"} 1",
        "kiln_abandoned_calls_total 1",
        "kiln_tune_candidates_total{origin=\"asked\",outcome=\"timed\"} 5",
        "kiln_tune_candidates_total{origin=\"asked\",outcome=\"refused\"} 2",
        "kiln_tune_kernels_total{origin=\"idle\",outcome=\"faster\"} 1",
        "kiln_tune_seconds_total{origin=\"idle\"} 1.5",
        "kiln_received_bytes_total 100",
        "kiln_device_memory_used_bytes{device=\"cpu:0\"} 10",
        "kiln_device_memory_cached_bytes{device=\"cpu:0\"} 5",
        "kiln_sessions 4",
        "kiln_refused_schedules_total 1",
        "kiln_compile_worker_failures_total 1",
        "kiln_device_healthy{device=\"cpu:1\"} 0",
        "kiln_user_device_seconds_total{user=\"ann\",device=\"cpu:0\"} 1.5",
        "kiln_user_runs_total{user=\"ann\",device=\"cpu:0\"} 7",
        "kiln_user_memory_bytes{user=\"ann\",device=\"cpu:0\"} 64",
        "kiln_user_sessions{user=\"ann\",device=\"cpu:0\"} 2",
        "kiln_user_waiting_operations{user=\"ann\",device=\"cpu:0\"} 3",
        "kiln_user_queue_wait_seconds_total{user=\"ann\",device=\"cpu:0\"} 0.5",
        "kiln_user_compile_wait_seconds_total{user=\"ann\"} 2.5",
        "kiln_user_oldest_session_seconds{user=\"ann\"} 60",
        "kiln_user_unprotected_sessions{user=\"ann\"} 1",
        "kiln_device_busy_seconds_total{device=\"cpu:0\"} 12.5",
        "kiln_device_temperature_celsius{device=\"cpu:0\"} 61.5",
        "kiln_device_power_watts{device=\"cpu:0\"} 217.25",
        "kiln_device_clock_hertz{device=\"cpu:0\"} 1410000000",
        "kiln_device_utilization_ratio{device=\"cpu:0\"} 0.25",
        "kiln_device_copied_bytes_total{device=\"cpu:0\",direction=\"to_device\"} 4096",
        "kiln_device_copied_bytes_total{device=\"cpu:0\",direction=\"from_device\"} 8",
        "kiln_program_info{program=\"a87a8ab9ef22\",name=\"step\",devices=\"cpu:0\"} 1",
        "kiln_disk_free_bytes{folder=\"state\"} 100",
        "kiln_disk_size_bytes{folder=\"state\"} 400",
        "kiln_saved_session_bytes 9",
        "kiln_compile_worker_starts_total 1",
        "kiln_rpc_duration_seconds_count{method=\"ProgramService/ListKernels\"} 1",
        "kiln_rpc_duration_seconds_bucket{method=\"ProgramService/ListKernels\",le=\"0.0025\"} 1",
        "kiln_failed_logins_total{reason=\"bad_token\"} 1",
        "kiln_refused_connections_total 1",
        "kiln_scrapes_total 1",
        "kiln_scrape_bytes_total 1000",
        "kiln_scrape_seconds_total 0.25"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, KernelNamesAreBounded) {
  Metrics metrics("1");
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  for (int i = 0; i < kKernelNamesMax / 2 + 50; ++i)
    device->KernelRan({"ann", "p"}, absl::StrCat("k", i), 1e-5);
  device->KernelRan({"ann", "p"}, "k0", 1e-5);
  device->KernelRan({"bob", "p"}, "k", 1e-5);
  const std::string text = metrics.Text();
  EXPECT_THAT(text,
              HasSubstr("_count{device=\"cpu:0\",user=\"ann\",program=\"p\",kernel=\"other\"} 50"));
  EXPECT_THAT(text,
              HasSubstr("_count{device=\"cpu:0\",user=\"ann\",program=\"p\",kernel=\"k0\"} 2"));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("\"k", kKernelNamesMax / 2, "\""))));
  // One user leaves names for others.
  EXPECT_THAT(text,
              HasSubstr("_count{device=\"cpu:0\",user=\"bob\",program=\"p\",kernel=\"k\"} 1"));
}

// Returns how many of a user's programs have names, and how many runs are of others.
std::pair<int, int> ProgramsOf(const std::string& text, const std::string& user) {
  const std::string begin = absl::StrCat(
      "kiln_program_duration_seconds_count{device=\"cpu:0\",user=\"", user, "\",program=\"");
  int named = 0, others = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, begin)) continue;
    if (absl::ConsumePrefix(&rest, "other\"} ")) {
      EXPECT_TRUE(absl::SimpleAtoi(rest, &others)) << line;
    } else {
      ++named;
    }
  }
  return {named, others};
}

TEST(Metrics, OneUsersProgramsLeaveNamesForAnothers) {
  Metrics metrics("1");
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  const auto run = [&](const std::string& user, int programs) {
    for (int i = 0; i < programs; ++i) {
      device->RunFinished({user, absl::StrCat(user, i)}, 1, nullptr);
      device->KernelRan({user, absl::StrCat(user, i)}, "add", 1);
    }
  };
  run("ann", 200);
  run("bob", 200);
  run("carl", 1);
  const std::string text = metrics.Text();
  EXPECT_EQ(ProgramsOf(text, "ann"), std::pair(50, 150));
  EXPECT_EQ(ProgramsOf(text, "bob"), std::pair(25, 175));
  EXPECT_EQ(ProgramsOf(text, "carl"), std::pair(1, 0));
  EXPECT_THAT(text, HasSubstr("user=\"ann\",program=\"other\",kernel=\"other\"} 150"));
}

TEST(Metrics, ProgramsThatDoNotRunGiveWayAndNothingIsLost) {
  Metrics metrics("1");
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  const auto run = [&](const std::string& user, const std::string& first, int programs) {
    for (int i = 0; i < programs; ++i) {
      device->RunFinished({user, absl::StrCat(first, i)}, 2, nullptr);
      device->KernelRan({user, absl::StrCat(first, i)}, "add", 1e-3);
    }
  };
  run("ann", "old", 51);
  for (int i = 0; i <= kIdleScrapes; ++i) {
    device->RunFinished({"ann", "old0"}, 2, nullptr);
    EXPECT_EQ(ProgramsOf(metrics.Text(), "ann"), std::pair(50, 1));
  }
  // All except one are idle, and no longer count as hers.
  run("ann", "new", 70);
  EXPECT_EQ(ProgramsOf(metrics.Text(), "ann"), std::pair(99, 1 + 21));
  // Idle names are dropped once no name is free. Their times are added to the rest.
  run("bob", "p", 40);
  const std::string text = metrics.Text();
  EXPECT_EQ(ProgramsOf(text, "bob"), std::pair(25, 15));
  EXPECT_EQ(ProgramsOf(text, "ann"), std::pair(75, 22 + 24));
  EXPECT_THAT(text, HasSubstr("program=\"old0\"} 42"));
  EXPECT_THAT(text, HasSubstr("user=\"ann\",program=\"other\"} 92"));
  EXPECT_THAT(text, HasSubstr("user=\"ann\",program=\"other\",kernel=\"other\"} 46"));
  EXPECT_THAT(text, HasSubstr("program=\"other\",kernel=\"other\",le=\"0.001\"} 46"));
  // One of her idle programs runs again and is in use.
  int idle = 1;
  while (!absl::StrContains(text, absl::StrCat("program=\"old", idle, "\"}"))) ++idle;
  device->RunFinished({"ann", absl::StrCat("old", idle)}, 2, nullptr);
  EXPECT_THAT(metrics.Text(), HasSubstr(absl::StrCat("program=\"old", idle, "\"} 2")));
}

// The seconds of each kernel of `user` in the counter.
std::map<std::string, double> KernelSecondsOf(const std::string& text, const std::string& user) {
  const std::string begin = absl::StrCat(
      "kiln_kernel_device_seconds_total{device=\"cpu:0\",user=\"", user, "\",program=\"");
  std::map<std::string, double> seconds;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, begin)) continue;
    const std::vector<std::string> parts =
        absl::StrSplit(rest, '"');  // program, kernel=, name, value
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(absl::StripPrefix(parts[3], "} "), &value)) << line;
    seconds[absl::StrCat(parts[0], " ", parts[2])] += value;
  }
  return seconds;
}

std::shared_ptr<const KernelShares> Shares(std::vector<KernelShares::Share> kernels,
                                           double outside) {
  return std::make_shared<KernelShares>(KernelShares{std::move(kernels), outside});
}

TEST(Metrics, TheTimeOfEveryRunIsDividedAmongKernels) {
  Metrics metrics("1");
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  const auto first = Shares({{"add", 0.5}, {"mul", 0.25}}, 0.25);
  const auto second = Shares({{"add", 0.25}, {"mul", 0.75}}, 0);
  device->RunFinished({"ann", "p"}, 8, nullptr);  // shares are not known yet
  for (int i = 0; i < 100; ++i) device->RunFinished({"ann", "p"}, 4, first);
  // None of bob's runs was timed.
  device->RunFinished({"bob", "p"}, 4, first);
  for (int i = 0; i < 10; ++i) device->RunFinished({"ann", "p"}, 4, second);
  const std::string text = metrics.Text();
  EXPECT_THAT(KernelSecondsOf(text, "ann"),
              UnorderedElementsAre(Pair("p add", 200 + 10), Pair("p mul", 100 + 30),
                                   Pair("p outside_kernels", 8 + 100)));
  EXPECT_THAT(KernelSecondsOf(text, "bob"), UnorderedElementsAre(Pair("p add", 2), Pair("p mul", 1),
                                                                 Pair("p outside_kernels", 1)));
}

TEST(Metrics, KernelSecondsOfProgramsWithoutNamesAreNotLost) {
  Metrics metrics("1");
  DeviceMetrics* device = metrics.ForDevice("cpu:0");
  const auto shares = Shares({{"add", 0.5}}, 0.5);
  const auto run = [&](const std::string& first, int programs) {
    for (int i = 0; i < programs; ++i)
      device->RunFinished({"ann", absl::StrCat(first, i)}, 2, shares);
  };
  const auto sum = [&] {
    double seconds = 0;
    for (const auto& [kernel, of_kernel] : KernelSecondsOf(metrics.Text(), "ann"))
      seconds += of_kernel;
    return seconds;
  };
  run("old", 150);
  EXPECT_EQ(KernelSecondsOf(metrics.Text(), "ann").at("other other"), 100);
  EXPECT_EQ(sum(), 300);
  // All programs give up their names, and their times are added to "other".
  for (int i = 0; i <= kIdleScrapes; ++i) metrics.Text();
  run("new", 100);
  EXPECT_GT(KernelSecondsOf(metrics.Text(), "ann").at("other other"), 100);
  EXPECT_EQ(sum(), 500);
}

TEST(Metrics, UsersOfProgramsAreBounded) {
  Metrics metrics("1");
  for (int i = 0; i < kUserNamesMax + 3; ++i)
    metrics.ForDevice("cpu:0")->RunFinished({absl::StrCat("u", i), "p"}, 1, nullptr);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\"u", kUserNamesMax - 1, "\"")));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("\"u", kUserNamesMax, "\""))));
  EXPECT_EQ(ProgramsOf(text, "other"), std::pair(0, 3));
}

TEST(Metrics, UsersNamesAreBounded) {
  Metrics metrics("1");
  std::vector<UserGauges> users;
  metrics.SetGauges([&users] {
    Gauges gauges;
    gauges.users = users;
    return gauges;
  });
  for (int i = 0; i < kUserNamesMax; ++i)
    users.push_back({absl::StrCat("m", i), "cpu:0", 0, 1, 0, 0, 0});
  metrics.Text();
  // Sorted by name they come first, but they are newer.
  users.insert(users.begin(), {{"a1", "cpu:0", 0, 5, 0, 0, 0}, {"a2", "cpu:0", 0, 6, 0, 0, 0}});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("kiln_user_runs_total{user=\"m99\",device=\"cpu:0\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_user_runs_total{user=\"other\",device=\"cpu:0\"} 11"));
  EXPECT_THAT(text, Not(HasSubstr("\"a1\"")));
}

TEST(Metrics, PromtoolFindsNothing) {
  if (std::system("command -v promtool >/dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed";
  Metrics metrics("1.2.3", "664d6a6eeeb7");
  Exercise(metrics);
  const std::string path = absl::StrCat(testing::TempDir(), "/kiln_metrics.txt");
  std::ofstream(path) << metrics.Text();
  EXPECT_EQ(std::system(absl::StrCat("promtool check metrics < ", path).c_str()), 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace kiln::metrics
