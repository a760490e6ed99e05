#include "server/metrics/process_collector.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fields of /proc/self/stat after the name of the program, which may contain anything up to
// the last parenthesis. The first is field 3 of proc(5).
std::vector<std::string> StatFields(const std::string& stat) {
  const size_t end = stat.rfind(") ");
  if (end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(end + 2), ' ');
}

// Field `number` of proc(5).
std::optional<double> Field(const std::vector<std::string>& fields, size_t number) {
  double value = 0;
  if (number - 3 >= fields.size() || !absl::SimpleAtod(fields[number - 3], &value))
    return std::nullopt;
  return value;
}

// The Unix time at which the machine started: the line "btime" of /proc/stat.
std::optional<double> BootTime(const std::string& stat) {
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double value = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &value))
      return value;
  }
  return std::nullopt;
}

std::optional<double> CountFiles(const std::string& folder) {
  std::error_code error;
  double count = 0;
  for (auto each = std::filesystem::directory_iterator(folder, error);
       !error && each != std::filesystem::directory_iterator(); each.increment(error))
    ++count;
  return error ? std::nullopt : std::optional(count);
}

std::optional<double> FilesMax() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

class Families {
 public:
  void Add(MetricType type, const char* name, const char* help, std::optional<double> value) {
    if (!value) return;
    MetricFamily& family = families_.emplace_back();
    family.name = name;
    family.help = help;
    family.type = type;
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

}  // namespace

std::vector<MetricFamily> ProcessCollector::Collect() const {
  const auto fields = StatFields(Read(absl::StrCat(folder_, "/self/stat")));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto user = Field(fields, 14), system = Field(fields, 15), started = Field(fields, 22);
  const auto pages = Field(fields, 24), boot = BootTime(Read(absl::StrCat(folder_, "/stat")));
  Families families;
  families.Add(MetricType::Counter, "process_cpu_seconds_total",
               "Processor time of the daemon; its compiling processes are not in it.",
               user && system ? std::optional((*user + *system) / ticks) : std::nullopt);
  families.Add(MetricType::Gauge, "process_start_time_seconds", "Unix time of the start.",
               boot && started ? std::optional(*boot + *started / ticks) : std::nullopt);
  families.Add(MetricType::Gauge, "process_resident_memory_bytes", "Resident memory.",
               pages ? std::optional(*pages * page) : std::nullopt);
  families.Add(MetricType::Gauge, "process_virtual_memory_bytes", "Address space.",
               Field(fields, 23));
  families.Add(MetricType::Gauge, "process_threads", "Threads.", Field(fields, 20));
  families.Add(MetricType::Gauge, "process_open_fds", "Open file descriptors.",
               CountFiles(absl::StrCat(folder_, "/self/fd")));
  families.Add(MetricType::Gauge, "process_max_fds", "Limit of open file descriptors.", FilesMax());
  return families.Take();
}

}  // namespace kiln::metrics
