#include "server/rpc/malformed_requests.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/message.h"

namespace kiln::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

// The request's type of "/kiln.v1.SessionService/OpenSession"; empty for a service of gRPC's own.
std::string RequestType(std::string method) {
  method.erase(0, 1);
  std::replace(method.begin(), method.end(), '/', '.');
  const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method);
  return found == nullptr ? "" : found->input_type()->full_name();
}

class Explainer : public Interceptor {
 public:
  Explainer(const DaemonView& daemon, std::string method)
      : daemon_(daemon), method_(std::move(method)) {}

  void Intercept(InterceptorBatchMethods* call) override {
    if (call->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      // Our own methods never end so: each of their errors says what it is.
      const grpc::Status status = call->GetSendStatus();
      if (status.error_code() == grpc::UNIMPLEMENTED && status.error_message().empty())
        call->ModifySendStatus(End(daemon_, Malformed(RequestType(method_))));
    }
    call->Proceed();
  }

 private:
  const DaemonView& daemon_;
  const std::string method_;
};

class ExplainerFactory : public ServerInterceptorFactoryInterface {
 public:
  explicit ExplainerFactory(const DaemonView& daemon) : daemon_(daemon) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    // In all other kinds of calls gRPC has no request to parse when the method begins.
    const bool parses = info->type() == ServerRpcInfo::Type::UNARY ||
                        info->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    // gRPC owns it, one for each call, and takes null for none.
    return parses ? new Explainer(daemon_, info->method()) : nullptr;
  }

 private:
  const DaemonView& daemon_;
};

}  // namespace

void ExplainMalformedRequests(const DaemonView& daemon, grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<ExplainerFactory>(daemon));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace kiln::rpc
