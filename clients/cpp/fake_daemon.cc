#include "clients/cpp/fake_daemon.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace kiln::client {
namespace {

void Fail(grpc::StatusCode code, const std::string& message, const std::string& reason,
          v1::Result& result) {
  result.mutable_error()->set_code(code);
  result.mutable_error()->set_message(message);
  v1::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("kiln");
  auto* detail = result.mutable_error()->add_details();
  detail->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  detail->set_value(info.SerializeAsString());
}

}  // namespace

FakeDaemon::FakeDaemon(const std::string& socket) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<v1::SessionService::Service*>(this));
  builder.RegisterService(static_cast<v1::BlobService::Service*>(this));
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void FakeDaemon::BreakAfter(int operations) {
  absl::MutexLock lock(&mutex_);
  break_after_ = operations;
}
std::set<uint64_t> FakeDaemon::buffers() {
  absl::MutexLock lock(&mutex_);
  std::set<uint64_t> handles;
  for (const auto& [handle, bytes] : buffers_) handles.insert(handle);
  return handles;
}
int64_t FakeDaemon::runs() {
  absl::MutexLock lock(&mutex_);
  return runs_;
}
std::vector<v1::ConnectRequest> FakeDaemon::operations() {
  absl::MutexLock lock(&mutex_);
  return operations_;
}
std::string FakeDaemon::description() {
  absl::MutexLock lock(&mutex_);
  return description_;
}
bool FakeDaemon::closed() {
  absl::MutexLock lock(&mutex_);
  return closed_;
}
void FakeDaemon::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}
void FakeDaemon::LetGo() {
  absl::MutexLock lock(&mutex_);
  held_ = false;
}
int FakeDaemon::messages() {
  absl::MutexLock lock(&mutex_);
  return messages_;
}
int FakeDaemon::streams() {
  absl::MutexLock lock(&mutex_);
  return streams_;
}
size_t FakeDaemon::blobs() {
  absl::MutexLock lock(&mutex_);
  return blobs_.size();
}

