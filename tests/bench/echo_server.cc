// The minimal gRPC server with kiln.v1's messages: the peer of kilnd's calls.
//
//   bench_echo_server ADDRESS      runs until it is killed; prints "ready" when it listens
#include <grpcpp/grpcpp.h>

#include <cstdio>

#include "kiln/v1/blob.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::bench {
namespace {

class Sessions : public v1::SessionService::Service {
  grpc::Status RenewSession(grpc::ServerContext*, const v1::RenewSessionRequest*,
                            v1::RenewSessionResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Connect(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ConnectResponse, v1::ConnectRequest>* stream) override {
    v1::ConnectRequest request;
    v1::ConnectResponse response;
    while (stream->Read(&request)) {
      response.mutable_result()->set_sequence(request.sequence());
      if (!stream->Write(response)) break;
    }
    return grpc::Status::OK;
  }
};

class Blobs : public v1::BlobService::Service {
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse*) override {
    v1::UploadRequest request;
    while (reader->Read(&request)) {
    }
    return grpc::Status::OK;
  }
};

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_echo_server ADDRESS\n");
    return 2;
  }
  kiln::bench::Sessions sessions;
  kiln::bench::Blobs blobs;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&sessions);
  builder.RegisterService(&blobs);
  auto server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "bench_echo_server: cannot listen on %s\n", argv[1]);
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  server->Wait();
  return 0;
}
