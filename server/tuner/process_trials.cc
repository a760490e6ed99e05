#include "server/tuner/process_trials.h"

#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/workers/worker.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"

namespace kiln::tuner {
namespace {

using workers::Transfer;

// Limits for starting a process and opening the device and the kernel there, and for loading an
// image, which a vendor's driver may have to compile.
constexpr double kOpenSeconds = 120;
constexpr double kLoadSeconds = 60;
// A step waits this many times as long as opening took: it copies the arguments twice, and checks
// them.
constexpr double kOverhead = 4;
// The arguments are once on the device and twice on the host, and outputs are once more in
// messages.
constexpr int64_t kCopiesOfArguments = 5;
constexpr int64_t kMemoryForImages = int64_t{1} << 30;

// A process that was killed is gone sooner, unless a vendor's driver hangs.
constexpr std::chrono::milliseconds kKillPatience{1000};

int64_t MemoryBytesFor(const kernel::Kernel& kernel) {
  double bytes = kMemoryForImages;  // a user chooses the sizes
  for (const kernel::Buffer& buffer : kernel.buffers)
    if (buffer.memory == kernel::Memory::kGlobal)
      bytes += kCopiesOfArguments * static_cast<double>(buffer.elements) * ir::SizeOf(buffer.dtype);
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

absl::Status Lost() { return absl::AbortedError("its process was lost"); }

double SecondsSince(const workers::SteadyClock& now, workers::SteadyTime begin) {
  return std::chrono::duration<double>(now() - begin).count();
}

}  // namespace

class ProcessTrials::RemoteTrial : public Trial {
 public:
  RemoteTrial(ProcessTrials& trials, uint64_t number, absl::Span<const TrialStep> steps)
      : trials_(trials), number_(number), steps_(steps.begin(), steps.end()) {}
  ~RemoteTrial() override { trials_.unloaded_.push_back(number_); }

  absl::Status Load() override { return trials_.Do(*this, nullptr, 0, nullptr).status(); }

  absl::StatusOr<double> Time(int times, double seconds_max) override {
    const TrialRequest request = TimeRequest{number_, times, seconds_max};
    return trials_.Do(*this, &request, seconds_max, nullptr);
  }

  absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) override {
    const TrialRequest request = RunRequest{number_, inputs, seconds_max};
    Outputs outputs;
    const auto answer = trials_.Do(*this, &request, seconds_max, &outputs);
    if (!answer.ok()) return answer.status();
    return outputs;
  }

 private:
  friend class ProcessTrials;

  ProcessTrials& trials_;
  const uint64_t number_;
  const std::vector<TrialStep> steps_;
  uint64_t generation_ = 0;   // of the process that has it loaded
  absl::Status failure_;      // it ended a process
  bool is_repeated_ = false;  // its next step repeats one whose process was lost
};

ProcessTrials::ProcessTrials(const kernel::Kernel& kernel, const drivers::Target& target,
                             uint64_t seed, Options options)
    : kernel_(kernel),
      hardware_(target.HardwareKey()),
      seed_(seed),
      options_(std::move(options)),
      memory_bytes_max_(options_.memory_bytes_max > 0 ? options_.memory_bytes_max
                                                      : MemoryBytesFor(kernel)) {}

ProcessTrials::~ProcessTrials() {
  std::shared_ptr<const void> charge;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  charge = std::move(charge_);
}

absl::StatusOr<std::unique_ptr<ProcessTrials>> ProcessTrials::Make(const kernel::Kernel& kernel,
                                                                   const drivers::Target& target,
                                                                   uint64_t seed, Options options) {
  auto trials = MakeUnopened(kernel, target, seed, std::move(options));
  if (!trials.ok()) return trials.status();
  if (absl::Status status = (*trials)->Open(); !status.ok()) return status;
  return trials;
}

absl::StatusOr<std::unique_ptr<ProcessTrials>> ProcessTrials::MakeUnopened(
    const kernel::Kernel& kernel, const drivers::Target& target, uint64_t seed, Options options) {
  auto trials =
      std::unique_ptr<ProcessTrials>(new ProcessTrials(kernel, target, seed, std::move(options)));
  if (absl::Status status = trials->Charge(); !status.ok()) return status;
  return trials;
}

absl::Status ProcessTrials::Prepare(const Inputs& inputs) {
  if (absl::Status status = Open(); !status.ok()) return status;
  // A process that is lost now is replaced by the step that follows.
  const Result result = Ask(PrepareRequest{inputs}, 0, nullptr);
  return result.lost ? halted() : result.answer.status();
}

void ProcessTrials::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return;
  stopped_ = why;
  // The thread that waits for an answer finds the socket closed, and ends the process.
  if (process_ != nullptr) shutdown(process_->socket(), SHUT_RDWR);
}

void ProcessTrials::Pause() {
  std::shared_ptr<const void> charge;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return;
  charge = std::move(charge_);
  if (is_paused_) return;
  is_paused_ = true;
  ++pauses_;
  // A process without a request ends when it finds the socket closed.
  is_shut_ = process_ != nullptr;
  if (is_shut_) shutdown(process_->socket(), SHUT_RDWR);
}

