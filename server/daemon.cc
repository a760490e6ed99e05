#include "server/daemon.h"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "compiler/ops/op_def.h"
#include "compiler/workers/pool.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"
#include "server/auth/accounts.h"
#include "server/auth/audit_log.h"
#include "server/auth/authenticator.h"
#include "server/auth/user_store.h"
#include "server/backup/state_backup.h"
#include "server/buffers/blob_store.h"
#include "server/cache/kernel_cache.h"
#include "server/cache/secret.h"
#include "server/config/keys.h"
#include "server/errors/errors.h"
#include "server/fairness/host_work.h"
#include "server/fairness/submission_order.h"
#include "server/finishing_compiler.h"
#include "server/log/log.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/open_devices.h"
#include "server/quota/limit_store.h"
#include "server/read_gauges.h"
#include "server/relay/tls_reloader.h"
#include "server/rpc/access.h"
#include "server/rpc/connections/credentials.h"
#include "server/rpc/messages/graph_source.h"
#include "server/rpc/server.h"
#include "server/rpc/services/services.h"
#include "server/runtime/cache/fair_pool.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/health/health_probe.h"
#include "server/runtime/thread_pool.h"
#include "server/scrape/endpoint.h"
#include "server/sensors/device_sensors.h"
#include "server/sessions/checkpoint/restorer.h"
#include "server/sessions/checkpoint/session_recorder.h"
#include "server/sessions/checkpoint/shutdown.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/checkpoint/writer.h"
#include "server/sessions/registry.h"
#include "server/state/folder_lock.h"
#include "server/trace/recorder.h"
#include "server/tuner/cost_samples.h"
#include "server/tuner/idle_tuner.h"
#include "server/tuner/rooflines.h"
#include "server/tuner/setting_store.h"
#include "server/tuner/shipped_settings.h"
#include "server/tuner/trial_runner.h"
#include "server/tuner/tuner.h"
#include "server/upkeep.h"
#include "server/web/page_files.h"
#include "server/web/site.h"

namespace kiln {
namespace {

// A few more than run at once, so that graphs that compile for long do not block others.
constexpr int kCompileThreads = 8;
constexpr int kCompileThreadsOfOne = 2;
// Compile processes that are started before they are needed. More start on demand.
constexpr int kSpareWorkersMax = 8;
// Vendors' compilers take many times as long as Kiln's, so they get more time.
constexpr int kFinishSecondsFactor = 4;
// Each uses some hundred MiB, and a context's share of a GPU's memory.
constexpr int kFinishWorkersMax = 4;
// For values too large to be copied on a gRPC or device thread.
constexpr int kCopyThreads = 2;
constexpr int kDigestThreads = 2;
constexpr int kExplanationThreads = 2;
// One part in this many of the machine's memory for clients' data in the daemon, if the
// configuration sets no limit.
constexpr int64_t kHostMemoryShare = 6;
// One part in this many of the machine's memory for gRPC's buffers. A last resort, far above normal
// traffic: beyond it gRPC ends streams of any client, and new connections wait.
constexpr int64_t kTransportShare = 24;
constexpr int64_t kTransportMin = 256 << 20;
// How much free memory glibc keeps at the end of each arena, and the size from which it maps memory
// separately. gRPC's receive buffers are freed with each message, and should not be returned to the
// system each time. By default glibc adapts these values, up to 64 MiB and 32 MiB.
constexpr int kKeptOfAnArena = 16 << 20;
constexpr int kMappingMin = 8 << 20;

int KernelThreads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// The daemon's own searches may use this fraction of the host memory: 1 / kIdleMemoryShare.
constexpr int64_t kIdleMemoryShare = 8;
// Users whose last work has ended this long ago may be about to send more.
constexpr absl::Duration kUsersActive = absl::Seconds(1);

// Returns the compile threads of a search: a quarter of the cores, since users' work goes on.
int CandidateThreads() { return std::max(1, KernelThreads() / 4); }

absl::Status ShuttingDown() {
  return errors::WithReason(absl::UnavailableError("daemon is shutting down"), "SHUTTING_DOWN");
}

absl::Status StopsToRestart() {
  return sessions::Restarting(
      "the daemon is restarting and keeps its sessions; try again when it runs");
}

absl::Status CheckPasses(const config::Config& config) {
  compiler::Options options;
  options.disabled_passes = config.disabled_passes;
  options.dumped_passes = config.dumped_passes;
  return compiler::CheckPassNames(options);
}

config::Config WithLimits(config::Config config, const DaemonParts& parts) {
  if (config.host_memory_limit_bytes == 0)
    config.host_memory_limit_bytes = parts.memory_bytes / kHostMemoryShare;
  return config;
}

relay::TlsFiles TlsOf(const config::Config& config) {
  return {config.tls_certificate, config.tls_key, config.tls_client_ca};
}

absl::Duration LongestRun(const config::Config& config) {
  return config.run_seconds_limit > 0 ? absl::Seconds(config.run_seconds_limit)
                                      : absl::InfiniteDuration();
}

}  // namespace

std::string DaemonVersion() { return KILN_VERSION; }

// In dependency order; parts are destroyed in reverse order.
struct Daemon::Implementation {
  // `given`: without the limits that follow from the machine (WithLimits).
  Implementation(const config::Config& config, const config::Config& given)
      : config(config),
        host(std::make_shared<memory::HostMemory>(config.host_memory_limit_bytes,
                                                  config.session_limit)),
        blobs(config.blob_limit_bytes > 0
                  ? std::min(config.blob_limit_bytes, config.host_memory_limit_bytes)
                  : config.host_memory_limit_bytes),
        applied(given) {}
  ~Implementation();

