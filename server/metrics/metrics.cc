#include "server/metrics/metrics.h"

#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace kiln::metrics {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::map<std::string, std::string>;

// Seconds: 1, 2.5, 5 per decade.
Histogram::BucketBoundaries Buckets(double from, double to) {
  Histogram::BucketBoundaries bounds;
  for (double decade = from; decade < to * 1.001; decade *= 10) {
    for (const double step : {1.0, 2.5, 5.0}) {
      if (decade * step < to * 1.001) bounds.push_back(decade * step);
    }
  }
  return bounds;
}

Counter* AddCounter(prometheus::Registry& registry, const char* name, const char* help,
                    const Labels& labels = {}) {
  return &BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

MetricFamily Gauge(std::string name, std::string help) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = MetricType::Gauge;
  return family;
}

void AddSample(MetricFamily& family, const std::string& device, double value) {
  prometheus::ClientMetric metric;
  if (!device.empty()) metric.label.push_back({"device", device});
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

// Turns the gauges of the moment into families.
class GaugeCollector : public prometheus::Collectable {
 public:
  void Set(std::function<Gauges()> read) {
    absl::MutexLock lock(&mutex_);
    read_ = std::move(read);
  }
  std::vector<MetricFamily> Collect() const override {
    absl::MutexLock lock(&mutex_);
    if (!read_) return {};
    const Gauges now = read_();
    std::vector<MetricFamily> families = PerDevice(now);
    const std::pair<MetricFamily, int64_t> totals[] = {
        {Gauge("kiln_sessions", "Open sessions."), now.sessions},
        {Gauge("kiln_connections", "Connect streams attached to sessions."), now.connections},
        {Gauge("kiln_programs", "Compiled programs in memory."), now.programs},
        {Gauge("kiln_blob_bytes", "Host memory held by uploaded blobs."), now.blob_bytes},
        {Gauge("kiln_kernel_cache_bytes", "Size of the kernel cache on disk."), now.cache_bytes},
        {Gauge("kiln_kernel_cache_kernels", "Kernels in the cache on disk."), now.cache_kernels}};
    for (const auto& [family, value] : totals) {
      families.push_back(family);
      AddSample(families.back(), "", static_cast<double>(value));
    }
    return families;
  }

 private:
  static std::vector<MetricFamily> PerDevice(const Gauges& now) {
    std::vector<MetricFamily> families = {
        Gauge("kiln_device_memory_used_bytes", "Device memory that is handed out."),
        Gauge("kiln_device_memory_limit_bytes", "Device memory that may be handed out."),
        Gauge("kiln_device_queue_length", "Runs that wait for the device."),
        Gauge("kiln_device_healthy", "1 if the device can be used, else 0.")};
    for (const DeviceGauges& device : now.devices) {
      AddSample(families[0], device.device, static_cast<double>(device.memory_used_bytes));
      AddSample(families[1], device.device, static_cast<double>(device.memory_total_bytes));
      AddSample(families[2], device.device, static_cast<double>(device.queued));
      AddSample(families[3], device.device, device.healthy ? 1 : 0);
    }
    return families;
  }

  mutable absl::Mutex mutex_;
  std::function<Gauges()> read_ ABSL_GUARDED_BY(mutex_);
};

struct Families {
  explicit Families(prometheus::Registry& registry)
      : runs(BuildCounter()
                 .Name("kiln_replays_total")
                 .Help("Runs of programs that ended, by device.")
                 .Register(registry)),
        run_failures(BuildCounter()
                         .Name("kiln_replay_failures_total")
                         .Help("Runs of programs that failed, by device.")
                         .Register(registry)),
        queue_wait(BuildHistogram()
                       .Name("kiln_queue_wait_seconds")
                       .Help("Time from a run's arrival until the device got it.")
                       .Register(registry)),
        program_seconds(BuildHistogram()
                            .Name("kiln_program_duration_seconds")
                            .Help("Device time of a whole run.")
                            .Register(registry)),
        kernel_seconds(BuildHistogram()
                           .Name("kiln_kernel_duration_seconds")
                           .Help("Device time of one kernel, from sampled runs.")
                           .Register(registry)),
        errors(BuildCounter()
                   .Name("kiln_errors_total")
                   .Help("Failed calls and operations, by canonical code.")
                   .Register(registry)) {}
  Family<Counter>& runs;
  Family<Counter>& run_failures;
  Family<Histogram>& queue_wait;
  Family<Histogram>& program_seconds;
  Family<Histogram>& kernel_seconds;
  Family<Counter>& errors;
};

// Connects to a port of this machine and hangs up.
void Knock(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Nobody there is as good as somebody.
  [[maybe_unused]] const int connected =
      connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(connection);
}

class PrometheusDevice : public DeviceMetrics {
 public:
  PrometheusDevice(Families& families, const std::string& device)
      : families_(families),
        device_(device),
        runs_(families.runs.Add({{"device", device}})),
        failures_(families.run_failures.Add({{"device", device}})),
        queue_wait_(families.queue_wait.Add({{"device", device}}, Buckets(1e-6, 10))),
        seconds_(families.program_seconds.Add({{"device", device}}, Buckets(1e-6, 100))) {}

  void RunStarted(absl::Duration waited) override {
    queue_wait_.Observe(absl::ToDoubleSeconds(waited));
  }
  void RunFinished(double seconds) override {
    runs_.Increment();
    seconds_.Observe(seconds);
  }
  void RunFailed() override { failures_.Increment(); }
  void KernelRan(const std::string& kernel, double seconds) override {
    ForKernel(kernel)->Observe(seconds);
  }

 private:
  Histogram* ForKernel(const std::string& kernel) {
    absl::MutexLock lock(&mutex_);
    const bool known = kernels_.count(kernel) > 0;
    const bool full = static_cast<int>(kernels_.size()) >= kMaxKernelNames;
    const std::string name = known || !full ? kernel : "other";
    Histogram*& histogram = kernels_[name];
    if (histogram == nullptr) {
      histogram =
          &families_.kernel_seconds.Add({{"device", device_}, {"kernel", name}}, Buckets(1e-6, 1));
    }
    return histogram;
  }

  Families& families_;
  const std::string device_;
  Counter& runs_;
  Counter& failures_;
  Histogram& queue_wait_;
  Histogram& seconds_;
  absl::Mutex mutex_;
  std::map<std::string, Histogram*> kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct Metrics::Implementation {
  explicit Implementation(const std::string& version)
      : registry(std::make_shared<prometheus::Registry>()),
        gauges(std::make_shared<GaugeCollector>()),
        families(*registry),
        compiles(AddCounter(*registry, "kiln_compiles_total", "Programs compiled.")),
        compile_failures(AddCounter(*registry, "kiln_compile_failures_total",
                                    "Programs that could not be compiled.")),
        compile_seconds(BuildHistogram()
                            .Name("kiln_compile_duration_seconds")
                            .Help("Time to compile a program.")
                            .Register(*registry)
                            .Add({}, Buckets(1e-3, 100))),
        program_hits(
            AddCounter(*registry, "kiln_program_cache_hits_total", "Programs found in memory.")),
        program_misses(AddCounter(*registry, "kiln_program_cache_misses_total",
                                  "Programs not found in memory.")),
        shared_bindings(AddCounter(*registry, "kiln_shared_bindings_total",
                                   "Values of variables that a program for all values serves.")),
        own_bindings(AddCounter(*registry, "kiln_own_bindings_total",
                                "Values of variables that have a program of their own.")),
        kernel_hits(
            AddCounter(*registry, "kiln_kernel_cache_hits_total", "Kernels found on disk.")),
        kernel_misses(
            AddCounter(*registry, "kiln_kernel_cache_misses_total", "Kernels not found on disk.")),
        received(AddCounter(*registry, "kiln_received_bytes_total",
                            "Tensor and blob bytes from clients.")),
        sent(AddCounter(*registry, "kiln_sent_bytes_total", "Tensor bytes to clients.")) {
    prometheus::BuildGauge()
        .Name("kiln_build_info")
        .Help("1, labelled with the daemon's version.")
        .Register(*registry)
        .Add({{"version", version}})
        .Set(1);
  }

  std::shared_ptr<prometheus::Registry> registry;
  std::shared_ptr<GaugeCollector> gauges;
  Families families;
  Counter* compiles;
  Counter* compile_failures;
  Histogram& compile_seconds;
  Counter* program_hits;
  Counter* program_misses;
  Counter* shared_bindings;
  Counter* own_bindings;
  Counter* kernel_hits;
  Counter* kernel_misses;
  Counter* received;
  Counter* sent;
  std::unique_ptr<prometheus::Exposer> exposer;
  absl::Mutex mutex;
  std::map<std::string, std::unique_ptr<PrometheusDevice>> devices ABSL_GUARDED_BY(mutex);
};

Metrics::Metrics(const std::string& version)
    : implementation_(std::make_unique<Implementation>(version)) {}
Metrics::~Metrics() { StopListening(); }

DeviceMetrics* Metrics::ForDevice(const std::string& device) {
  absl::MutexLock lock(&implementation_->mutex);
  auto& entry = implementation_->devices[device];
  if (!entry) entry = std::make_unique<PrometheusDevice>(implementation_->families, device);
  return entry.get();
}

void Metrics::Compiled(double seconds) {
  implementation_->compiles->Increment();
  implementation_->compile_seconds.Observe(seconds);
}
void Metrics::CompileFailed() { implementation_->compile_failures->Increment(); }
void Metrics::ProgramCacheLookup(bool hit) {
  (hit ? implementation_->program_hits : implementation_->program_misses)->Increment();
}
void Metrics::ProgramBound(bool shared) {
  (shared ? implementation_->shared_bindings : implementation_->own_bindings)->Increment();
}
void Metrics::KernelCacheLookup(bool hit) {
  (hit ? implementation_->kernel_hits : implementation_->kernel_misses)->Increment();
}
void Metrics::Received(int64_t bytes) {
  implementation_->received->Increment(static_cast<double>(bytes));
}
void Metrics::Sent(int64_t bytes) { implementation_->sent->Increment(static_cast<double>(bytes)); }
void Metrics::Failed(absl::StatusCode code) {
  implementation_->families.errors
      .Add({{"code", absl::AsciiStrToLower(absl::StatusCodeToString(code))}})
      .Increment();
}

void Metrics::SetGauges(std::function<Gauges()> gauges) {
  implementation_->gauges->Set(std::move(gauges));
}

absl::StatusOr<int> Metrics::Listen(const std::string& address) {
  try {
    implementation_->exposer = std::make_unique<prometheus::Exposer>(address, 1);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address, ": ", error.what(),
                     "; is the port in use? --metrics_listen gives another, or none"));
  }
  implementation_->exposer->RegisterCollectable(implementation_->registry);
  implementation_->exposer->RegisterCollectable(implementation_->gauges);
  const std::vector<int> ports = implementation_->exposer->GetListeningPorts();
  return ports.empty() ? absl::StatusOr<int>(absl::UnavailableError("no metrics port"))
                       : ports.front();
}

void Metrics::StopListening() {
  if (!implementation_->exposer) return;
  const std::vector<int> ports = implementation_->exposer->GetListeningPorts();
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    implementation_->exposer.reset();
    stopped = true;
  });
  // civetweb looks at its stop flag every two seconds or when somebody connects.
  while (!stopped && !ports.empty()) {
    Knock(ports.front());
    absl::SleepFor(absl::Milliseconds(5));
  }
  stopper.join();
}

std::string Metrics::Text() const {
  std::vector<MetricFamily> families = implementation_->registry->Collect();
  for (MetricFamily& family : implementation_->gauges->Collect())
    families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kiln::metrics