void ProcessTrials::Resume() {
  absl::MutexLock lock(&mutex_);
  is_paused_ = false;
}

void ProcessTrials::SetOnYield(std::function<void()> on_yield) {
  absl::MutexLock lock(&mutex_);
  on_yield_ = std::move(on_yield);
}

// The pool waits for this with a lock that the end of a charge takes, too. So nothing here waits
// for a thread that may hold mutex_ or return a charge.
bool ProcessTrials::GiveUp() {
  absl::MutexLock lock(&mutex_);
  // One that is stopped ends soon anyway.
  if (on_yield_ == nullptr && stopped_.ok()) return false;
  if (!is_paused_) {
    is_paused_ = true;
    ++pauses_;
  }
  is_shut_ = process_ != nullptr;
  // A device's memory is free when the process has ended, and not when it is told to.
  if (process_ != nullptr) process_->Kill(kKillPatience);
  if (on_yield_ != nullptr) on_yield_();
  return true;
}

absl::StatusOr<std::unique_ptr<Trial>> ProcessTrials::Load(const drivers::KernelImage& image) {
  TrialStep step{.image = image, .arguments = {}};
  for (size_t i = 0; i < kernel_.buffers.size(); ++i)
    if (kernel_.buffers[i].memory == kernel::Memory::kGlobal)
      step.arguments.push_back(static_cast<int>(i));
  return LoadSteps({&step, 1});
}

absl::StatusOr<std::unique_ptr<Trial>> ProcessTrials::LoadSteps(absl::Span<const TrialStep> steps) {
  auto trial = std::make_unique<RemoteTrial>(*this, ++last_trial_, steps);
  const auto loaded = Do(*trial, nullptr, 0, nullptr);
  if (!loaded.ok()) return loaded.status();
  return trial;
}

pid_t ProcessTrials::pid() const {
  absl::MutexLock lock(&mutex_);
  return process_ == nullptr ? 0 : process_->pid();
}

absl::StatusOr<double> ProcessTrials::Do(RemoteTrial& trial, const TrialRequest* request,
                                         double seconds_max, Outputs* outputs) {
  if (!trial.failure_.ok()) return trial.failure_;
  const int64_t pauses_before = pauses();
  const bool is_step = request != nullptr;
  for (bool first = !is_step || !trial.is_repeated_;; first = false) {
    if (absl::Status status = Open(); !status.ok()) return status;
    Result result = Try(trial, request, seconds_max, outputs);
    if (absl::Status status = halted(); !status.ok()) return status;
    // A pause that is over already has ended the process.
    if (pauses() != pauses_before) return TrialsPaused();
    if (is_step) trial.is_repeated_ = false;
    const bool wild = absl::IsDataLoss(result.answer.status());
    if (!result.lost && !wild) return result.answer;
    const bool alone = ran_.size() == 1;
    // It may have written to other places of its process, too.
    if (wild) EndProcess();
    // Late answers are not repeated, since each takes long.
    const bool late = absl::IsDeadlineExceeded(result.answer.status());
    if (first && !late && (!alone || result.killed)) {
      if (options_.repeats || !is_step) continue;
      trial.is_repeated_ = true;
      return Lost();
    }
    if (alone && !result.killed && !wild) trial.failure_ = result.answer.status();
    return result.answer;
  }
}

ProcessTrials::Result ProcessTrials::Try(RemoteTrial& trial, const TrialRequest* request,
                                         double seconds_max, Outputs* outputs) {
  ran_.insert(trial.number_);
  if (trial.generation_ != generation_) {
    const LoadRequest load{trial.number_, std::exchange(unloaded_, {}), trial.steps_};
    Result result = Ask(load, kLoadSeconds, nullptr);
    if (result.lost || !result.answer.ok()) return result;
    trial.generation_ = generation_;
  }
  if (request == nullptr) return {};
  return Ask(*request, seconds_max, outputs);
}

absl::Status ProcessTrials::Charge() {
  if (!options_.charge) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    if (charge_ != nullptr) return absl::OkStatus();
  }
  auto charge = options_.charge([this] { return GiveUp(); });
  if (!charge.ok()) return charge.status();
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = HaltedLocked(); !status.ok()) return status;
  charge_ = *std::move(charge);
  return absl::OkStatus();
}