  // Reads users and roles from the state folder.
  absl::Status OpenUsers();
  absl::StatusOr<cache::Secret> OpenTokenKey(const std::string& path);
  absl::Status OpenAudit();
  void MakeKernelCache();
  // And the samples. `shipped`: a folder.
  void MakeSettingStore(const std::string& shipped);
  void MakeCompileWorkers(std::vector<std::string> command);
  void MakePrograms(runtime::CompileFunction compile);
  // Whether users have, or had a moment ago, work on a device or on the host.
  bool UsersAreActive() const;
  // `compile` is used if there are no workers.
  void MakeTuner(tuner::MakeTrialRunner make_runner, workers::CompileFunction compile,
                 runtime::CompileFunction compile_program);
  // Requires: nothing was queued on a device yet.
  void MakeIdleTuner(absl::Duration interval);
  void MakeRegistry();
  void FillServiceParts();
  std::string ClosedPath() const { return config.state_folder + "/ended_sessions"; }
  absl::Status Serve();
  std::vector<std::shared_ptr<runtime::HealthProbe>> MakeHealthProbes();
  void StartUpkeep(absl::Duration interval);
  // Whether an account of this name may use the daemon through its socket, so that its sessions
  // there must not become those of a newly added user with `role`. Without system_users, only
  // admins' accounts may; an added admin could access their sessions anyway.
  bool MayUseSocket(const std::string& name, auth::Role role) const;
  // Makes the web view, unless it is switched off or was not built.
  void MakeWebView();
  absl::Status ServeMetrics();
  void Reload(const config::Config& wanted);
  void ReloadUsers();
  // Logs files that others may read although they hold secrets or what only admins should see.
  void WarnOfReadableFiles() const;
  // Answers a scrape.
  std::string Scrape();
  // Whether the daemon has only one user, shared by everyone on the machine.
  bool IsForEverybody() const;
  // Otherwise scraping requires a token of a viewer or an admin.
  bool MayScrape(const std::optional<std::string>& token);
  // Returns "" if a device takes new sessions and programs, else why none does.
  std::string WhyNotReady();
  // Sessions are saved over restarts if their folder can be used. Call before creating the
  // registry.
  void OpenCheckpoints();
  void MakeRestorer();
  absl::Status RequestStop();
  bool Stop(absl::Duration grace, Sessions sessions_then);
  // Waits until nothing runs on the device, for at most `timeout`.
  void WaitFor(runtime::ManagedDevice& device, absl::Duration timeout);

  const config::Config config;
  Clock clock;
  std::function<void()> request_stop;
  std::function<std::chrono::steady_clock::time_point()> steady_now;
  std::function<void(const std::string&)> on_wait;
  absl::Duration copy_timeout;
  absl::Duration flush_time;
  int64_t transport_bytes = 0;  // for gRPC's buffers
  metrics::Metrics metrics{DaemonVersion(), DaemonCommit()};
  trace::Recorder trace_recorder{[this] { return clock.steady(); }};
  const std::shared_ptr<memory::HostMemory> host;
  buffers::BlobStore blobs;
  std::unique_ptr<state::FolderLock> state_lock;  // before everything in the folder
  std::unique_ptr<auth::UserStore> user_store;
  std::unique_ptr<auth::Authenticator> users;
  std::unique_ptr<auth::AuditLog> audit;
  std::unique_ptr<quota::LimitStore> limits;
  std::unique_ptr<rpc::Access> access;
  std::unique_ptr<cache::KernelCache> kernel_cache;
  std::unique_ptr<tuner::SettingStore> settings;
  std::unique_ptr<tuner::Rooflines> rooflines;
  std::unique_ptr<tuner::CostSamples> samples;
  // Null: kernels are compiled in this process.
  std::unique_ptr<workers::Pool> compile_workers;
  std::unique_ptr<workers::Pool> finish_workers;  // these open vendors' libraries
  std::unique_ptr<FinishingCompiler> kernel_compiler;
  // For candidates of searches, which users' work does not wait for.
  std::unique_ptr<workers::Pool> candidate_workers;
  std::unique_ptr<FinishingCompiler> candidate_compiler;
  fairness::SubmissionOrder submission_order;
  std::unique_ptr<fairness::HostWork> host_work;
  Devices devices;
  std::vector<runtime::ManagedDevice*> all_devices;
  // Before the pools: their remaining tasks hold calls, which use these.
  rpc::OpenCalls open_calls;
  rpc::OpenUploads open_uploads;
  rpc::Server::Parts service_parts;
  std::unique_ptr<runtime::ThreadPool> copies;
  std::unique_ptr<runtime::FairPool> digests;
  std::unique_ptr<runtime::FairPool> explanations;
  std::unique_ptr<runtime::ProgramCache> programs;
  std::unique_ptr<tuner::Tuner> program_tuner;   // null: nothing is tuned
  std::unique_ptr<runtime::ThreadPool> tunings;  // a thread for each device
  std::unique_ptr<tuner::IdleTuner> idle_tuner;  // null: the daemon does not search by itself
  // Null: sessions end with this daemon.
  std::unique_ptr<sessions::CheckpointStore> checkpoints;
  std::unique_ptr<sessions::Registry> registry;
  std::unique_ptr<sessions::CheckpointWriter> checkpoint_writer;
  std::unique_ptr<sessions::Restorer> restorer;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<sensors::DeviceSensors> device_sensors;  // null until Serve
  std::unique_ptr<relay::TlsReloader> metrics_tls;
  std::unique_ptr<web::Site> web_view;         // null: there is none
  std::unique_ptr<scrape::Endpoint> endpoint;  // null: no metrics are served
  int metrics_port = 0;
  std::unique_ptr<Upkeep> upkeep;

