#include "server/tuner/idle_tuner.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"
#include "proto/check/check.h"
#include "server/log/log.h"

namespace kiln::tuner {
namespace {

// Programs are dropped after minutes at the earliest, so what they have used is not missed.
constexpr absl::Duration kLookAtPrograms = absl::Minutes(1);
// Trials hold their arguments beside users' tensors.
constexpr int64_t kMemoryShare = 8;

double ArgumentBytes(const kernel::Kernel& kernel) {
  double bytes = 0;  // a user chooses the sizes
  for (const kernel::Buffer& buffer : kernel.buffers)
    if (buffer.memory == kernel::Memory::kGlobal)
      bytes += static_cast<double>(buffer.elements) * ir::SizeOf(buffer.dtype);
  return bytes;
}

}  // namespace

IdleTuner::IdleTuner(Options options)
    : options_(std::move(options)),
      next_(options_.devices.size()),
      searcher_(std::make_unique<runtime::ThreadPool>(1)) {
  KILN_CHECK(options_.tuner != nullptr && options_.store != nullptr);
  KILN_CHECK(options_.look_at_programs && options_.host_work != nullptr);
  for (runtime::ManagedDevice* device : options_.devices)
    device->dispatcher().SetUsersWorkObserver([this] { Wake(); });
  options_.host_work->SetObserver([this] { Wake(); });
  looker_ = std::thread([this] { Run(); });
}

IdleTuner::~IdleTuner() {
  Stop();
  searcher_.reset();
  options_.host_work->SetObserver(nullptr);
}

void IdleTuner::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  looker_.join();
}

void IdleTuner::Wake() {
  if (!wants_wake_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&mutex_);
  is_woken_ = true;
}

void IdleTuner::HasYielded() {
  has_yielded_ = true;
  // An allocation is users' work, too.
  options_.host_work->Touch();
}

void IdleTuner::Run() {
  const auto is_awake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || is_woken_ || ended_.has_value();
  };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&is_awake), options_.interval);
      is_woken_ = false;
      if (stopping_) break;
    }
    while (Look()) {
    }
  }
  if (search_) End();
}

bool IdleTuner::Look() {
  const absl::Time now = options_.clock.steady();
  std::optional<Ended> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended = std::exchange(ended_, std::nullopt);
  }
  if (ended) {
    if (ended->searched) use_.SetSearched(*ended->searched);
    search_.reset();
    wants_wake_ = false;
    is_next_known_ = false;
  }
  // Also if users are quiet again already.
  if (has_yielded_.exchange(false) && search_ && !search_->control->is_paused()) {
    Pause(now);
    return true;
  }
  // It has been told to end.
  if (search_ && search_->control->is_cancelled()) return false;
  LookAtPrograms(now);
  const IdleDecision decision = Decide(StateAt(now), options_.quiet);
  switch (decision.step) {
    case IdleStep::kNothing:
      return false;
    case IdleStep::kBegin:
      Begin(decision.device);
      break;
    case IdleStep::kPause:
      Pause(now);
      break;
    case IdleStep::kResume:
      Resume(now);
      break;
    case IdleStep::kEnd:
      End();
      break;
  }
  return true;
}

// Looking up settings takes a while, so it is done rarely, and not while users work or a search
// runs.
void IdleTuner::LookAtPrograms(absl::Time now) {
  if (now >= next_programs_) {
    options_.look_at_programs(use_);
    next_programs_ = now + kLookAtPrograms;
    is_next_known_ = false;
  }
  if (search_ || is_next_known_) return;
  if (options_.host_work->users_work().is_there) return;
  for (const runtime::ManagedDevice* device : options_.devices)
    if (device->dispatcher().users_work().is_there) return;
  for (size_t i = 0; i < next_.size(); ++i) next_[i] = NextOn(*options_.devices[i]);
  is_next_known_ = true;
}

