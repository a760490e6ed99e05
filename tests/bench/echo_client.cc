#include "tests/bench/echo_client.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace kiln::bench {
namespace {

absl::Status Broken() { return absl::UnavailableError("the echo server's stream broke"); }

}  // namespace

EchoClient::EchoClient(const std::string& address, v1::ConnectRequest message)
    : message_(std::move(message)) {
  auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  sessions_ = v1::SessionService::NewStub(channel);
  blobs_ = v1::BlobService::NewStub(channel);
  stream_ = sessions_->Connect(&context_);
}

EchoClient::~EchoClient() {
  stream_->WritesDone();
  stream_->Finish();
}

absl::Status EchoClient::Unary(int times) {
  v1::RenewSessionRequest request;
  request.set_session_id("0123456789abcdef0123456789abcdef");
  for (int i = 0; i < times; ++i) {
    grpc::ClientContext context;
    v1::RenewSessionResponse response;
    if (!sessions_->RenewSession(&context, request, &response).ok()) return Broken();
  }
  return absl::OkStatus();
}

absl::Status EchoClient::PingPong(int times) {
  v1::ConnectResponse response;
  for (int i = 0; i < times; ++i) {
    if (!stream_->Write(message_) || !stream_->Read(&response)) return Broken();
  }
  return absl::OkStatus();
}

absl::Status EchoClient::Pipeline(int times) {
  // A separate thread, since the server stops reading if its answers are not read.
  std::thread reader([this, times] {
    v1::ConnectResponse response;
    for (int i = 0; i < times && stream_->Read(&response); ++i) {
    }
  });
  bool written = true;
  for (int i = 0; i < times && written; ++i) written = stream_->Write(message_);
  reader.join();
  return written ? absl::OkStatus() : Broken();
}

absl::Status EchoClient::Upload(int64_t bytes, int times) {
  constexpr int64_t kChunk = 1 << 20;
  const std::string data(kChunk, 'x');
  for (int i = 0; i < times; ++i) {
    grpc::ClientContext context;
    v1::UploadResponse response;
    auto writer = blobs_->Upload(&context, &response);
    v1::UploadRequest request;
    for (int64_t left = bytes; left > 0; left -= kChunk) {
      request.set_data(data.data(), std::min(left, kChunk));
      if (!writer->Write(request)) return Broken();
    }
    writer->WritesDone();
    if (!writer->Finish().ok()) return Broken();
  }
  return absl::OkStatus();
}

}  // namespace kiln::bench
