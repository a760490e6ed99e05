// Makes bare gRPC calls to bench_echo_server, as the peers of the client's calls.
#ifndef KILN_TESTS_BENCH_ECHO_CLIENT_H_
#define KILN_TESTS_BENCH_ECHO_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kiln/v1/blob.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"
#include "tests/bench/measure.h"

namespace kiln::bench {

class EchoClient {
 public:
  // `message` is the message of a ping: a Run like the client's.
  EchoClient(const std::string& address, v1::ConnectRequest message);
  ~EchoClient();

  absl::Status Unary(int times);
  // Sends one message, waits for its answer, then sends the next.
  absl::Status PingPong(int times);
  // Sends all messages while another thread reads the answers.
  absl::Status Pipeline(int times);
  // Uploads `bytes` in chunks of 1 MiB.
  absl::Status Upload(int64_t bytes, int times);

 private:
  std::unique_ptr<v1::SessionService::Stub> sessions_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
  v1::ConnectRequest message_;
};

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_ECHO_CLIENT_H_