IdleState IdleTuner::StateAt(absl::Time now) const {
  IdleState state;
  state.is_allowed = options_.hours.Contains(options_.clock.wall(), options_.zone);
  const fairness::UsersWork on_host = options_.host_work->users_work();
  state.has_host_work = on_host.is_there;
  state.host_quiet = now - on_host.last;
  for (size_t i = 0; i < options_.devices.size(); ++i) {
    const runtime::ManagedDevice& device = *options_.devices[i];
    const fairness::UsersWork work = device.dispatcher().users_work();
    state.devices.push_back(
        {.is_usable = device.CheckUsable(/*new_work=*/true).ok(),
         .is_asked = options_.tuner->IsAsked(device),
         .uses_cores = device.info().target.limits.threads_per_block <= 1,
         .has_users_work = work.is_there,
         .quiet = now - work.last,
         .seconds_of_next = is_next_known_ && next_[i] ? next_[i]->seconds : 0});
  }
  if (search_)
    state.search = {.device = search_->device, .is_paused = search_->control->is_paused()};
  return state;
}

std::optional<KernelUse::Used> IdleTuner::NextOn(const runtime::ManagedDevice& device) const {
  if (device.info().target.architecture == "null") return std::nullopt;
  for (const KernelUse::Used* used : use_.Unsearched(device)) {
    const KernelToTune& kernel = used->kernel;
    const auto known =
        options_.store->Find(kernel.text, device.info().target.HardwareKey(), kernel.owner);
    if (known && known->width >= options_.width) continue;
    if (IsSearchable(kernel)) return *used;
  }
  return std::nullopt;
}

bool IdleTuner::IsSearchable(const KernelToTune& kernel) const {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel.text, context);
  const auto bytes_max = static_cast<double>(kernel.device->pool()->total_bytes() / kMemoryShare);
  return parsed.ok() && ArgumentBytes(*parsed) <= bytes_max;
}

void IdleTuner::Begin(size_t device) {
  const KernelUse::Used used = *next_[device];
  const auto control = std::make_shared<TuningControl>([this] { HasYielded(); });
  auto claim =
      options_.tuner->Begin({options_.devices[device]},
                            {.program = used.program, .origin = Origin::kIdle, .control = control});
  // Until the next look at the programs there is nothing to search here.
  next_[device].reset();
  if (!claim.ok()) return;
  search_ = Search{.device = device, .control = control};
  // Work that came before is found by the look that follows.
  wants_wake_ = true;
  const TuneOptions options{.seconds = options_.kernel_seconds_max,
                            .width = options_.width,
                            .host = options_.host,
                            .control = control,
                            .compile = options_.compile,
                            .origin = Origin::kIdle};
  searcher_->Schedule([this, used, options,
                       claim = std::make_shared<std::unique_ptr<Tuner::Claim>>(*std::move(claim))] {
    SearchKernel(used, options, std::move(*claim));
  });
}

void IdleTuner::SearchKernel(const KernelUse::Used& used, const TuneOptions& options,
                             std::unique_ptr<Tuner::Claim> claim) {
  TuneOptions reported = options;
  reported.on_progress = [&](const TuneProgress& progress) { claim->Report(progress); };
  // The tuner logs why it failed.
  options_.tuner->Tune({used.kernel}, used.program, reported).status().IgnoreError();
  claim.reset();
  Ended ended;
  // One that has failed would fail again, and one that an admin has stopped is not wanted.
  if (!options.control->is_cancelled() || absl::IsCancelled(options.control->status()))
    ended.searched = used.kernel;
  absl::MutexLock lock(&mutex_);
  ended_ = std::move(ended);
}

void IdleTuner::Pause(absl::Time now) {
  wants_wake_ = false;
  search_->control->Pause(now);
  log::Info("idle_tuning_paused", {{"device", options_.devices[search_->device]->name()}});
}

void IdleTuner::Resume(absl::Time now) {
  wants_wake_ = true;
  search_->control->Resume(now);
  log::Info("idle_tuning_resumed", {{"device", options_.devices[search_->device]->name()}});
}

void IdleTuner::End() {
  wants_wake_ = false;
  search_->control->Cancel(absl::AbortedError("the daemon does not search any more now"));
}

}  // namespace kiln::tuner