  absl::Mutex reload_mutex;  // of a whole Reload
  // As it was given, for a comparison with what is given next.
  config::Config applied ABSL_GUARDED_BY(reload_mutex);
  absl::Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool idle ABSL_GUARDED_BY(mutex) = true;  // after stopping: nothing is running
};

Daemon::Implementation::~Implementation() {
  Stop(absl::Seconds(3), Sessions::kEnd);
  // Running and copying work uses everything here, so it must have ended.
  for (const auto& device : devices) WaitFor(*device, absl::InfiniteDuration());
}

void Daemon::Implementation::WaitFor(runtime::ManagedDevice& device, absl::Duration timeout) {
  if (device.WaitIdle(absl::ZeroDuration())) return;
  log::Info("waits_for_device", {{"device", device.name()}});
  if (on_wait) on_wait(device.name());
  device.WaitIdle(timeout);
}

absl::Status Daemon::Implementation::OpenUsers() {
  if (absl::Status status = cache::OpenPrivateFolder(config.state_folder); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("the state folder cannot be used: ", status.message()));
  }
  auto lock = state::FolderLock::Take(config.state_folder);
  if (!lock.ok()) return lock.status();
  state_lock = *std::move(lock);
  if (const int left = backup::RemoveUnfinishedImports(config.state_folder); left > 0) {
    log::Warning("unfinished_import_removed",
                 {{"imports", absl::StrCat(left)},
                  {"so", "if the state is not that of the archive, import it again"}});
  }
  const std::string users_path = config.state_folder + "/users";
  const std::string key_path = config.state_folder + "/token_key";
  if (absl::Status status = auth::UserStore::CheckNotLost(users_path, key_path); !status.ok())
    return status;
  auto store = auth::UserStore::Open(users_path);
  if (!store.ok()) return store.status();
  user_store = *std::move(store);
  auto key = OpenTokenKey(key_path);
  if (!key.ok()) return key.status();
  if (absl::Status status = OpenAudit(); !status.ok()) return status;
  auto quotas = quota::LimitStore::Open(config.state_folder + "/quotas", config.quota);
  if (!quotas.ok()) return quotas.status();
  limits = *std::move(quotas);
  users = std::make_unique<auth::Authenticator>(
      auth::Authenticator::Options{.store = user_store.get(),
                                   .key = *std::move(key),
                                   .now = clock.wall,
                                   .is_account = [this](const std::string& name, auth::Role role) {
                                     return MayUseSocket(name, role);
                                   }});
  access = std::make_unique<rpc::Access>(rpc::Access::Options{
      .users = users.get(), .audit = audit.get(), .metrics = &metrics, .clock = clock});
  return absl::OkStatus();
}

absl::Status Daemon::Implementation::OpenAudit() {
  auto key = cache::Secret::Open(absl::StrCat(config.state_folder, "/", auth::kAuditKeyFile));
  if (!key.ok()) return key.status();
  auto opened = auth::AuditLog::Open(absl::StrCat(config.state_folder, "/", auth::kAuditFile),
                                     *std::move(key));
  if (!opened.ok()) return opened.status();
  audit = *std::move(opened);
  if (const auto& problem = audit->problem_at_start()) {
    audit->Append({.time = clock.wall(),
                   .user = "",
                   .action = "audit_tampered",
                   .subject = absl::StrCat(problem->file, ":", problem->line, " ", problem->what),
                   .outcome = "AUDIT_TAMPERED"});
  }
  return absl::OkStatus();
}

bool Daemon::Implementation::MayUseSocket(const std::string& name, auth::Role role) const {
  if (config.system_users) return auth::HasAccount(name);
  if (role == auth::Role::kAdmin) return false;
  return name == auth::AccountName(geteuid()) || name == auth::AccountName(0);
}

// Tokens are tagged with the key, so without it no token is valid any more.
absl::StatusOr<cache::Secret> Daemon::Implementation::OpenTokenKey(const std::string& path) {
  if (!user_store->HasTokensOfAnotherKey("")) return cache::Secret::Open(path);
  auto key = cache::Secret::OpenExisting(path);
  std::string why;
  if (key.ok() && user_store->HasTokensOfAnotherKey(key->Fingerprint())) {
    why = absl::StrCat(path, " is not the key of the users' tokens");
  } else if (absl::IsNotFound(key.status())) {
    why = absl::StrCat("there is no ", path, ", the key of the users' tokens");
  } else if (absl::IsDataLoss(key.status())) {
    why = std::string(key.status().message());
  } else {
    return key;
  }
  if (!config.new_token_key) {
    return absl::DataLossError(absl::StrCat(
        why, "; restore it, or, if it is lost, start kilnd once with --new_token_key, ",
        "which ends all tokens; users remain, and `kiln user token add NAME` makes new ",
        "tokens for them"));
  }
  log::Warning("tokens_ended", {{"why", why}});
  if (absl::Status status = user_store->DropTokens(); !status.ok()) return status;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return cache::Secret::Open(path);
}

void Daemon::Implementation::MakeKernelCache() {
  kernel_cache = std::make_unique<cache::KernelCache>(cache::KernelCache::Options{
      .folder = config.cache_folder, .limit_bytes = config.cache_limit_bytes, .now = clock.wall});
  using Lookup = cache::KernelCache::Lookup;
  kernel_cache->SetObserver([this](Lookup lookup) {
    metrics.KernelCacheLookup(lookup == Lookup::kHit);
    if (lookup == Lookup::kRejected) metrics.KernelCacheRejected();
  });
}

void Daemon::Implementation::MakeSettingStore(const std::string& shipped) {
  std::set<std::string> hardware;
  for (const runtime::ManagedDevice* device : all_devices)
    hardware.insert(device->info().target.HardwareKey());
  settings = std::make_unique<tuner::SettingStore>(
      tuner::SettingStore::Options{.folder = config.cache_folder,
                                   .now = clock.wall,
                                   .shipped = tuner::ReadShippedSettings(shipped, hardware)});
  rooflines = std::make_unique<tuner::Rooflines>(*settings);
  samples = std::make_unique<tuner::CostSamples>(
      tuner::CostSamples::Options{.folder = config.cache_folder, .now = clock.wall});
}