absl::Status ProcessTrials::Open() {
  if (absl::Status status = halted(); !status.ok()) return status;
  if (absl::Status status = Charge(); !status.ok()) {
    // That says nothing about a candidate.
    return absl::IsResourceExhausted(status) ? absl::UnavailableError(status.message()) : status;
  }
  // One that was ended meanwhile, or says something unasked, is replaced.
  if (const workers::Process* old = process(); old != nullptr && old->IsQuiet())
    return absl::OkStatus();
  EndProcess();
  const int64_t pauses_before = pauses();
  const auto begin = options_.now();
  auto process = workers::Process::Start(options_.command);
  if (!process.ok()) return process.status();
  ++generation_;
  ran_.clear();
  unloaded_.clear();
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = HaltedLocked(); !status.ok()) return status;
    process_ = *std::move(process);
    is_shut_ = false;
  }
  const Result result =
      Ask(OpenRequest{.kernel = kernel::Print(kernel_),
                      .hardware = hardware_,
                      .seed = seed_,
                      .memory_bytes_max = static_cast<uint64_t>(memory_bytes_max_)},
          kOpenSeconds, nullptr);
  overhead_seconds_ = kOverhead * SecondsSince(options_.now, begin);
  if (absl::Status status = halted(); !status.ok()) return status;
  if (!result.answer.ok()) EndProcess();
  if (pauses() != pauses_before) return TrialsPaused();
  if (!result.lost) return result.answer.status();
  return absl::UnavailableError(
      absl::StrCat("the process of the trials cannot open the device or the kernel: ",
                   std::string(result.answer.status().message())));
}

ProcessTrials::Result ProcessTrials::Ask(const TrialRequest& request, double seconds_max,
                                         Outputs* outputs) {
  const double allowed = seconds_max + options_.patience_seconds + overhead_seconds_;
  const workers::Deadline deadline(
      options_.now,
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(allowed)));
  const int socket = process()->socket();
  const uint64_t number = ++last_number_;
  const std::string message = EncodeRequest(number, request);
  if (message.size() > workers::kMessageBytesMax)
    return {absl::ResourceExhaustedError("its machine code is too large")};
  Result result;
  std::string answer;
  Transfer transfer = workers::Send(socket, message, deadline);
  if (transfer == Transfer::kDone) transfer = workers::Receive(socket, &answer, deadline);
  if (transfer == Transfer::kDone && DecodeTrialAnswer(answer, number, &result.answer)) {
    if (outputs == nullptr || !result.answer.ok()) return result;
    transfer = ReceiveOutputs(socket, deadline, outputs);
    if (transfer == Transfer::kDone) return result;
  }
  return Lose(transfer, allowed);
}

// Returns kTooLong also for an output of another size than the kernel's.
Transfer ProcessTrials::ReceiveOutputs(int socket, const workers::Deadline& deadline,
                                       Outputs* outputs) const {
  std::string piece;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    if (buffer.memory != kernel::Memory::kGlobal) break;  // globals come first
    if (buffer.access == kernel::Access::kRead) continue;
    const auto bytes = static_cast<size_t>(buffer.elements * ir::SizeOf(buffer.dtype));
    std::vector<char>& output = (*outputs)[static_cast<int>(i)];
    output.clear();
    output.reserve(bytes);
    while (output.size() < bytes) {
      if (const Transfer transfer = workers::Receive(socket, &piece, deadline);
          transfer != Transfer::kDone)
        return transfer;
      if (piece.size() != std::min(bytes - output.size(), kOutputPieceBytes))
        return Transfer::kTooLong;
      output.insert(output.end(), piece.begin(), piece.end());
    }
  }
  return Transfer::kDone;
}

// Ends the process, and returns how it failed.
ProcessTrials::Result ProcessTrials::Lose(Transfer transfer, double seconds_max) {
  std::unique_ptr<workers::Process> process;
  bool is_meant = false;
  {
    absl::MutexLock lock(&mutex_);
    process = std::move(process_);
    is_meant = is_shut_ || !stopped_.ok();
  }
  KILN_CHECK_NE(process, nullptr);
  const workers::Ending ending = process->End();
  const std::string said =
      ending.said.empty() ? "" : absl::StrCat(" (\"", PrintableInQuotes(ending.said), "\")");
  Result result{.lost = true};
  if (transfer == Transfer::kLate) {
    result.answer = absl::DeadlineExceededError(
        absl::StrCat("its process did not answer within ", seconds_max, " s, and was ended", said));
  } else if (transfer != Transfer::kClosed) {
    result.answer =
        absl::InternalError(absl::StrCat("its process returned an invalid answer", said));
  } else if (workers::IsOutOfMemory(ending)) {
    result.answer = absl::ResourceExhaustedError(
        absl::StrCat("its process needed more than ", memory_bytes_max_, " bytes of memory", said));
  } else {
    result.answer = absl::InternalError(absl::StrCat("its process ", ending.ToString(), said));
    result.killed = ending.signal == SIGKILL;
  }
  if (options_.on_lost && !is_meant)
    options_.on_lost(std::string(result.answer.status().message()));
  return result;
}

void ProcessTrials::EndProcess() {
  std::unique_ptr<workers::Process> process;
  absl::MutexLock lock(&mutex_);
  process = std::move(process_);
}

workers::Process* ProcessTrials::process() const {
  absl::MutexLock lock(&mutex_);
  return process_.get();
}

absl::Status ProcessTrials::halted() const {
  absl::MutexLock lock(&mutex_);
  return HaltedLocked();
}

absl::Status ProcessTrials::HaltedLocked() const {
  return stopped_.ok() && is_paused_ ? TrialsPaused() : stopped_;
}

int64_t ProcessTrials::pauses() const {
  absl::MutexLock lock(&mutex_);
  return pauses_;
}

}  // namespace kiln::tuner