grpc::Status FakeDaemon::OpenSession(grpc::ServerContext*, const v1::OpenSessionRequest* request,
                                     v1::OpenSessionResponse* response) {
  absl::MutexLock lock(&mutex_);
  description_ = request->client().description();
  response->set_session_id("secret");
  response->set_name("s1");
  response->set_device(request->device().empty() ? "cpu:0" : request->device());
  response->set_lease_seconds(request->lease_seconds() == 0 ? 3600 : request->lease_seconds());
  response->set_chunk_bytes(kChunkBytes);
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::CloseSession(grpc::ServerContext*, const v1::CloseSessionRequest* request,
                                      v1::CloseSessionResponse*) {
  absl::MutexLock lock(&mutex_);
  if (request->session_id() != "secret") return {grpc::StatusCode::NOT_FOUND, "no such session"};
  closed_ = true;
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Connect(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<v1::ConnectResponse, v1::ConnectRequest>* stream) {
  v1::ConnectRequest request;
  if (!stream->Read(&request) || request.attach().session_id() != "secret") {
    return {grpc::StatusCode::NOT_FOUND, "no such session"};
  }
  // Collected under the lock and written without it, since a write may block.
  std::vector<v1::ConnectResponse> greeting(1);
  {
    absl::MutexLock lock(&mutex_);
    ++streams_;
    greeting[0].mutable_attached()->set_last_sequence(last_sequence_);
    greeting[0].mutable_attached()->set_most_operations(kOperationsMax);
    for (const auto& [sequence, answer] : answers_)
      *greeting.emplace_back().mutable_result() = answer;
  }
  for (const auto& response : greeting) stream->Write(response);
  while (stream->Read(&request)) {
    v1::ConnectResponse response;
    if (grpc::Status status = Take(request, &response); !status.ok()) return status;
    if (response.has_result()) stream->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Take(v1::ConnectRequest& message, v1::ConnectResponse* response) {
  std::vector<v1::ConnectRequest> requests(message.more().begin(), message.more().end());
  message.clear_more();
  requests.insert(requests.begin(), message);
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](bool* held) { return !*held; }, &held_));
  ++messages_;
  for (const v1::ConnectRequest& request : requests) {
    answers_.erase(answers_.begin(), answers_.upper_bound(request.acknowledged()));
    if (request.sequence() <= last_sequence_) continue;
    if (request.sequence() != last_sequence_ + 1)
      return {grpc::StatusCode::INVALID_ARGUMENT, "a gap in the sequence"};
    last_sequence_ = request.sequence();
    operations_.push_back(request);
    v1::Result* result = response->has_result() ? response->add_more() : response->mutable_result();
    *result = answers_[request.sequence()] = Execute(request);
    // The operation has taken effect but its answer is lost: the case that a client must survive.
    if (break_after_ > 0 && --break_after_ == 0)
      return {grpc::StatusCode::UNAVAILABLE, "the network is gone"};
  }
  return grpc::Status::OK;
}

v1::Result FakeDaemon::Execute(const v1::ConnectRequest& request) {
  v1::Result result;
  result.set_sequence(request.sequence());
  switch (request.operation_case()) {
    case v1::ConnectRequest::kWrite: {
      const v1::Write& write = request.write();
      buffers_[write.handle()] =
          write.source_case() == v1::Write::kBlob ? blobs_[write.blob()] : write.data();
      break;
    }
    case v1::ConnectRequest::kDefineProgram:
      if (request.define_program().name() == "wrong") {
        Fail(grpc::StatusCode::INVALID_ARGUMENT, "node 2 (add): the shapes differ",
             "SHAPE_MISMATCH", result);
      } else {
        result.set_digest(absl::StrCat("digest-of-", request.define_program().name()));
      }
      break;
    case v1::ConnectRequest::kRun:
      Run(request.run(), result);
      break;
    case v1::ConnectRequest::kRead:
      result.set_data(buffers_[request.read().handle()]);
      break;
    case v1::ConnectRequest::kRelease:
      for (uint64_t handle : request.release().handles()) buffers_.erase(handle);
      for (const std::string& blob : request.release().blobs()) blobs_.erase(blob);
      break;
    default:
      break;
  }
  return result;
}

void FakeDaemon::Run(const v1::Run& run, v1::Result& result) {
  ++runs_;
  for (int i = 0; i < run.outputs_size(); ++i) buffers_[run.outputs(i)] = buffers_[run.inputs(i)];
  if (run.report_time()) result.set_device_seconds(0.25);
}

grpc::Status FakeDaemon::Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>* reader,
                                v1::UploadResponse* response) {
  v1::UploadRequest request;
  v1::UploadHeader header;
  std::string bytes;
  while (reader->Read(&request)) {
    if (request.has_header()) header = request.header();
    if (request.data().size() > kChunkBytes)
      return {grpc::StatusCode::INVALID_ARGUMENT, "the chunk is too large"};
    bytes += request.data();
  }
  if (bytes.size() != header.size_bytes())
    return {grpc::StatusCode::DATA_LOSS, "the size is not what was announced"};
  response->set_size_bytes(bytes.size());
  absl::MutexLock lock(&mutex_);
  blobs_[header.blob()] = std::move(bytes);
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Download(grpc::ServerContext*, const v1::DownloadRequest* request,
                                  grpc::ServerWriter<v1::DownloadResponse>* writer) {
  std::string bytes;
  {
    absl::MutexLock lock(&mutex_);
    auto received = [this, request]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return last_sequence_ >= request->after_sequence();
    };
    mutex_.Await(absl::Condition(&received));
    auto found = buffers_.find(request->handle());
    if (found == buffers_.end()) {
      return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no handle ", request->handle())};
    }
    bytes = found->second;
  }
  v1::DownloadResponse response;
  response.set_size_bytes(bytes.size());
  // An empty buffer is sent as one chunk too, which gives its size.
  for (size_t sent = 0; sent == 0 || sent < bytes.size(); sent += kChunkBytes) {
    response.set_data(bytes.substr(sent, kChunkBytes));
    writer->Write(response);
    response.clear_size_bytes();
  }
  return grpc::Status::OK;
}

}  // namespace kiln::client