void Daemon::Implementation::MakeCompileWorkers(std::vector<std::string> command) {
  if (command.empty()) return;
  workers::Pool::Options options;
  options.command = std::move(command);
  options.spares = std::min(KernelThreads(), kSpareWorkersMax);
  options.seconds_max = config.compile_seconds_limit;
  options.memory_bytes_max = config.compile_memory_limit_bytes;
  options.now = steady_now;
  options.on_start = [this] { metrics.CompileWorkerStarted(); };
  options.on_failure = [this](const workers::KernelJob& job, const workers::Failure& failure) {
    metrics.CompileWorkerFailed();
    log::Error("compile_worker_failed",
               {{"kernel", job.name},
                {"target", job.target.Summary()},
                {"vendor", job.unfinished ? job.target.finisher.device : ""},
                {"why", failure.what},
                {"said", Printable(failure.said)},
                {"again", failure.again ? "yes" : "no"}});
  };
  compile_workers = std::make_unique<workers::Pool>(options);
  // A vendor's compiler uses much memory, so none is kept for long when idle.
  options.spares = 0;
  workers::Pool::Options yielding = options;
  options.workers_max = kFinishWorkersMax;
  options.seconds_max = std::min(config.compile_seconds_limit,
                                 std::numeric_limits<int>::max() / kFinishSecondsFactor) *
                        kFinishSecondsFactor;
  finish_workers = std::make_unique<workers::Pool>(std::move(options));
  FinishingCompiler::Options finishing;
  finishing.assembler = compile_workers.get();
  finishing.finisher = finish_workers.get();
  finishing.on_unable = [](const drivers::Finisher& finisher, const absl::Status& why) {
    log::Warning("builds_in_daemon",
                 {{"device", finisher.device}, {"why", std::string(why.message())}});
  };
  kernel_compiler = std::make_unique<FinishingCompiler>(finishing);
  yielding.yields = true;
  yielding.workers_max = CandidateThreads();
  candidate_workers = std::make_unique<workers::Pool>(std::move(yielding));
  finishing.assembler = candidate_workers.get();
  candidate_compiler = std::make_unique<FinishingCompiler>(std::move(finishing));
}

void Daemon::Implementation::MakePrograms(runtime::CompileFunction compile) {
  runtime::ProgramCache::Options options;
  options.compile = std::move(compile);
  options.kernel_cache = kernel_cache.get();
  options.kernel_compiler = kernel_compiler.get();
  options.tuned = [this](const std::string& kernel, const drivers::Target& target,
                         const std::string& owner, runtime::SettingsChange change) {
    return settings->SettingAt(kernel, target, owner, change);
  };
  options.last_settings_change = [this] { return settings->last_change(); };
  options.metrics = &metrics;
  options.trace_recorder = &trace_recorder;
  options.clock = clock;
  options.threads = {.threads = kCompileThreads,
                     .threads_of_one = kCompileThreadsOfOne,
                     .waiting_of_one = static_cast<size_t>(config.compiles_waiting_limit),
                     .host_work = host_work.get()};
  options.shared = config.programs_shared;
  options.run_seconds_max = config.run_seconds_limit;
  options.disabled_passes = config.disabled_passes;
  options.dumped_passes = config.dumped_passes;
  options.kernel_threads = KernelThreads();
  programs = std::make_unique<runtime::ProgramCache>(std::move(options));
  host->SetReclaimer([this](int64_t bytes, const std::string& user) {
    blobs.Reclaim(bytes, user);
    programs->Reclaim(bytes, user);
  });
  copies = std::make_unique<runtime::ThreadPool>(kCopyThreads);
  digests = std::make_unique<runtime::FairPool>(kDigestThreads, /*running_max=*/1);
  explanations = std::make_unique<runtime::FairPool>(kExplanationThreads, /*running_max=*/1);
}

bool Daemon::Implementation::UsersAreActive() const {
  const absl::Time since = clock.steady() - kUsersActive;
  const auto is_active = [&](const fairness::UsersWork& work) {
    return work.is_there || work.last >= since;
  };
  return is_active(host_work->users_work()) ||
         absl::c_any_of(all_devices, [&](const runtime::ManagedDevice* device) {
           return is_active(device->dispatcher().users_work());
         });
}

void Daemon::Implementation::MakeTuner(tuner::MakeTrialRunner make_runner,
                                       workers::CompileFunction compile,
                                       runtime::CompileFunction compile_program) {
  if (!make_runner) return;
  tuner::Tuner::Options options;
  options.store = settings.get();
  options.compile = std::move(compile);
  if (kernel_compiler) {
    options.compile = [this](const workers::KernelJob& job) {
      return (UsersAreActive() ? candidate_compiler : kernel_compiler)->Compile(job);
    };
  }
  options.compile_program = [this, compile_program = std::move(compile_program)](
                                const graph::Graph& graph, const drivers::Target& target,
                                compiler::Options of_program) {
    // Users who do not share programs do not share kernels either.
    if (config.programs_shared) of_program.cache = kernel_cache.get();
    // As other candidates.
    of_program.kernel_compiler =
        UsersAreActive() ? candidate_compiler.get() : kernel_compiler.get();
    of_program.disabled_passes = config.disabled_passes;
    return compile_program(graph, target, of_program);
  };
  options.make_runner = std::move(make_runner);
  options.metrics = &metrics;
  options.clock = clock;
  options.trials.compile_threads = CandidateThreads();
  options.samples = samples.get();
  options.measure_rates = true;
  options.on_changed = [this] { programs->DropOutdated(); };
  program_tuner = std::make_unique<tuner::Tuner>(std::move(options));
  tunings = std::make_unique<runtime::ThreadPool>(static_cast<int>(devices.size()));
}

