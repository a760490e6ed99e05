#include "server/rpc/services/tune_call.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/errors/errors.h"
#include "server/rpc/services/watch.h"
#include "server/runtime/thread_pool.h"
#include "server/tuner/tuner.h"

namespace kiln::rpc {
namespace {

using tuner::TuneProgress;
using tuner::TuneState;

constexpr uint32_t kDefaultWidth = 4;
constexpr uint32_t kWidthMax = 64;
constexpr uint32_t kDefaultSeconds = 60;
constexpr absl::Duration kInterval = absl::Milliseconds(200);

// The progress and the end of a tuning.
class Tuning {
 public:
  // Keeps only the latest progress of each kernel until it is sent.
  void Add(const TuneProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!unsent_.empty() && unsent_.back().number == progress.number) unsent_.pop_back();
    unsent_.push_back(progress);
  }
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ended_ = status;
  }
  std::optional<TuneProgress> Next() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (unsent_.empty()) return std::nullopt;
    TuneProgress next = std::move(unsent_.front());
    unsent_.pop_front();
    return next;
  }
  // Nothing while it goes on, or while there is something to send.
  std::optional<absl::Status> Ended() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return unsent_.empty() ? ended_ : std::nullopt;
  }
  const std::shared_ptr<tuner::TuningControl>& control() const { return control_; }

 private:
  const std::shared_ptr<tuner::TuningControl> control_ = std::make_shared<tuner::TuningControl>();
  absl::Mutex mutex_;
  std::deque<TuneProgress> unsent_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

v1::TuneProgramResponse::State StateToProto(TuneState state) {
  switch (state) {
    case TuneState::kSearching:
      return v1::TuneProgramResponse::SEARCHING;
    case TuneState::kFaster:
      return v1::TuneProgramResponse::FASTER;
    case TuneState::kKept:
      return v1::TuneProgramResponse::KEPT;
    case TuneState::kSearched:
      return v1::TuneProgramResponse::SEARCHED;
    case TuneState::kNoTime:
      return v1::TuneProgramResponse::NO_TIME;
    case TuneState::kFailed:
      return v1::TuneProgramResponse::FAILED;
  }
  return v1::TuneProgramResponse::STATE_UNSPECIFIED;
}

}  // namespace

void FillProgress(const TuneProgress& progress, v1::TuneProgramResponse* proto) {
  proto->set_fraction_done(progress.fraction_done);
  proto->set_kernel(progress.kernel);
  proto->set_seconds_before(progress.seconds_before);
  proto->set_seconds_now(progress.seconds_now);
  proto->set_state(StateToProto(progress.state));
  proto->set_why(progress.why);
  if (progress.roofline.seconds > 0) {
    proto->set_roofline_seconds(progress.roofline.seconds);
    proto->set_roofline_limit(std::string(tuner::LimitName(progress.roofline.limit)));
  }
  proto->set_share(progress.share);
  proto->set_round(static_cast<uint32_t>(progress.round));
  proto->set_tried(static_cast<uint32_t>(progress.tried));
  proto->set_refused(static_cast<uint32_t>(progress.refused));
  proto->set_number(static_cast<uint32_t>(progress.number));
  proto->set_kernels(static_cast<uint32_t>(progress.kernels));
  proto->set_site(progress.is_site);
}

namespace {

class TuneCall : public Watch<v1::TuneProgramResponse> {
 public:
  TuneCall(const ProgramServiceParts& parts, const grpc::CallbackServerContext& context,
           std::shared_ptr<Tuning> tuning)
      : Watch(kInterval, /*at_once=*/true),
        parts_(parts),
        context_(context),
        tuning_(std::move(tuning)) {
    Look();
  }

 private:
  ~TuneCall() override { tuning_->control()->Cancel(); }

  Next Fill(v1::TuneProgramResponse* response, grpc::Status* end) override {
    // Checked each time, since the caller may be revoked.
    if (const auto caller = parts_.access->Caller(context_); !caller.ok()) {
      *end = rpc::End(parts_, caller.status());
      return Next::kEnd;
    }
    if (const std::optional<TuneProgress> progress = tuning_->Next()) {
      FillProgress(*progress, response);
      return Next::kSend;
    }
    const std::optional<absl::Status> ended = tuning_->Ended();
    if (!ended) return Next::kWait;
    *end = rpc::End(parts_, *ended);
    return Next::kEnd;
  }

