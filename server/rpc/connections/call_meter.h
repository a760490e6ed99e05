// Measures the calls of clients, except the streams of sessions, which last as long as these.
#ifndef KILN_SERVER_RPC_CONNECTIONS_CALL_METER_H_
#define KILN_SERVER_RPC_CONNECTIONS_CALL_METER_H_

#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/metrics/metrics.h"
#include "server/rpc/access.h"
#include "server/trace/recorder.h"

namespace kiln::rpc {

// All outlive the server that uses the interceptors; the recorder may be null.
struct CallMeterParts {
  metrics::Metrics* metrics = nullptr;
  trace::Recorder* trace_recorder = nullptr;
  const Access* access = nullptr;
};

// Makes interceptors that count the time of each call, until its status is sent, and record its
// span. Calls that lose their client before are not counted.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallMeter(
    CallMeterParts parts, std::function<absl::Time()> now);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_CALL_METER_H_