void Daemon::Implementation::MakeIdleTuner(absl::Duration interval) {
  if (!program_tuner || !config.idle_tuning) return;
  tuner::IdleTuner::Options options;
  options.tuner = program_tuner.get();
  options.store = settings.get();
  options.devices = all_devices;
  options.look_at_programs = [this](tuner::KernelUse& use) { use.Look(programs->List()); };
  if (candidate_compiler) {
    options.compile = [this](const workers::KernelJob& job) {
      return candidate_compiler->Compile(job);
    };
  }
  options.host_work = host_work.get();
  // A search holds results of kernels, also while it is paused, and users need the memory.
  options.host = host->NewUserAccount(tuner::kTunerUser);
  options.host->SetLimit(host->limit_bytes() / kIdleMemoryShare);
  options.clock = clock;
  const auto hours = ParseDayHours(config.idle_tuning_hours);
  KILN_CHECK(hours) << config.idle_tuning_hours;
  options.hours = *hours;
  options.quiet = absl::Seconds(config.idle_tuning_quiet_seconds);
  options.width = config.idle_tuning_width;
  options.interval = interval;
  idle_tuner = std::make_unique<tuner::IdleTuner>(std::move(options));
}

void Daemon::Implementation::MakeRegistry() {
  sessions::Registry::Options options;
  options.default_lease = absl::Seconds(config.lease_seconds);
  options.lease_max = absl::Seconds(config.lease_seconds_limit);
  options.sessions_max = config.session_limit;
  options.services.park_max = absl::Hours(config.detach_hours_limit);
  options.mark = sessions::RandomId().substr(0, options.mark.size());
  options.limits_of = [this](const std::string& user) { return limits->LimitsOf(user); };
  options.new_id = sessions::RandomId;
  checkpoint_writer = std::make_unique<sessions::CheckpointWriter>(copy_timeout);
  if (checkpoints) {
    options.services.new_recorder = [this](sessions::SessionState& session) {
      return std::make_unique<sessions::SessionRecorder>(session, *checkpoints);
    };
    options.begin_checkpoints = [this](const auto& session) { checkpoint_writer->Begin(session); };
  }
  options.services.programs = programs.get();
  options.services.blobs = &blobs;
  options.services.metrics = &metrics;
  options.services.host_work = host_work.get();
  options.services.trace_recorder = &trace_recorder;
  options.services.copies = copies.get();
  options.services.submission_order = &submission_order;
  options.services.clock = clock;
  options.services.host = host;
  options.services.limits.read_bytes = rpc::kChunkBytes;
  options.services.unpack_graph = rpc::UnpackGraphSource;
  registry = std::make_unique<sessions::Registry>(std::move(options), all_devices);
  if (absl::Status status = registry->closed().Load(ClosedPath()); !status.ok())
    log::Warning("ended_sessions_forgotten", {{"why", std::string(status.message())}});
}

void Daemon::Implementation::FillServiceParts() {
  KILN_CHECK(registry != nullptr && access != nullptr && programs != nullptr);
  KILN_CHECK(kernel_cache != nullptr && users != nullptr && audit != nullptr && limits != nullptr);
  const rpc::ServiceParts common = {registry.get(), access.get(), &metrics, clock};
  const auto op_set_version = static_cast<uint32_t>(ops::kOpSetVersion);
  service_parts.devices = {common, all_devices, std::move(service_parts.devices.drivers)};
  service_parts.sessions = {common,      copies.get(),    audit.get(),
                            &open_calls, DaemonVersion(), op_set_version};
  service_parts.blobs = {common,        &blobs,      copies.get(),   digests.get(),
                         &open_uploads, &open_calls, host_work.get()};
  service_parts.programs = {common,
                            programs.get(),
                            explanations.get(),
                            std::move(service_parts.programs.disassemble),
                            program_tuner.get(),
                            tunings.get(),
                            settings.get(),
                            audit.get(),
                            static_cast<uint32_t>(config.tuning_seconds_limit),
                            rooflines.get()};
  service_parts.trace = {common, &trace_recorder};
  rpc::AdminServiceParts& admin = service_parts.admin;
  static_cast<rpc::ServiceParts&>(admin) = common;
  admin.programs = programs.get();
  admin.kernel_cache = kernel_cache.get();
  admin.settings = settings.get();
  admin.slow_calls = explanations.get();
  admin.users = users.get();
  admin.audit = audit.get();
  admin.limits = limits.get();
  admin.devices = all_devices;
  admin.version = DaemonVersion();
  admin.op_set_version = op_set_version;
  admin.started = clock.wall();
  admin.listening = [this] { return server ? server->listening() : std::vector<std::string>{}; };
  admin.saved_bytes = [this](const std::string& user) {
    return checkpoints ? checkpoints->BytesOf(user) : 0;
  };
  admin.stop = [this] { return RequestStop(); };
}

void Daemon::Implementation::OpenCheckpoints() {
  auto opened =
      sessions::CheckpointStore::Open({.folder = absl::StrCat(config.state_folder, "/sessions"),
                                       .limit_bytes = config.saved_sessions_limit_bytes,
                                       .user_limit_bytes =
                                           [this](const std::string& user) {
                                             return limits->LimitsOf(user)[quota::Resource::kDisk];
                                           },
                                       .boot = sessions::ThisBoot()});
  if (!opened.ok()) {
    return log::Warning("sessions_not_kept", {{"why", std::string(opened.status().message())},
                                              {"so", "they are lost when this daemon stops"}});
  }
  checkpoints = *std::move(opened);
}

void Daemon::Implementation::MakeRestorer() {
  if (!checkpoints) return;
  restorer = std::make_unique<sessions::Restorer>(
      *checkpoints, *registry, *checkpoint_writer, clock.steady,
      [this](const std::string& name) {
        const auto user = users->store().Find(name);
        return user && user->revoked;
      },
      copy_timeout);
  registry->SetAbsent(restorer.get());
}