  const ProgramServiceParts& parts_;
  const grpc::CallbackServerContext& context_;
  const std::shared_ptr<Tuning> tuning_;
};

absl::Status BadTuning(const std::string& why) {
  return errors::WithReason(absl::InvalidArgumentError(why), "BAD_TUNING");
}

absl::StatusOr<tuner::TuneOptions> OptionsOf(const v1::TuneProgramRequest& request,
                                             uint32_t seconds_max) {
  if (request.beam_width() > kWidthMax) {
    return BadTuning(
        absl::StrCat("a width of ", request.beam_width(), " is more than ", kWidthMax));
  }
  if (request.seconds() > seconds_max) {
    return BadTuning(absl::StrCat(
        request.seconds(), " s are more than the ", seconds_max,
        " s that this daemon allows for one tuning (tuner.seconds_limit); what a tuning has found "
        "is stored, so tune again to continue"));
  }
  tuner::TuneOptions options;
  options.seconds =
      request.seconds() == 0 ? std::min(kDefaultSeconds, seconds_max) : request.seconds();
  options.width =
      static_cast<int>(request.beam_width() == 0 ? kDefaultWidth : request.beam_width());
  options.force = request.force();
  return options;
}

std::vector<runtime::ManagedDevice*> DevicesOf(const runtime::Program& program) {
  std::vector<runtime::ManagedDevice*> devices;
  for (const auto& member : program.sharded().members()) devices.push_back(member.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

// Tunes on a thread of its own: there is one for each device, and the claim is on at least one.
absl::StatusOr<std::shared_ptr<Tuning>> Begin(const ProgramServiceParts& parts,
                                              const std::shared_ptr<runtime::Program>& program,
                                              const v1::TuneProgramRequest& request,
                                              const std::string& user,
                                              std::shared_ptr<memory::Account> host) {
  auto options = OptionsOf(request, parts.tuning_seconds_max);
  if (!options.ok()) return options.status();
  options->host = std::move(host);
  const auto tuning = std::make_shared<Tuning>();
  auto claimed = parts.program_tuner->Begin(
      DevicesOf(*program),
      {.program = program->short_digest(), .user = user, .control = tuning->control()});
  if (!claimed.ok()) return claimed.status();
  options->control = tuning->control();
  if (auto graph = tuner::GraphOf(*program); graph && !request.kernels_only())
    options->graph = std::make_shared<const tuner::GraphToTune>(*std::move(graph));
  parts.tunings->Schedule(
      [program_tuner = parts.program_tuner, tuning, options = *std::move(options),
       claim = std::shared_ptr<tuner::Tuner::Claim>(*std::move(claimed)),
       kernels = tuner::KernelsOf(*program), digest = program->short_digest()]() mutable {
        options.on_progress = [&](const TuneProgress& progress) {
          claim->Report(progress);
          tuning->Add(progress);
        };
        const absl::Status ended =
            program_tuner->Tune(std::move(kernels), digest, options).status();
        // Before the client knows, which may begin another one.
        claim.reset();
        tuning->End(ended);
      });
  return tuning;
}

}  // namespace

grpc::ServerWriteReactor<v1::TuneProgramResponse>* BeginTuning(
    const ProgramServiceParts& parts, const grpc::CallbackServerContext& context,
    const auth::Principal& caller, const std::shared_ptr<runtime::Program>& program,
    const v1::TuneProgramRequest& request) {
  auto tuning =
      Begin(parts, program, request, caller.user, parts.registry->GetUser(caller.user)->host);
  Audit(*parts.audit, parts.clock, caller, "tune_program", program->short_digest(),
        tuning.status());
  if (!tuning.ok()) return new Refusal<v1::TuneProgramResponse>(End(parts, tuning.status()));
  return new TuneCall(parts, context, *std::move(tuning));
}

}  // namespace kiln::rpc
