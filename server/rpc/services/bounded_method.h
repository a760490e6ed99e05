// Checks of requests that gRPC parses. By itself, gRPC parses everything, and answers unparseable
// requests with UNIMPLEMENTED without a reason, as if the method did not exist.
#ifndef KILN_SERVER_RPC_SERVICES_BOUNDED_METHOD_H_
#define KILN_SERVER_RPC_SERVICES_BOUNDED_METHOD_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "proto/check/check.h"
#include "server/rpc/services/services.h"

namespace kiln::rpc {

// Wraps a method handler and rejects invalid requests with INVALID_ARGUMENT before the method sees
// them: requests with too many parts (TOO_MANY_PARTS, see CheckParts), or not of the request's type
// (MALFORMED_MESSAGE). Streamed requests are not checked; those methods parse them.
class BoundedMethod : public grpc::internal::MethodHandler {
 public:
  // Makes a handler of the same kind that returns a status.
  using MakeRefusing = std::function<std::unique_ptr<MethodHandler>(const grpc::Status&)>;
  // `daemon`, whose metrics count refusals, must outlive this object.
  BoundedMethod(const ServiceParts& parts, const google::protobuf::Descriptor& request,
                std::unique_ptr<MethodHandler> method, MakeRefusing make_refusing)
      : parts_(parts),
        request_(request),
        method_(std::move(method)),
        make_refusing_(std::move(make_refusing)) {
    KILN_CHECK(method_ != nullptr && make_refusing_ != nullptr);
  }

  void* Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status,
                    void** data) override;
  void RunHandler(const HandlerParameter& parameter) override;

 private:
  const ServiceParts& parts_;
  const google::protobuf::Descriptor& request_;
  const std::unique_ptr<MethodHandler> method_;
  const MakeRefusing make_refusing_;
};

// Returns a method's index within its service. Terminates the process if there is no such method.
int MethodIndex(const std::string& service, const std::string& method);

// For grpc::Service::MarkMethodCallback; replaces the handler set by the generated service.
template <class Service, class Request, class Response>
grpc::internal::MethodHandler* Bounded(
    const ServiceParts& parts, Service* service,
    grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*, const Request*,
                                                 Response*)) {
  using Handler = grpc::internal::CallbackUnaryHandler<Request, Response>;
  return new BoundedMethod(
      parts, *Request::descriptor(),
      std::make_unique<Handler>(
          [=](grpc::CallbackServerContext* context, const Request* request, Response* response) {
            return (service->*method)(context, request, response);
          }),
      [](const grpc::Status& status) {
        return std::make_unique<Handler>(
            [status](grpc::CallbackServerContext* context, const Request*, Response*) {
              grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
              reactor->Finish(status);
              return reactor;
            });
      });
}

template <class Service, class Request, class Response>
grpc::internal::MethodHandler* Bounded(const ServiceParts& parts, Service* service,
                                       grpc::ServerWriteReactor<Response>* (Service::*method)(
                                           grpc::CallbackServerContext*, const Request*)) {
  using Handler = grpc::internal::CallbackServerStreamingHandler<Request, Response>;
  return new BoundedMethod(
      parts, *Request::descriptor(),
      std::make_unique<Handler>([=](grpc::CallbackServerContext* context, const Request* request) {
        return (service->*method)(context, request);
      }),
      [](const grpc::Status& status) {
        return std::make_unique<Handler>([status](grpc::CallbackServerContext*, const Request*) {
          return new Refusal<Response>(status);
        });
      });
}

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_BOUNDED_METHOD_H_
