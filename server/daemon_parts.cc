#include "server/daemon_parts.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "compiler/workers/worker.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"
#include "drivers/null/driver.h"
#include "drivers/vendor_drivers.h"
#include "server/cache/secret.h"
#include "server/log/log.h"
#include "server/probed_driver.h"
#include "server/tuner/daemon_trials.h"
#include "server/tuner/shipped_settings.h"
#include "server/tuner/trial_process.h"

namespace kiln {

namespace {

constexpr int kNullDevicesMax = 64;
// One part in this many of the machine's memory for all null devices together.
constexpr int64_t kNullShare = 4;

// The number of devices that the highest named number needs: "null" and "null:0" need one, "null:2"
// needs three. INVALID_ARGUMENT for a number that no null device has.
absl::StatusOr<int> NullDevices(const std::vector<std::string>& wanted) {
  int devices = 0;
  for (const std::string& name : wanted) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, "null")) continue;
    int number = 0;
    const bool is_one =
        rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &number) &&
                         number >= 0 && number < kNullDevicesMax);
    if (!is_one) {
      return absl::InvalidArgumentError(
          absl::StrCat("devices: unknown device \"", name,
                       "\"; use null, or null:0 to null:", kNullDevicesMax - 1));
    }
    devices = std::max(devices, number + 1);
  }
  return devices;
}

// Whether "cpu", "cpu:0" etc. is named, for the kind "cpu".
bool NamesOneOf(const std::vector<std::string>& wanted, absl::string_view kind) {
  return std::any_of(wanted.begin(), wanted.end(), [kind](const std::string& name) {
    return name == kind || absl::StartsWith(name, absl::StrCat(kind, ":"));
  });
}

// If no device is named, all are wanted.
bool Wants(const std::vector<std::string>& wanted, absl::string_view kind) {
  return wanted.empty() || NamesOneOf(wanted, kind);
}

drivers::VendorDriverOptions OptionsOf(const config::Config& config, absl::string_view driver) {
  return {.sharing_host_memory = NamesOneOf(config.devices, driver),
          .memory_limit_bytes_per_device = config.memory_limit_bytes,
          .on_broken_command_buffers = [](const std::string& device, const absl::Status& why) {
            log::Warning("command_buffers_broken",
                         {{"device", device}, {"reason", std::string(why.message())}});
          }};
}

// NVIDIA's driver caches the code that it assembles from PTX in the home folder, which a service
// may not have. This puts that cache beside the kernels, unless the environment names another
// folder.
void KeepAssembledCodeIn(const std::string& cache_folder) {
  // If the folder cannot be created, the kernel cache reports it.
  if (!cache::OpenPrivateFolder(cache_folder).ok()) return;
  const std::string folder = absl::StrCat(cache_folder, "/cuda");
  if (cache::OpenPrivateFolder(folder).ok())
    setenv("CUDA_CACHE_PATH", folder.c_str(), /*overwrite=*/0);
}

// Usage: kilnd --probe_driver NAME DEVICES
constexpr char kProbeArgument[] = "--probe_driver";

std::unique_ptr<drivers::Driver> Probed(std::unique_ptr<drivers::Driver> driver,
                                        const std::string& library,
                                        const std::vector<std::string>& wanted) {
  // If there is no library to open, no process is needed.
  if (!MayBeInstalled(library)) return driver;
  ProbedDriver::Options options;
  options.command = {"/proc/self/exe", kProbeArgument, driver->name(), absl::StrJoin(wanted, ",")};
  return std::make_unique<ProbedDriver>(std::move(driver), std::move(options));
}

drivers::cpu::CpuOptions ProcessorOptionsOf(const config::Config& config) {
  drivers::cpu::CpuOptions options;
  options.devices = config.cpu_devices;
  options.threads_per_device = config.cpu_threads;
  options.memory_limit_bytes_per_device = config.memory_limit_bytes;
  options.features = config.cpu_features;
  options.now = std::chrono::steady_clock::now;
  return options;
}

drivers::null::NullOptions NullOptionsOf(const config::Config& config, int devices) {
  drivers::null::NullOptions options;
  options.devices = devices;
  options.memory_bytes_per_device = drivers::cpu::AvailableMemory() / kNullShare / devices;
  if (config.memory_limit_bytes > 0) {
    options.memory_bytes_per_device =
        std::min(options.memory_bytes_per_device, config.memory_limit_bytes);
  }
  options.now = std::chrono::steady_clock::now;
  return options;
}

// Usage: kilnd --trials DEVICE DEVICES CPU_DEVICES CPU_THREADS CPU_FEATURES MEMORY_BYTES
constexpr char kTrialsArgument[] = "--trials";
constexpr int kTrialsWords = 8;

// A process for trials opens its device with the options of the daemon, so that it is the same one.
std::vector<std::string> TrialCommandOf(const config::Config& config, const std::string& device) {
  return {"/proc/self/exe",
          kTrialsArgument,
          device,
          absl::StrJoin(config.devices, ","),
          absl::StrCat(config.cpu_devices),
          absl::StrCat(config.cpu_threads),
          config.cpu_features,
          absl::StrCat(config.memory_limit_bytes)};
}

