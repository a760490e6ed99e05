#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kiln/v1/trace.grpc.pb.h"
#include "proto/text/printable.h"
#include "server/clock/clock.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/services.h"
#include "server/rpc/services/watch.h"
#include "server/sessions/user.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;

constexpr absl::Duration kTraceInterval = absl::Milliseconds(100);
constexpr absl::Duration kTraceMax = absl::Hours(1);
// In one message, of at most about a megabyte.
constexpr size_t kSpansAtOnce = 512;

v1::TraceSpan::Kind KindToProto(trace::Kind kind) {
  switch (kind) {
    case trace::Kind::kOperation:
      return v1::TraceSpan::OPERATION;
    case trace::Kind::kCall:
      return v1::TraceSpan::CALL;
    case trace::Kind::kWait:
      return v1::TraceSpan::WAIT;
    case trace::Kind::kRun:
      return v1::TraceSpan::RUN;
    case trace::Kind::kCommand:
      return v1::TraceSpan::COMMAND;
    case trace::Kind::kCopy:
      return v1::TraceSpan::COPY;
    case trace::Kind::kCompile:
      return v1::TraceSpan::COMPILE;
    case trace::Kind::kPass:
      return v1::TraceSpan::PASS;
    case trace::Kind::kKernel:
      return v1::TraceSpan::KERNEL;
  }
  return v1::TraceSpan::KIND_UNSPECIFIED;
}

// Names come from clients and may be cut anywhere; a message's strings must be UTF-8.
void FillSpan(const trace::Span& span, absl::Time began, v1::TraceSpan* proto) {
  proto->set_kind(KindToProto(span.kind));
  proto->set_start_nanoseconds(absl::ToInt64Nanoseconds(span.start - began));
  proto->set_duration_nanoseconds(static_cast<uint64_t>(absl::ToInt64Nanoseconds(span.duration)));
  proto->set_name(Printable(span.name));
  proto->set_user(Printable(span.user));
  proto->set_session(span.session);
  proto->set_device(span.device);
  proto->set_program(span.program);
  proto->set_detail(Printable(span.detail));
  proto->set_bytes(static_cast<uint64_t>(span.bytes));
  proto->set_number(span.number);
}

absl::Status NotTheSame() {
  return absl::PermissionDeniedError("the role of the caller has changed; begin another trace");
}

// Sends spans as they are recorded.
class TraceCall : public Watch<v1::TraceResponse> {
 public:
  // `charge` is for the spans that wait to be sent.
  TraceCall(const TraceServiceParts& parts, const CallbackServerContext& context,
            auth::Principal caller, std::unique_ptr<trace::Trace> trace, memory::Charge charge,
            absl::Duration duration)
      : Watch(kTraceInterval, /*at_once=*/true),
        parts_(parts),
        context_(context),
        caller_(std::move(caller)),
        charge_(std::move(charge)),
        trace_(std::move(trace)),
        end_(trace_->began() + duration) {
    Look();
  }

 private:
  Next Fill(v1::TraceResponse* response, grpc::Status* end) override {
    // Checked each time, since the caller may be revoked.
    const auto caller = parts_.access->Caller(context_);
    if (!caller.ok() || caller->user != caller_.user || caller->role != caller_.role) {
      *end = rpc::End(parts_, caller.ok() ? NotTheSame() : caller.status());
      return Next::kEnd;
    }
    if (!std::exchange(has_begun_, true)) {
      const absl::Time began = OnWall(parts_.clock, trace_->began());
      *response->mutable_began() = ToProto(began);
      return Next::kSend;
    }
    const bool is_over = parts_.clock.steady() >= end_;
    if (is_over) trace_->Stop();
    const trace::Trace::Taken taken = trace_->Take(kSpansAtOnce);
    for (const trace::Span& span : taken.spans)
      FillSpan(span, trace_->began(), response->add_spans());
    response->set_dropped(static_cast<uint64_t>(taken.dropped));
    if (!taken.spans.empty() || taken.dropped > 0) return Next::kSend;
    return is_over ? Next::kEnd : Next::kWait;
  }

  const TraceServiceParts& parts_;
  const CallbackServerContext& context_;
  const auth::Principal caller_;
  const memory::Charge charge_;
  const std::unique_ptr<trace::Trace> trace_;
  const absl::Time end_;
  bool has_begun_ = false;
};

absl::StatusOr<absl::Duration> DurationOf(const v1::TraceRequest& request) {
  if (!request.has_duration()) return kTraceMax;
  const absl::Duration duration =
      absl::Seconds(request.duration().seconds()) + absl::Nanoseconds(request.duration().nanos());
  if (duration > absl::ZeroDuration() && duration <= kTraceMax) return duration;
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("a trace can last for more than 0 and at most ",
                                              absl::ToInt64Seconds(kTraceMax), " seconds, not ",
                                              absl::FormatDuration(duration))),
      "BAD_TRACE");
}

class TraceService final : public v1::TraceService::CallbackService {
 public:
  explicit TraceService(const TraceServiceParts& parts) : parts_(parts) {
    MarkMethodCallback(MethodIndex(v1::TraceService::service_full_name(), "Trace"),
                       Bounded(parts_, this, &TraceService::Trace));
  }

  grpc::ServerWriteReactor<v1::TraceResponse>* Trace(CallbackServerContext* context,
                                                     const v1::TraceRequest* request) override {
    const auto refuse = [this](const absl::Status& why) {
      return new Refusal<v1::TraceResponse>(End(parts_, why));
    };
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return refuse(caller.status());
    const auto duration = DurationOf(*request);
    if (!duration.ok()) return refuse(duration.status());
    const std::shared_ptr<sessions::User> user = parts_.registry->GetUser(caller->user);
    auto charge = user->host->Reserve(memory::Use::kTransfers, trace::kSpanBytesMax);
    if (!charge.ok()) return refuse(user->Explain(charge.status()));
    auto trace = parts_.recorder->Begin({caller->user, caller->sees_all()});
    if (!trace.ok()) return refuse(trace.status());
    return new TraceCall(parts_, *context, *caller, *std::move(trace), *std::move(charge),
                         *duration);
  }

 private:
  const TraceServiceParts& parts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTraceService(const TraceServiceParts& parts) {
  return std::make_unique<TraceService>(parts);
}

}  // namespace kiln::rpc
