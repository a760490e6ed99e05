#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"
#include "server/metrics/bounded_names.h"
#include "server/metrics/buckets.h"
#include "server/metrics/gauge_collector.h"
#include "server/metrics/process_collector.h"
#include "server/metrics/program_collector.h"
#include "server/metrics/prometheus_device.h"

namespace kiln::metrics {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Histogram;

// More than there are.
constexpr int kLoginReasonsMax = 20;

Counter* AddCounter(prometheus::Registry& registry, const char* name, const char* help) {
  // Adding the family's only counter now makes it appear as 0 before the first event, so that rates
  // are right from the first event on.
  return &BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

struct Metrics::Implementation {
  Implementation(const std::string& version, const std::string& commit)
      : registry(std::make_shared<prometheus::Registry>()),
        gauges(std::make_shared<GaugeCollector>()),
        programs(std::make_shared<ProgramCollector>()),
        families(*registry),
        errors(BuildCounter()
                   .Name("kiln_errors_total")
                   .Help("Failed calls and operations, by canonical code.")
                   .Register(*registry)),
        compiles(AddCounter(*registry, "kiln_compiles_total", "Programs compiled.")),
        compile_failures(AddCounter(*registry, "kiln_compile_failures_total",
                                    "Programs that could not be compiled.")),
        compile_worker_failures(AddCounter(
            *registry, "kiln_compile_worker_failures_total",
            "Compilation processes that died or were stopped while compiling a kernel.")),
        compile_worker_starts(AddCounter(*registry, "kiln_compile_worker_starts_total",
                                         "Compilation processes that were started.")),
        compile_seconds(BuildHistogram()
                            .Name("kiln_compile_duration_seconds")
                            .Help("Time to compile a program.")
                            .Register(*registry)
                            .Add({}, Buckets(1e-3, 100))),
        refused_schedules(AddCounter(*registry, "kiln_refused_schedules_total",
                                     "Kernels that run with the plain schedule because the chosen "
                                     "schedule computed something else.")),
        program_hits(
            AddCounter(*registry, "kiln_program_cache_hits_total", "Programs found in memory.")),
        program_misses(AddCounter(*registry, "kiln_program_cache_misses_total",
                                  "Programs not found in memory.")),
        shared_bindings(AddCounter(*registry, "kiln_shared_bindings_total",
                                   "Values of variables that use a program for all values.")),
        own_bindings(AddCounter(*registry, "kiln_own_bindings_total",
                                "Values of variables with their own program.")),
        kernel_hits(
            AddCounter(*registry, "kiln_kernel_cache_hits_total", "Kernels found on disk.")),
        kernel_misses(
            AddCounter(*registry, "kiln_kernel_cache_misses_total", "Kernels not found on disk.")),
        kernel_rejected(AddCounter(*registry, "kiln_kernel_cache_rejected_total",
                                   "Rows of the kernel cache that were dropped because they were "
                                   "not written with its key.")),
        tune_candidates(BuildCounter()
                            .Name("kiln_tune_candidates_total")
                            .Help("Schedules that searches have tried, by outcome.")
                            .Register(*registry)),
        tuned_kernels(BuildCounter()
                          .Name("kiln_tune_kernels_total")
                          .Help("Kernels whose schedules were searched, by outcome.")
                          .Register(*registry)),
        tune_seconds(BuildCounter()
                         .Name("kiln_tune_seconds_total")
                         .Help("Time spent on searches for schedules.")
                         .Register(*registry)),
        received(AddCounter(*registry, "kiln_received_bytes_total",
                            "Tensor and blob bytes from clients.")),
        sent(AddCounter(*registry, "kiln_sent_bytes_total", "Tensor bytes to clients.")),
        call_seconds(BuildHistogram()
                         .Name("kiln_rpc_duration_seconds")
                         .Help("Time from a call's arrival to its status, by method.")
                         .Register(*registry)),
        failed_logins(BuildCounter()
                          .Name("kiln_failed_logins_total")
                          .Help("Calls refused because their caller could not be identified.")
                          .Register(*registry)),
        refused_connections(AddCounter(*registry, "kiln_refused_connections_total",
                                       "Connections refused or closed before their first call.")),
        scrapes(AddCounter(*registry, "kiln_scrapes_total", "Scrapes that were answered.")),
        scrape_bytes(AddCounter(*registry, "kiln_scrape_bytes_total", "Bytes of their answers.")),
        scrape_seconds(AddCounter(*registry, "kiln_scrape_seconds_total",
                                  "Time to collect and write their answers.")),
        abandoned(
            AddCounter(*registry, "kiln_abandoned_calls_total",
                       "Calls with large answers whose client went away before the answer.")) {
    for (const char* origin : {"asked", "idle"}) {
      for (const char* outcome : {"timed", "refused"})
        tune_candidates.Add({{"origin", origin}, {"outcome", outcome}});
      for (const char* outcome : {"faster", "kept", "failed"})
        tuned_kernels.Add({{"origin", origin}, {"outcome", outcome}});
      tune_seconds.Add({{"origin", origin}});
    }
    prometheus::BuildGauge()
        .Name("kiln_build_info")
        .Help("1, labelled with the daemon's version and the commit of its sources.")
        .Register(*registry)
        .Add({{"version", version}, {"commit", commit}})
        .Set(1);
  }

  std::shared_ptr<prometheus::Registry> registry;
  std::shared_ptr<GaugeCollector> gauges;
  std::shared_ptr<ProgramCollector> programs;
  ProcessCollector process;
  DeviceFamilies families;
  prometheus::Family<Counter>& errors;
  Counter* compiles;
  Counter* compile_failures;
  Counter* compile_worker_failures;
  Counter* compile_worker_starts;
  Histogram& compile_seconds;
  Counter* refused_schedules;
  Counter* program_hits;
  Counter* program_misses;
  Counter* shared_bindings;
  Counter* own_bindings;
  Counter* kernel_hits;
  Counter* kernel_misses;
  Counter* kernel_rejected;
  prometheus::Family<Counter>& tune_candidates;
  prometheus::Family<Counter>& tuned_kernels;
  prometheus::Family<Counter>& tune_seconds;
  Counter* received;
  Counter* sent;
  prometheus::Family<Histogram>& call_seconds;
  prometheus::Family<Counter>& failed_logins;
  Counter* refused_connections;
  Counter* scrapes;
  Counter* scrape_bytes;
  Counter* scrape_seconds;
  Counter* abandoned;
  absl::Mutex mutex;
  std::map<std::string, std::unique_ptr<PrometheusDevice>> devices ABSL_GUARDED_BY(mutex);
  BoundedNames login_reasons ABSL_GUARDED_BY(mutex){kLoginReasonsMax};
};

Metrics::Metrics(const std::string& version, const std::string& commit)
    : implementation_(std::make_unique<Implementation>(version, commit)) {}
Metrics::~Metrics() = default;

DeviceMetrics* Metrics::ForDevice(const std::string& device) {
  absl::MutexLock lock(&implementation_->mutex);
  auto& entry = implementation_->devices[device];
  if (!entry) {
    entry = std::make_unique<PrometheusDevice>(
        implementation_->families, implementation_->programs->ForDevice(device), device);
  }
  KILN_CHECK_NE(entry, nullptr);
  return entry.get();
}

void Metrics::Compiled(double seconds) {
  implementation_->compiles->Increment();
  implementation_->compile_seconds.Observe(seconds);
}
void Metrics::ScheduleRefused() { implementation_->refused_schedules->Increment(); }
void Metrics::CompileFailed() { implementation_->compile_failures->Increment(); }
void Metrics::CompileWorkerFailed() { implementation_->compile_worker_failures->Increment(); }
void Metrics::CompileWorkerStarted() { implementation_->compile_worker_starts->Increment(); }
void Metrics::ProgramCacheLookup(bool hit) {
  (hit ? implementation_->program_hits : implementation_->program_misses)->Increment();
}
void Metrics::ProgramBound(bool shared) {
  (shared ? implementation_->shared_bindings : implementation_->own_bindings)->Increment();
}
void Metrics::KernelCacheLookup(bool hit) {
  (hit ? implementation_->kernel_hits : implementation_->kernel_misses)->Increment();
}
void Metrics::KernelCacheRejected() { implementation_->kernel_rejected->Increment(); }
void Metrics::TuneTried(std::string_view origin, int timed, int refused) {
  auto& family = implementation_->tune_candidates;
  family.Add({{"origin", std::string(origin)}, {"outcome", "timed"}}).Increment(timed);
  family.Add({{"origin", std::string(origin)}, {"outcome", "refused"}}).Increment(refused);
}
void Metrics::KernelTuned(std::string_view origin, std::string_view outcome) {
  implementation_->tuned_kernels
      .Add({{"origin", std::string(origin)}, {"outcome", std::string(outcome)}})
      .Increment();
}
void Metrics::TuneEnded(std::string_view origin, double seconds) {
  implementation_->tune_seconds.Add({{"origin", std::string(origin)}}).Increment(seconds);
}
void Metrics::Received(int64_t bytes) {
  implementation_->received->Increment(static_cast<double>(bytes));
}
void Metrics::Sent(int64_t bytes) { implementation_->sent->Increment(static_cast<double>(bytes)); }
void Metrics::CallEnded(const std::string& method, double seconds) {
  // Add returns an existing histogram if there is one. Calls are rare enough for this look-up;
  // operations of sessions are not calls.
  implementation_->call_seconds.Add({{"method", method}}, Buckets(1e-4, 100)).Observe(seconds);
}
void Metrics::LoginFailed(const std::string& reason) {
  std::string label;
  {
    absl::MutexLock lock(&implementation_->mutex);
    label = implementation_->login_reasons.Name(reason);
  }
  implementation_->failed_logins.Add({{"reason", absl::AsciiStrToLower(label)}}).Increment();
}
void Metrics::ConnectionRefused() { implementation_->refused_connections->Increment(); }
void Metrics::Scraped(int64_t bytes, double seconds) {
  implementation_->scrapes->Increment();
  implementation_->scrape_bytes->Increment(static_cast<double>(bytes));
  implementation_->scrape_seconds->Increment(seconds);
}
void Metrics::Abandoned() { implementation_->abandoned->Increment(); }
void Metrics::Failed(absl::StatusCode code) {
  // Add returns an existing counter if there is one. Errors are rare enough for this look-up.
  implementation_->errors.Add({{"code", absl::AsciiStrToLower(absl::StatusCodeToString(code))}})
      .Increment();
}

void Metrics::SetGauges(std::function<Gauges()> gauges) {
  implementation_->gauges->Set(std::move(gauges));
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = implementation_->registry->Collect();
  for (const prometheus::Collectable* more :
       {static_cast<const prometheus::Collectable*>(implementation_->gauges.get()),
        static_cast<const prometheus::Collectable*>(implementation_->programs.get()),
        static_cast<const prometheus::Collectable*>(&implementation_->process)}) {
    for (prometheus::MetricFamily& family : more->Collect()) families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kiln::metrics