absl::Status Daemon::Implementation::Serve() {
  auto started = rpc::Server::Start(
      service_parts, {.addresses = config.listen,
                      .tls = TlsOf(config),
                      .system_users = config.system_users,
                      .transport_bytes = transport_bytes,
                      .idle_connection = absl::Seconds(config.idle_connection_seconds),
                      .ping_answer = absl::Seconds(config.ping_answer_seconds)});
  if (!started.ok()) return started.status();
  server = std::move(*started);
  server->SetServing("", true);
  for (const auto& device : devices) {
    device->SetHealthObserver([this](const runtime::ManagedDevice& changed) {
      server->SetServing(changed.name(), changed.health() == runtime::Health::kHealthy);
    });
  }
  sensors::DeviceSensors::Options reading;
  for (const auto& device : devices) reading.devices.push_back(device->info());
  reading.steady_now = clock.steady;
  device_sensors = std::make_unique<sensors::DeviceSensors>(std::move(reading));
  metrics.SetGauges([this] {
    return ReadGauges({.devices = all_devices,
                       .sensors = *device_sensors,
                       .registry = *registry,
                       .programs = *programs,
                       .blobs = blobs,
                       .host = *host,
                       .kernel_cache = *kernel_cache,
                       .checkpoints = checkpoints.get(),
                       .state_folder = config.state_folder,
                       .clock = clock,
                       .certificate_expiry = server->CertificateExpiry()});
  });
  return ServeMetrics();
}

void Daemon::Implementation::MakeWebView() {
  if (!config.metrics_web) return;
  if (web::PageFiles().empty()) {
    return log::Info("no_web_view", {{"why",
                                      "kilnd was built without the packages libjs-d3 and "
                                      "python3-xstatic-dagre"}});
  }
  // Accounts of the system and owners of certificates may be users of a daemon that knows no one.
  const bool may_be_open = !config.system_users && config.tls_client_ca.empty() &&
                           rpc::IsLoopback(config.metrics_listen);
  const rpc::Entrance entrance = may_be_open ? rpc::Entrance::kView : rpc::Entrance::kTls;
  web_view = std::make_unique<web::Site>(
      web::Site::Options{.parts = {.devices = &service_parts.devices,
                                   .programs = &service_parts.programs,
                                   .admin = &service_parts.admin},
                         .access = access.get(),
                         .listener = access->AddListener(entrance).number,
                         .is_open = [this] { return IsForEverybody(); }});
}

absl::Status Daemon::Implementation::ServeMetrics() {
  if (config.metrics_listen.empty()) return absl::OkStatus();
  const bool has_tls = !config.tls_certificate.empty() && !config.metrics_plain_http;
  absl::Status status = rpc::CheckMetricsListening(
      config.metrics_listen, {.is_open = IsForEverybody(), .is_plain = config.metrics_plain_http});
  if (!status.ok()) return status;
  // Without authorities for clients: scrapers use tokens. The server's reloader reports.
  auto tls = relay::TlsReloader::Load(
      has_tls ? relay::TlsFiles{config.tls_certificate, config.tls_key, ""} : relay::TlsFiles(),
      relay::Protocol::kHttp1, relay::Reports::kNothing);
  if (!tls.ok()) return tls.status();
  metrics_tls = *std::move(tls);
  MakeWebView();
  scrape::Pages pages;
  if (web_view)
    pages = [this](const auto& request, const auto& reply) {
      return web_view->Respond(request, reply);
    };
  auto started =
      scrape::Endpoint::Start({.address = config.metrics_listen,
                               .text = [this] { return Scrape(); },
                               .allow = [this](const auto& token) { return MayScrape(token); },
                               .is_open = [this] { return IsForEverybody(); },
                               .why_not_ready = [this] { return WhyNotReady(); },
                               .pages = std::move(pages),
                               .tls = [this] { return metrics_tls->current(); },
                               .steady_now = clock.steady});
  if (!started.ok()) return started.status();
  endpoint = *std::move(started);
  metrics_port = endpoint->port();
  return absl::OkStatus();
}

std::string Daemon::Implementation::Scrape() {
  const absl::Time start = clock.steady();
  std::string text = metrics.Text();
  metrics.Scraped(static_cast<int64_t>(text.size()), absl::ToDoubleSeconds(clock.steady() - start));
  return text;
}

// Accounts of the system and owners of certificates may be users, too.
bool Daemon::Implementation::IsForEverybody() const {
  return users->nobody_known() && !config.system_users && config.tls_client_ca.empty();
}

std::string Daemon::Implementation::WhyNotReady() {
  {
    absl::MutexLock lock(&mutex);
    // Scrapes go on while the work of sessions ends.
    if (stopping) return "the daemon stops";
  }
  const bool takes_work =
      std::any_of(all_devices.begin(), all_devices.end(),
                  [](const auto* device) { return device->health() == runtime::Health::kHealthy; });
  return takes_work ? "" : "no device takes new work: each is draining or has failed";
}

bool Daemon::Implementation::MayScrape(const std::optional<std::string>& token) {
  if (IsForEverybody()) return true;
  const auto caller = users->ByToken(token.value_or(""));
  return caller.ok() && caller->sees_all();
}

std::vector<std::shared_ptr<runtime::HealthProbe>> Daemon::Implementation::MakeHealthProbes() {
  std::vector<std::shared_ptr<runtime::HealthProbe>> probes;
  if (config.health_interval_seconds == 0) return probes;
  for (const auto& device : devices) {
    // Null devices compute nothing, so there is nothing to probe.
    if (device->info().target.architecture == "null") continue;
    probes.push_back(std::make_shared<runtime::HealthProbe>(
        runtime::HealthProbe::Options{.device = device.get(),
                                      .programs = programs.get(),
                                      .interval = absl::Seconds(config.health_interval_seconds),
                                      .longest_run = LongestRun(config)}));
  }
  return probes;
}

