#include "server/tuner/trial_process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/kernel/kernel.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/process.h"
#include "compiler/workers/worker.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/trial_messages.h"

namespace kiln::tuner {
namespace {

using workers::Process;
using workers::Transfer;

// As RLIMIT_DATA counts them: a device reserves scratch memory for each of its threads, so a limit
// must not depend on how many there are.
int64_t AllocatedBytes() {
  int64_t size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared >> text >> library >> data;
  return data * sysconf(_SC_PAGESIZE);
}

class TrialServer {
 public:
  explicit TrialServer(const OpenDevice& open) : open_(open) {}

  // Returns false if the socket is closed.
  bool Answer(uint64_t number, const TrialRequest& request) {
    outputs_.clear();
    const absl::StatusOr<double> answer =
        std::visit([this](const auto& one) { return Do(one); }, request);
    return SendMessage(EncodeTrialAnswer(number, answer)) && (!answer.ok() || SendOutputs());
  }

 private:
  absl::StatusOr<double> Do(const OpenRequest& request) {
    if (device_ != nullptr) return absl::InternalError("a device is open");
    auto device = open_();
    if (!device.ok()) return device.status();
    if ((*device)->info().target.HardwareKey() != request.hardware) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the process of the trials found another device: ", (*device)->info().target.Summary()));
    }
    device_ = *std::move(device);
    auto kernel = kernel::ParseKernel(request.kernel, context_);
    if (!kernel.ok()) return kernel.status();
    kernel_ = *std::move(kernel);
    if (request.memory_bytes_max > 0)
      workers::LimitMemory(AllocatedBytes() + static_cast<int64_t>(request.memory_bytes_max));
    auto runner = DeviceTrials::Make(*device_, kernel_, request.seed);
    if (!runner.ok()) return runner.status();
    runner_ = *std::move(runner);
    return 0;
  }

  absl::StatusOr<double> Do(const PrepareRequest& request) {
    if (runner_ == nullptr) return absl::InternalError("no kernel is open");
    if (absl::Status status = runner_->Prepare(request.inputs); !status.ok()) return status;
    return 0;
  }

  absl::StatusOr<double> Do(const LoadRequest& request) {
    if (runner_ == nullptr) return absl::InternalError("no kernel is open");
    for (const uint64_t trial : request.unloaded) trials_.erase(trial);
    auto trial = runner_->LoadSteps(request.steps);
    if (!trial.ok()) return trial.status();
    trials_[request.trial] = *std::move(trial);
    return 0;
  }

  absl::StatusOr<double> Do(const TimeRequest& request) {
    const auto trial = trials_.find(request.trial);
    if (trial == trials_.end()) return absl::InternalError("the trial is not loaded");
    return trial->second->Time(request.times, request.seconds_max);
  }

  absl::StatusOr<double> Do(const RunRequest& request) {
    const auto trial = trials_.find(request.trial);
    if (trial == trials_.end()) return absl::InternalError("the trial is not loaded");
    auto outputs = trial->second->Run(request.inputs, request.seconds_max);
    if (!outputs.ok()) return outputs.status();
    outputs_ = *std::move(outputs);
    return 0;
  }

  // The parent knows the sizes from the kernel.
  bool SendOutputs() {
    for (const auto& [argument, bytes] : outputs_) {
      absl::string_view rest(bytes.data(), bytes.size());
      while (!rest.empty()) {
        const absl::string_view piece = rest.substr(0, kOutputPieceBytes);
        if (!SendMessage({piece.data(), piece.size()})) return false;
        rest.remove_prefix(piece.size());
      }
    }
    return true;
  }

  static bool SendMessage(std::string_view message) {
    return workers::Send(Process::kSocket, message, workers::Deadline()) == Transfer::kDone;
  }

  const OpenDevice& open_;
  ir::Context context_;
  std::unique_ptr<drivers::Device> device_;
  kernel::Kernel kernel_;
  std::unique_ptr<DeviceTrials> runner_;
  std::map<uint64_t, std::unique_ptr<Trial>> trials_;
  Outputs outputs_;
};

}  // namespace

void RunTrialProcess(const OpenDevice& open) {
  Process::CloseSocketOnExec();
  workers::LimitThisProcess("kiln-trials");
  TrialServer server(open);
  std::string message;
  while (workers::Receive(Process::kSocket, &message, workers::Deadline()) == Transfer::kDone) {
    uint64_t number = 0;
    TrialRequest request;
    if (!DecodeRequest(message, &number, &request)) {
      std::fputs("invalid request\n", stderr);
      _exit(2);
    }
    if (!server.Answer(number, request)) break;
  }
  // Without destructors: a candidate may have damaged what they would release.
  _exit(0);
}

}  // namespace kiln::tuner
