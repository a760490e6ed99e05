#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kiln/v1/blob.grpc.pb.h"
#include "proto/check/check.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/services.h"
#include "server/rpc/services/upload_reader.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;

// Sends a value in chunks. Lives until OnDone, and until the session has answered WhenReadable.
class Download : public grpc::ServerWriteReactor<v1::DownloadResponse>,
                 public std::enable_shared_from_this<Download> {
 public:
  Download(const BlobServiceParts& parts, const CallbackServerContext& context)
      : parts_(parts), context_(context), call_(parts.open_calls) {}

  static Download* Start(const BlobServiceParts& parts, const CallbackServerContext& context,
                         const v1::DownloadRequest& request) {
    auto download = std::make_shared<Download>(parts, context);
    download->self_ = download;
    auto session = FindSession(parts, parts.access->Caller(context), request.session_id());
    if (!session.ok()) {
      download->End(session.status());
      return download.get();
    }
    // One chunk, and its copy in gRPC until the client has read it.
    auto charge = (*session)->host()->Reserve(memory::Use::kTransfers, 2 * kChunkBytes);
    if (!charge.ok()) {
      download->End(charge.status());
      return download.get();
    }
    download->charge_ = *std::move(charge);
    download->session_ = *session;
    (*session)->WhenReadable(
        request.handle(), request.after_sequence(),
        [download](absl::StatusOr<runtime::ValuePointer> value) {
          // This may be a device's thread, so copy on another one.
          download->parts_.copies->Schedule(
              [download, value = std::move(value)] { download->Begin(value); });
        });
    return download.get();
  }

  void OnWriteDone(bool ok) override {
    KILN_CHECK_LE(sent_, value_->bytes());
    if (!ok) return End(absl::CancelledError("the client disconnected"));
    if (sent_ >= value_->bytes()) return End(absl::OkStatus());
    // Checked each time, since the caller may be revoked.
    if (const auto caller = parts_.access->Caller(context_); !caller.ok())
      return End(caller.status());
    SendChunk();
  }
  void OnCancel() override {
    // A write under way fails by itself; without one, nothing else would end the call.
    {
      absl::MutexLock lock(&mutex_);
      if (writing_ || finished_) return;
      finished_ = true;
    }
    Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { self_.reset(); }

 private:
  void Begin(const absl::StatusOr<runtime::ValuePointer>& value) {
    if (!value.ok()) return End(value.status());
    KILN_CHECK(*value != nullptr && value_ == nullptr);
    value_ = *value;
    // Shrinks to the value's size, which was not known when the charge was made.
    charge_.ForceResize(2 * std::min(kChunkBytes, value_->bytes()));
    {
      absl::MutexLock lock(&mutex_);
      // The call was cancelled while it waited for the value.
      if (finished_) return;
      writing_ = true;
    }
    SendChunk();
  }

  void SendChunk() {
    const int64_t size = std::min(kChunkBytes, value_->bytes() - sent_);
    response_.set_size_bytes(sent_ == 0 ? static_cast<uint64_t>(value_->bytes()) : 0);
    std::string* data = response_.mutable_data();
    data->resize(static_cast<size_t>(size));
    auto sent = [self = shared_from_this(), size](const absl::Status& read) {
      self->WriteChunk(read, size);
    };
    if (buffers::IsAllHostMemory(*value_))
      return buffers::ReadWhole(*value_, sent_, absl::MakeSpan(*data), sent);
    buffers::ReadWhole(*value_, sent_, absl::MakeSpan(*data),
                       [sent = std::move(sent), &copies = *parts_.copies](absl::Status read) {
                         // This is a device's thread.
                         copies.Schedule([sent, read = std::move(read)] { sent(read); });
                       });
  }

  void WriteChunk(const absl::Status& read, int64_t size) {
    if (!read.ok()) return End(session_->devices().AfterFailure(*value_, read));
    KILN_CHECK_EQ(response_.data().size(), size);
    sent_ += size;
    parts_.metrics->Sent(size);
    StartWrite(&response_);
  }

  void End(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      if (finished_) return;
      finished_ = true;
    }
    Finish(kiln::rpc::End(parts_, status));
  }

  const BlobServiceParts& parts_;
  const CallbackServerContext& context_;  // valid until the call is done
  const OpenCalls::Call call_;
  std::shared_ptr<Download> self_;
  memory::Charge charge_;
  std::shared_ptr<sessions::Session> session_;
  runtime::ValuePointer value_;
  int64_t sent_ = 0;
  v1::DownloadResponse response_;
  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// Upload receives raw bytes, see messages/upload_message.h.
using BlobMethods = v1::BlobService::WithCallbackMethod_FindBlobs<
    v1::BlobService::WithCallbackMethod_Download<v1::BlobService::WithCallbackMethod_DeleteBlobs<
        v1::BlobService::WithRawCallbackMethod_Upload<v1::BlobService::Service>>>>;

// The most queries of one user that wait for uploads to be verified.
constexpr size_t kWaitingMax = 64;

class BlobService final : public BlobMethods {
 public:
  explicit BlobService(const BlobServiceParts& parts) : parts_(parts) {
    const auto bound = [this](const char* name, auto method) {
      MarkMethodCallback(MethodIndex(v1::BlobService::service_full_name(), name),
                         Bounded(parts_, this, method));
    };
    bound("FindBlobs", &BlobService::FindBlobs);
    bound("Download", &BlobService::Download);
    bound("DeleteBlobs", &BlobService::DeleteBlobs);
  }

  grpc::ServerUnaryReactor* FindBlobs(CallbackServerContext* context,
                                      const v1::FindBlobsRequest* request,
                                      v1::FindBlobsResponse* response) override {
    auto session = FindSession(parts_, parts_.access->Caller(*context), request->session_id());
    if (!session.ok()) return Reply(parts_, context, session.status());
    // The names as received and as looked up, and the response until it has been read.
    const auto bytes = static_cast<int64_t>(request->ByteSizeLong());
    memory::Charge charge = (*session)->host()->Open(memory::Use::kTransfers);
    if (bytes > kSmallAnswer)
      if (absl::Status status = charge.Resize(4 * bytes); !status.ok())
        return Reply(parts_, context, (*session)->user().Explain(status));
    auto* const reactor = new ChargedReactor(parts_, std::move(charge));
    const auto answer = [this, reactor, request, response, session = *session] {
      reactor->Finish(End(parts_, Hold(*session, *request, response)));
    };
    if (parts_.blobs->AreVerified((*session)->user().name, NamesOf(*request))) {
      answer();
    } else if (!parts_.digests->TrySchedule((*session)->host()->user(), kWaitingMax,
                                            [this, request, session = *session, answer] {
                                              parts_.blobs->Verify(session->user().name,
                                                                   NamesOf(*request));
                                              answer();
                                            })) {
      answer();  // unverified blobs count as missing, and are sent again
    }
    return reactor;
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* Upload(CallbackServerContext* context,
                                                    grpc::ByteBuffer* response) override {
    return StartUpload(parts_, *context, response);
  }

  grpc::ServerWriteReactor<v1::DownloadResponse>* Download(
      CallbackServerContext* context, const v1::DownloadRequest* request) override {
    return rpc::Download::Start(parts_, *context, *request);
  }

  grpc::ServerUnaryReactor* DeleteBlobs(CallbackServerContext* context,
                                        const v1::DeleteBlobsRequest* request,
                                        v1::DeleteBlobsResponse* response) override {
    auto session = FindSession(parts_, parts_.access->Caller(*context), request->session_id());
    if (session.ok()) {
      const std::vector<std::string> names(request->blobs().begin(), request->blobs().end());
      parts_.blobs->Delete((*session)->identity().number, (*session)->user().name, names);
      (*session)->DeletedBlobs(names);
    }
    return Reply(parts_, context, session.status());
  }

 private:
  static std::vector<std::string> NamesOf(const v1::FindBlobsRequest& request) {
    return {request.blobs().begin(), request.blobs().end()};
  }

  absl::Status Hold(sessions::Session& session, const v1::FindBlobsRequest& request,
                    v1::FindBlobsResponse* response) {
    const auto number = session.identity().number;
    response->set_knows_sums(true);
    for (std::string& name : parts_.blobs->Hold(number, session.user().name, NamesOf(request),
                                                request.after_sequence())) {
      session.HoldsBlob(name);
      response->add_found(std::move(name));
    }
    // If the session was closed meanwhile, it no longer holds blobs.
    const absl::Status status =
        parts_.registry->Find(session.user().name, request.session_id()).status();
    if (!session.CheckOpen().ok()) parts_.blobs->CloseSession(number);
    return status;
  }

  const BlobServiceParts& parts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBlobService(const BlobServiceParts& parts) {
  return std::make_unique<BlobService>(parts);
}

}  // namespace kiln::rpc