// The reverse. INVALID_ARGUMENT for words that TrialCommandOf does not make.
absl::StatusOr<config::Config> ConfigOfTrials(char** argv) {
  config::Config config;
  config.devices = absl::StrSplit(argv[3], ',', absl::SkipEmpty());
  config.cpu_features = argv[6];
  if (!absl::SimpleAtoi(argv[4], &config.cpu_devices) ||
      !absl::SimpleAtoi(argv[5], &config.cpu_threads) ||
      !absl::SimpleAtoi(argv[7], &config.memory_limit_bytes))
    return absl::InvalidArgumentError("invalid numbers in the command of the trials");
  return config;
}

// Null: there is no such driver.
std::unique_ptr<drivers::Driver> MakeDriver(const std::string& name, const config::Config& config) {
  if (name == "cpu") return std::make_unique<drivers::cpu::CpuDriver>(ProcessorOptionsOf(config));
  if (const auto devices = NullDevices(config.devices); name == "null" && devices.value_or(0) > 0)
    return std::make_unique<drivers::null::NullDriver>(NullOptionsOf(config, *devices));
  return drivers::MakeVendorDriver(name, OptionsOf(config, name));
}

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenForTrials(char** argv) {
  const auto config = ConfigOfTrials(argv);
  if (!config.ok()) return config.status();
  const std::string wanted = argv[2];
  const std::vector<std::string> words = absl::StrSplit(wanted, ':');
  // It opens the driver's other devices, too, and closes them.
  const auto driver = MakeDriver(words[0], *config);
  if (driver == nullptr) return absl::InternalError(absl::StrCat("no driver has ", wanted));
  std::string why_none;
  auto devices = driver->Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  for (auto& device : *devices)
    if (device->info().name == wanted) return std::move(device);
  return absl::NotFoundError(absl::StrCat(wanted, " was not found; ", why_none));
}

}  // namespace

bool IsTrialProcess(int argc, char** argv) {
  return argc == kTrialsWords && absl::string_view(argv[1]) == kTrialsArgument;
}

void RunTrials(char** argv) {
  tuner::RunTrialProcess([argv] { return OpenForTrials(argv); });
}

bool IsProbe(int argc, char** argv) {
  return argc == 4 && absl::string_view(argv[1]) == kProbeArgument;
}

int RunProbe(int argc, char** argv) {
  config::Config config;
  config.devices = absl::StrSplit(argv[3], ',', absl::SkipEmpty());
  const auto driver = drivers::MakeVendorDriver(argv[2], OptionsOf(config, argv[2]));
  if (driver != nullptr) Probe(*driver);
  return 2;
}

workers::CompileFunction ProductionJobs() {
  using Drivers = std::map<std::string, std::unique_ptr<drivers::Driver>>;
  // Shared by copies of the function.
  return [open = std::make_shared<Drivers>()](
             const workers::KernelJob& job) -> absl::StatusOr<drivers::KernelImage> {
    if (!job.unfinished) return compiler::CompileJob(job);
    const drivers::Finisher& finisher = job.target.finisher;
    std::unique_ptr<drivers::Driver>& driver = (*open)[finisher.driver];
    if (driver == nullptr) driver = drivers::MakeVendorDriver(finisher.driver, {});
    if (driver == nullptr)
      return absl::InternalError(
          absl::StrCat("unknown driver \"", finisher.driver, "\" of an unfinished kernel image"));
    return driver->Finish(*job.unfinished, finisher);
  };
}

absl::StatusOr<DaemonParts> ProductionParts(const config::Config& config) {
  const auto null_devices = NullDevices(config.devices);
  if (!null_devices.ok()) return null_devices.status();
  DaemonParts parts;
  if (config.cpu_devices > 0 && Wants(config.devices, "cpu")) {
    parts.drivers.push_back(MakeDriver("cpu", config));
  }
  if (*null_devices > 0) {
    parts.drivers.push_back(MakeDriver("null", config));
  }
  for (const drivers::VendorDriverRow& vendor : drivers::VendorDrivers()) {
    if (!Wants(config.devices, vendor.name)) continue;
    if (vendor.name == "cuda" && MayBeInstalled(vendor.library))
      KeepAssembledCodeIn(config.cache_folder);
    parts.drivers.push_back(
        Probed(vendor.make(OptionsOf(config, vendor.name)), vendor.library, config.devices));
  }
  parts.memory_bytes = drivers::cpu::AvailableMemory();
  parts.compile = compiler::Compile;
  parts.disassemble = compiler::Disassemble;
  parts.compile_worker = workers::WorkerCommand(config.compile_memory_limit_bytes);
  parts.make_trial_runner = tuner::TrialsInProcesses(
      [config](const drivers::DeviceInfo& device) { return TrialCommandOf(config, device.name); });
  parts.shipped_settings = tuner::ShippedSettingsFolder();
  parts.clock = SystemClock();
  return parts;
}

}  // namespace kiln
