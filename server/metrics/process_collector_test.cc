#include "server/metrics/process_collector.h"

#include <prometheus/metric_family.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::metrics {
namespace {

std::map<std::string, double> Values(const ProcessCollector& collector) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : collector.Collect()) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

class ProcessCollectorTest : public ::testing::Test {
 protected:
  ProcessCollectorTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(absl::StrCat(folder_, "/self/fd"));
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(absl::StrCat(folder_, "/", name)) << text;
  }
  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/process_collector");
};

TEST_F(ProcessCollectorTest, ReadsTheFieldsOfProc) {
  // The name of the program has a space and a parenthesis.
  Write("self/stat",
        "12 (a) b) S 1 12 12 0 -1 4194560 100 0 0 0 250 150 7 8 20 0 9 0 5000 123456789 300 1 2\n");
  Write("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 4\n");
  for (const char* name : {"0", "1", "17"}) Write(absl::StrCat("self/fd/", name), "");
  const auto values = Values(ProcessCollector(folder_));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(values, (std::map<std::string, double>{
                        {"process_cpu_seconds_total", 400 / ticks},
                        {"process_start_time_seconds", 1700000000 + 5000 / ticks},
                        {"process_resident_memory_bytes", 300 * page},
                        {"process_virtual_memory_bytes", 123456789},
                        {"process_threads", 9},
                        {"process_open_fds", 3},
                        {"process_max_fds", static_cast<double>(limit.rlim_cur)}}));
}

TEST_F(ProcessCollectorTest, LeavesOutWhatCannotBeRead) {
  Write("self/stat", "12 (kilnd) S 1");
  std::filesystem::remove(absl::StrCat(folder_, "/self/fd"));
  const auto values = Values(ProcessCollector(folder_));
  EXPECT_EQ(values.size(), 1u);
  EXPECT_TRUE(values.contains("process_max_fds"));
}

TEST(ProcessCollector, ReadsThisProcess) {
  const auto values = Values(ProcessCollector());
  EXPECT_EQ(values.size(), 7u);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(values.at("process_open_fds"), 3);
  EXPECT_GE(values.at("process_threads"), 1);
}

}  // namespace
}  // namespace kiln::metrics