void Daemon::Implementation::StartUpkeep(absl::Duration interval) {
  Upkeep::Options options;
  options.registry = registry.get();
  options.open_uploads = &open_uploads;
  options.reload_tls = [this] {
    server->ReloadTls();
    if (metrics_tls) metrics_tls->Look();
  };
  options.blobs = &blobs;
  options.host = host.get();
  options.programs = programs.get();
  options.devices = all_devices;
  options.health_probes = MakeHealthProbes();
  options.steady_now = clock.steady;
  options.interval = interval;
  if (config.unused_minutes_limit > 0)
    options.unused_programs = absl::Minutes(config.unused_minutes_limit);
  KILN_CHECK(upkeep == nullptr);
  upkeep = std::make_unique<Upkeep>(std::move(options));
}

void Daemon::Implementation::ReloadUsers() {
  const bool was_open = users->nobody_known();
  const auto gone = user_store->Reload();
  if (!gone.ok()) {
    return log::Error("reload_failed",
                      {{"file", "users"}, {"why", std::string(gone.status().message())}});
  }
  for (const std::string& user : *gone) {
    registry->CloseAllOf(
        user, errors::WithReason(absl::UnauthenticatedError("this user was revoked by an admin"),
                                 "REVOKED"));
    for (const auto& program : programs->List()) program->ForgetUser(user);
  }
  if (was_open && !users->nobody_known())
    registry->CloseAllOf(auth::kLocalUser,
                         errors::WithReason(absl::UnauthenticatedError(
                                                "the daemon has users now and requires a token"),
                                            "NO_TOKEN"));
}

void Daemon::Implementation::Reload(const config::Config& wanted) {
  absl::MutexLock lock(&reload_mutex);
  std::vector<std::string> changed, need_restart;
  for (const config::Key* key : config::Differences(applied, wanted)) {
    (key->reloads ? changed : need_restart).push_back(config::LabelOf(*key));
    if (key->reloads) config::Set(*key, config::Get(*key, wanted), &applied);
  }
  log::Level level = log::Level::kInfo;
  if (log::ParseLevel(applied.log_level, &level)) log::SetLevel(level);
  if (absl::Status status = limits->Reload(applied.quota); !status.ok())
    log::Error("reload_failed", {{"file", "quotas"}, {"why", std::string(status.message())}});
  for (const auto& user : registry->ListUsers()) registry->UpdateLimits(user->name);
  ReloadUsers();
  server->ReloadTls();
  if (metrics_tls) metrics_tls->Look();
  WarnOfReadableFiles();
  log::Info("reloaded", {{"changed", absl::StrJoin(changed, ",")},
                         {"need_restart", absl::StrJoin(need_restart, ",")}});
}

void Daemon::Implementation::WarnOfReadableFiles() const {
  std::vector<std::string> paths = {config.tls_key};
  for (const char* name : {"users", "quotas", "token_key", auth::kAuditFile, auth::kAuditKeyFile})
    paths.push_back(absl::StrCat(config.state_folder, "/", name));
  for (const std::string& path : paths) {
    struct stat found {};
    if (path.empty() || stat(path.c_str(), &found) != 0) continue;
    const unsigned mode = found.st_mode & 07777;
    // A key of a group that exists for it is usual; all accounts' is not.
    const unsigned unwanted = path == config.tls_key ? S_IRWXO : S_IRWXG | S_IRWXO;
    if ((mode & unwanted) == 0) continue;
    log::Warning("readable_by_others", {{"file", path},
                                        {"mode", absl::StrFormat("%04o", mode)},
                                        {"so", absl::StrCat("run chmod 0600 ", path)}});
  }
}

absl::Status Daemon::Implementation::RequestStop() {
  if (!request_stop)
    return absl::UnimplementedError(
        "an in-process daemon cannot be stopped by a call; stop its program");
  if (!checkpoints) {
    return errors::WithReason(
        absl::FailedPreconditionError("this daemon cannot keep its sessions (see sessions_not_kept "
                                      "in its log); send it SIGTERM to stop it without them"),
        "SESSIONS_NOT_KEPT");
  }
  request_stop();
  return absl::OkStatus();
}

bool Daemon::Implementation::Stop(absl::Duration grace, Sessions sessions_then) {
  {
    absl::MutexLock lock(&mutex);
    if (stopping) return idle;
    stopping = true;
  }
  KILN_CHECK(server == nullptr || (registry != nullptr && programs != nullptr));
  KILN_CHECK(server == nullptr || state_lock != nullptr);
  // First, so that no lease expires while the devices finish.
  if (upkeep) upkeep->Stop();
  // Start failed before anything could run.
  if (!server) return true;
  log::Info("stopping");
  server->SetServing("", false);
  if (program_tuner) program_tuner->Stop();
  if (idle_tuner) idle_tuner->Stop();
  if (restorer) restorer->Stop();
  if (checkpoint_writer) checkpoint_writer->Stop();
  const bool keeps = sessions_then == Sessions::kKeep && checkpoints != nullptr;
  // From the clients inwards: no new sessions, no new programs, nothing more from the queues. Then
  // work on the devices ends and is answered, and only then are sessions and connections closed, so
  // that no answer is lost.
  registry->Refuse(keeps ? StopsToRestart() : ShuttingDown());
  // One deadline for all devices, which finish concurrently.
  const absl::Time deadline = clock.steady() + grace;
  if (keeps) {
    sessions::SaveSessionsForRestart({.store = checkpoints.get(),
                                      .registry = registry.get(),
                                      .devices = all_devices,
                                      .restarting = StopsToRestart(),
                                      .copy_timeout = copy_timeout,
                                      .steady_now = clock.steady},
                                     deadline);
  }
  programs->StopCompiling();
  for (const auto& device : devices) device->dispatcher().Stop(ShuttingDown());
  for (const auto& device : devices) WaitFor(*device, deadline - clock.steady());
  // Programs still compiling are not needed, and may take up to their time limit.
  for (const auto* pool : {&compile_workers, &finish_workers, &candidate_workers})
    if (*pool) (*pool)->Stop(ShuttingDown());
  registry->CloseAll(keeps ? StopsToRestart() : ShuttingDown());
  if (absl::Status status = registry->closed().Save(ClosedPath()); !status.ok())
    log::Warning("ended_sessions_forgotten", {{"why", std::string(status.message())}});
  // From here on no client gets an answer, and the next daemon may be started.
  state_lock->Ends();
  server->Stop(flush_time);
  // Before the destructors: a scrape reads parts that are destroyed before the metrics are.
  endpoint.reset();
  log::Info("stopped");
  const bool sensors_ended = !device_sensors || device_sensors->Stop();
  // Only now, because downloads continued while the connections were flushed.
  bool all_idle = true;
  for (const auto& device : devices) all_idle = device->WaitIdle(absl::ZeroDuration()) && all_idle;
  absl::MutexLock lock(&mutex);
  idle = all_idle && sensors_ended;
  return idle;
}

