#include "server/rpc/services/upload_reader.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "compiler/ir/quoted.h"
#include "kiln/v1/blob.pb.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/message.h"
#include "server/rpc/messages/upload_message.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;

// Each read is started by the end of the previous one, so members that the mutex does not guard
// need no lock. Lives until OnDone.
class UploadReader : public grpc::ServerReadReactor<grpc::ByteBuffer>, public OpenUploads::Upload {
 public:
  UploadReader(const BlobServiceParts& parts, const CallbackServerContext& context,
               grpc::ByteBuffer* response)
      : parts_(parts), context_(context), call_(parts.open_calls), response_bytes_(response) {}

  static UploadReader* Start(const BlobServiceParts& parts, const CallbackServerContext& context,
                             grpc::ByteBuffer* response) {
    const auto upload = std::make_shared<UploadReader>(parts, context, response);
    upload->self_ = upload;
    parts.open_uploads->Add(upload);
    upload->ReadOn();
    return upload.get();
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      KILN_CHECK(waits_);
      waits_ = false;
      if (finished_) return;
    }
    const absl::Status status = ok ? Take() : Complete();
    if (ok && status.ok()) return ReadOn();
    {
      absl::MutexLock lock(&mutex_);
      finished_ = true;
    }
    Serialize(response_, response_bytes_);
    Answer(status);
  }
  void OnCancel() override {
    // A read under way fails by itself; without one, nothing else would end the call.
    {
      absl::MutexLock lock(&mutex_);
      if (finished_ || !is_held_up_) return;
      finished_ = true;
    }
    Finish(grpc::Status::CANCELLED);
  }
  void EndIfIdle(absl::Time since) override {
    if (EndIfHeldUpForNothing()) return;
    {
      absl::MutexLock lock(&mutex_);
      if (finished_ || !waits_ || last_ > since) return;
      finished_ = true;
    }
    Answer(errors::WithReason(
        absl::UnavailableError(
            "the upload was closed because no data arrived for a long time; start it again"),
        "UPLOAD_IDLE"));
  }
  void OnDone() override { self_.reset(); }

 private:
  void ReadOn() {
    if (pass_ != nullptr) {
      {
        absl::MutexLock lock(&mutex_);
        KILN_CHECK(!waits_ && !is_held_up_);
        is_held_up_ = true;
      }
      // Weak, so that nothing happens if this call ends before.
      const bool goes_on = pass_->MayGoOn([weak = std::weak_ptr(self_)] {
        if (const auto self = weak.lock()) self->Read();
      });
      if (!goes_on) return;
    }
    Read();
  }

  void Read() {
    {
      absl::MutexLock lock(&mutex_);
      if (finished_) return;
      KILN_CHECK(!waits_);
      is_held_up_ = false;
      waits_ = true;
      last_ = parts_.clock.steady();
    }
    StartRead(&request_bytes_);
  }

  // Ends the call if it is held up and its session was closed, or the caller's access was revoked.
  bool EndIfHeldUpForNothing() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (!is_held_up_) return false;
    }
    const absl::Status status = session_->CheckOpen();
    {
      absl::MutexLock lock(&mutex_);
      if (status.ok() || finished_ || !is_held_up_) return false;
      finished_ = true;
    }
    Answer(status);
    return true;
  }

  // Requires: `finished_` is set, so that no read uses the upload any more. Releases its resources
  // before the client gets the answer, since the client may rely on that for the next upload.
  void Answer(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      KILN_CHECK(finished_);
    }
    upload_.reset();
    share_ = quota::Share();
    Finish(End(parts_, status));
  }

  absl::Status Begin(const v1::UploadHeader& header) {
    if (absl::Status status = Enter(header.session_id()); !status.ok()) return status;
    pass_ = session_->upload_bytes_of_user().Enter();
    auto upload = parts_.blobs->Begin(session_->identity().number, session_->user().name,
                                      header.blob(), header.size_bytes(), *session_->host());
    if (!upload.ok()) return session_->user().Explain(upload.status());
    upload_ = *std::move(upload);
    response_.set_blob(header.blob());
    response_.set_size_bytes(header.size_bytes());
    return absl::OkStatus();
  }

  // All blobs must be of the first one's session.
  absl::Status Enter(const std::string& session_id) {
    if (session_ != nullptr) {
      if (session_id == session_id_) return absl::OkStatus();
      return errors::WithReason(
          absl::InvalidArgumentError("all blobs of an upload must belong to one session"),
          "OTHER_SESSION");
    }
    auto session = FindSession(parts_, parts_.access->Caller(context_), session_id);
    if (!session.ok()) return session.status();
    auto share = (*session)->uploads_of_user().Reserve(1);
    if (!share.ok()) return share.status();
    session_ = *std::move(session);
    session_id_ = session_id;
    share_ = *std::move(share);
    return absl::OkStatus();
  }

  absl::Status BeginNext(const v1::UploadHeader& header) {
    if (upload_ != nullptr && !upload_->is_complete()) {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat(
              "the header of blob ", Quoted(header.blob()), " was sent before all bytes of blob ",
              Quoted(response_.blob()), "; complete that blob first")),
          "EARLY_HEADER", {{"blob", response_.blob()}, {"next", header.blob()}});
    }
    return Begin(header);
  }

  static absl::Status NoHeader() {
    return errors::WithReason(
        absl::InvalidArgumentError("the first message of an upload must carry the header"),
        "NO_HEADER");
  }

  absl::Status Take() {
    absl::Status status = ReadUpload(request_bytes_, &request_);
    if (status.ok()) status = TakeRequest();
    // This contains the message's data.
    request_bytes_.Clear();
    return status;
  }

  absl::Status TakeRequest() {
    if (request_.header) {
      if (absl::Status status = BeginNext(*request_.header); !status.ok()) return status;
    }
    if (upload_ == nullptr) return NoHeader();
    // The session may have been closed meanwhile, for example because the daemon stops, and the
    // caller may have been revoked.
    if (const auto caller = parts_.access->Caller(context_); !caller.ok()) return caller.status();
    if (absl::Status status = session_->CheckOpen(); !status.ok()) return status;
    session_->RenewLease();
    parts_.host_work->Touch();
    int64_t bytes = 0;
    for (const absl::string_view piece : request_.data) bytes += static_cast<int64_t>(piece.size());
    parts_.metrics->Received(bytes);
    if (pass_ != nullptr) pass_->Add(bytes);
    if (absl::Status status = upload_->Append(request_.data); !status.ok())
      return session_->user().Explain(status);
    return pass_ != nullptr && upload_->is_complete() ? Store() : absl::OkStatus();
  }

  absl::Status Store() {
    KILN_CHECK(upload_ != nullptr && upload_->is_complete());
    pass_.reset();
    if (absl::Status status = upload_->Finish(); !status.ok()) return status;
    session_->HoldsBlob(response_.blob());
    // If the session was closed meanwhile, it will not free the blob.
    const absl::Status status = session_->CheckOpen();
    if (!status.ok()) parts_.blobs->CloseSession(session_->identity().number);
    return status;
  }

  // The client has sent everything.
  absl::Status Complete() {
    if (upload_ == nullptr) return NoHeader();
    return upload_->is_complete() ? session_->CheckOpen() : upload_->Finish();
  }

  const BlobServiceParts& parts_;
  const CallbackServerContext& context_;
  const OpenCalls::Call call_;
  grpc::ByteBuffer request_bytes_;
  UploadMessage request_;
  v1::UploadResponse response_;
  grpc::ByteBuffer* const response_bytes_;
  std::shared_ptr<sessions::Session> session_;
  std::string session_id_;
  quota::Share share_;
  std::unique_ptr<quota::Gate::Pass> pass_;             // of a blob that is not stored yet
  std::unique_ptr<buffers::BlobStore::Upload> upload_;  // of the last blob
  std::shared_ptr<UploadReader> self_;
  absl::Mutex mutex_;
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;       // for the next message
  bool is_held_up_ ABSL_GUARDED_BY(mutex_) = false;  // not read: the user's other uploads are large
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time last_ ABSL_GUARDED_BY(mutex_);  // when waits_ was last set
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* StartUpload(const BlobServiceParts& parts,
                                                       const CallbackServerContext& context,
                                                       grpc::ByteBuffer* response) {
  return UploadReader::Start(parts, context, response);
}

}  // namespace kiln::rpc
