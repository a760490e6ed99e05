#include "server/rpc/connections/call_meter.h"

#include <string>
#include <utility>

#include "absl/strings/strip.h"
#include "server/auth/method_table.h"

namespace kiln::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// "ProgramService/ListKernels".
std::string ShortMethod(absl::string_view method) {
  return std::string(absl::StripPrefix(absl::StripPrefix(method, "/"), "kiln.v1."));
}

class MeteredCall : public Interceptor {
 public:
  MeteredCall(const CallMeterParts& parts, const std::function<absl::Time()>& now,
              ServerRpcInfo& call)
      : parts_(parts), now_(now), call_(call), start_(now()) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) Ended();
    methods->Proceed();
  }

 private:
  void Ended() {
    const absl::Duration duration = now_() - start_;
    const std::string method = ShortMethod(call_.method());
    parts_.metrics->CallEnded(method, absl::ToDoubleSeconds(duration));
    if (!trace::IsOn(parts_.trace_recorder)) return;
    const auto caller = parts_.access->Caller(*call_.server_context());
    parts_.trace_recorder->Add({.kind = trace::Kind::kCall,
                                .start = start_,
                                .duration = duration,
                                .name = method,
                                .user = caller.ok() ? caller->user : ""});
  }

  const CallMeterParts& parts_;
  const std::function<absl::Time()>& now_;
  ServerRpcInfo& call_;
  const absl::Time start_;
};

class CallMeter : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CallMeter(CallMeterParts parts, std::function<absl::Time()> now)
      : parts_(parts), now_(std::move(now)) {}

  // gRPC owns the interceptor. Null: the call is not intercepted.
  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    // An interceptor would be called for each message of a stream.
    if (call->type() == ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    // Others could be any text of a client.
    if (!auth::LeastRole(call->method())) return nullptr;
    return new MeteredCall(parts_, now_, *call);
  }

 private:
  const CallMeterParts parts_;
  const std::function<absl::Time()> now_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallMeter(
    CallMeterParts parts, std::function<absl::Time()> now) {
  return std::make_unique<CallMeter>(parts, std::move(now));
}

}  // namespace kiln::rpc