Daemon::Daemon(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Daemon::~Daemon() = default;

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const config::Config& config,
                                                      DaemonParts parts) {
  if (absl::Status status = config::Check(config); !status.ok()) return status;
  if (absl::Status status = CheckPasses(config); !status.ok()) return status;
  mallopt(M_TRIM_THRESHOLD, kKeptOfAnArena);
  mallopt(M_MMAP_THRESHOLD, kMappingMin);
  auto implementation = std::make_unique<Implementation>(WithLimits(config, parts), config);
  implementation->transport_bytes = std::max(kTransportMin, parts.memory_bytes / kTransportShare);
  implementation->clock = std::move(parts.clock);
  implementation->host_work = std::make_unique<fairness::HostWork>(implementation->clock.steady);
  implementation->service_parts.programs.disassemble = std::move(parts.disassemble);
  implementation->request_stop = std::move(parts.request_stop);
  implementation->steady_now = std::move(parts.steady_now);
  implementation->on_wait = std::move(parts.on_wait);
  implementation->copy_timeout = parts.copy_timeout;
  implementation->flush_time = parts.flush_time;
  auto opened = OpenDevices(config, std::move(parts.drivers), implementation->metrics,
                            implementation->trace_recorder, implementation->clock);
  if (!opened.ok()) return opened.status();
  implementation->devices = std::move(opened->devices);
  for (const auto& device : implementation->devices)
    implementation->all_devices.push_back(device.get());
  KILN_CHECK(!implementation->devices.empty());
  implementation->service_parts.devices.drivers = std::move(opened->reports);
  if (absl::Status status = implementation->OpenUsers(); !status.ok()) return status;
  implementation->MakeKernelCache();
  implementation->MakeSettingStore(parts.shipped_settings);
  implementation->MakeCompileWorkers(std::move(parts.compile_worker));
  implementation->MakePrograms(parts.compile);
  implementation->MakeTuner(std::move(parts.make_trial_runner), std::move(parts.compile_candidate),
                            std::move(parts.compile));
  implementation->MakeIdleTuner(parts.lease_check_interval);
  implementation->OpenCheckpoints();
  implementation->MakeRegistry();
  implementation->MakeRestorer();
  implementation->FillServiceParts();
  // A daemon that cannot serve restores nothing, because the restored sessions would be lost with
  // it. And no daemon reports a session as lost before it has searched for it.
  implementation->registry->Refuse(sessions::Restarting("the daemon is starting; try again"));
  if (absl::Status status = implementation->Serve(); !status.ok()) return status;
  if (implementation->restorer) implementation->restorer->Start();
  implementation->registry->Refuse(absl::OkStatus());
  implementation->StartUpkeep(parts.lease_check_interval);
  implementation->WarnOfReadableFiles();
  if (ValidatesTables())
    log::Info("validates_tables", {{"why", "KILN_VALIDATE=1, or a sanitizer build"}});
  log::Info("serving", {{"version", DaemonVersion()},
                        {"listen", absl::StrJoin(implementation->server->listening(), ",")},
                        {"metrics_port", absl::StrCat(implementation->metrics_port)},
                        {"host_memory", absl::StrCat(implementation->host->limit_bytes())},
                        {"cache", config.cache_folder}});
  return std::unique_ptr<Daemon>(new Daemon(std::move(implementation)));
}

void Daemon::Reload(const config::Config& config) { implementation_->Reload(config); }

std::vector<std::string> StartProblems(const config::Config& config) {
  std::vector<std::string> problems;
  const auto add = [&](const absl::Status& status) {
    if (!status.ok()) problems.push_back(std::string(status.message()));
  };
  add(CheckPasses(config));
  // Whether there are users is only known when the state folder is read.
  const relay::TlsFiles tls = TlsOf(config);
  add(rpc::CheckListening({}, tls, /*nobody_known=*/false));
  if (tls.empty())
    for (const std::string& address : config.listen)
      add(rpc::CheckListening({address}, {}, /*nobody_known=*/false));
  if (!config.metrics_listen.empty())
    add(rpc::CheckMetricsListening(config.metrics_listen,
                                   {.is_open = false, .is_plain = config.metrics_plain_http}));
  return problems;
}

std::vector<std::string> Daemon::listening() const {
  KILN_CHECK_NE(implementation_->server, nullptr);
  return implementation_->server->listening();
}
int Daemon::metrics_port() const { return implementation_->metrics_port; }
bool Daemon::IsAlive() const { return implementation_->upkeep->IsAlive(); }
int64_t Daemon::rounds() const { return implementation_->upkeep->rounds(); }
std::string Daemon::MetricsText() const { return implementation_->metrics.Text(); }
bool Daemon::Stop(absl::Duration grace, Sessions sessions) {
  return implementation_->Stop(grace, sessions);
}

}  // namespace kiln
