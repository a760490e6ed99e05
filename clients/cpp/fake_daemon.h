// A daemon for the client's tests: real gRPC, buffers in a map, and programs that return their
// inputs unchanged.
#ifndef KILN_CLIENTS_CPP_FAKE_DAEMON_H_
#define KILN_CLIENTS_CPP_FAKE_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kiln/v1/blob.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::client {

class FakeDaemon : public v1::SessionService::Service, public v1::BlobService::Service {
 public:
  static constexpr uint64_t kChunkBytes = 1000;
  static constexpr int kOperationsMax = 10;  // in a message

  // `socket`: the path of a Unix socket to listen on.
  explicit FakeDaemon(const std::string& socket);
  ~FakeDaemon() override;

  // After this many more operations have been received, breaks the stream instead of answering the
  // last of them.
  void BreakAfter(int operations);

  // Stops receiving until LetGo.
  void Hold();
  void LetGo();

  std::set<uint64_t> buffers();
  int64_t runs();
  std::vector<v1::ConnectRequest> operations();
  std::string description();
  bool closed();
  int streams();
  int messages();  // with operations
  size_t blobs();

  grpc::Status OpenSession(grpc::ServerContext*, const v1::OpenSessionRequest*,
                           v1::OpenSessionResponse*) override;
  grpc::Status CloseSession(grpc::ServerContext*, const v1::CloseSessionRequest*,
                            v1::CloseSessionResponse*) override;
  grpc::Status Connect(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ConnectResponse, v1::ConnectRequest>* stream) override;
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>*,
                      v1::UploadResponse*) override;
  grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest*,
                        grpc::ServerWriter<v1::DownloadResponse>*) override;

 private:
  // Executes the operations of a message.
  grpc::Status Take(v1::ConnectRequest& message, v1::ConnectResponse* response);
  // Executes one operation and returns its answer.
  v1::Result Execute(const v1::ConnectRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const v1::Run& run, v1::Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<uint64_t, std::string> buffers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> blobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ConnectRequest> operations_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, v1::Result> answers_ ABSL_GUARDED_BY(mutex_);  // not acknowledged
  std::string description_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  int break_after_ ABSL_GUARDED_BY(mutex_) = -1;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int messages_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_FAKE_DAEMON_H_
