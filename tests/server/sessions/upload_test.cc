// Many blobs in one upload.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// One call of Upload.
class Call {
 public:
  explicit Call(Client& client)
      : session_id_(client.session.session_id()),
        writer_(client.blobs->Upload(&context_, &response)) {}

  Call& Header(const std::string& blob, uint64_t size, const std::string& data = "") {
    v1::UploadRequest request;
    request.mutable_header()->set_session_id(session_id_);
    request.mutable_header()->set_blob(blob);
    request.mutable_header()->set_size_bytes(size);
    request.set_data(data);
    writer_->Write(request);
    return *this;
  }
  Call& Data(const std::string& data) {
    v1::UploadRequest request;
    request.set_data(data);
    writer_->Write(request);
    return *this;
  }
  grpc::Status End() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  void Cut() {
    context_.TryCancel();
    writer_->Finish();
  }
  void OfSession(const std::string& id) { session_id_ = id; }

  v1::UploadResponse response;

 private:
  std::string session_id_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
};

bool HasBlobBytes(TestDaemon& daemon, int64_t bytes) {
  return Eventually([&] {
    return absl::StrContains(daemon.daemon().MetricsText(),
                             absl::StrCat("kiln_blob_bytes ", bytes, "\n"));
  });
}

// Returns the blob that the error is about.
std::string Blob(const grpc::Status& ended) {
  v1::Status status;
  status.ParseFromString(ended.error_details());
  for (const auto& detail : status.details()) {
    v1::ErrorInfo info;
    if (detail.type_url() == "type.googleapis.com/google.rpc.ErrorInfo" &&
        info.ParseFromString(detail.value()) && info.metadata().contains("blob"))
      return info.metadata().at("blob");
  }
  return "";
}

TEST(Upload, CarriesManyBlobs) {
  TestDaemon daemon;
  Client client(daemon.address());
  Call call(client);
  call.Header("a", 4, "aa").Data("aa").Header("empty", 0).Header("b", 8).Data("bbbb").Data("");
  call.Data("bbbb").Header(kFirstBlob, 4).Data("1st!").Data("");
  const grpc::Status ended = call.End();
  ASSERT_TRUE(ended.ok()) << ended.error_message();
  EXPECT_EQ(call.response.blob(), kFirstBlob);
  EXPECT_EQ(call.response.size_bytes(), 4);
  const auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(WritePieces(1, {"a", "empty", "b", kFirstBlob}, 4)).has_error());
  EXPECT_EQ(stream->Call(Read(1)).data(), "aaaabbbbbbbb1st!");
}

// Each blob is complete with its last byte, so that a cut costs only the unfinished one.
TEST(Upload, ACutInTheThirdOfFiveLosesThatAlone) {
  TestDaemon daemon;
  Client client(daemon.address());
  Call call(client);
  call.Header("1", 4, "1111").Header("2", 4, "2222").Header("3", 1000, "333");
  ASSERT_TRUE(HasBlobBytes(daemon, 11));
  call.Cut();
  ASSERT_TRUE(HasBlobBytes(daemon, 8)) << "what had come of the third is given back";
  Call again(client);
  ASSERT_TRUE(again.Header("3", 4, "3333").Header("4", 4, "4444").Header("5", 0).End().ok());
  const auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(WritePieces(1, {"1", "2", "3", "4", "5"}, 4)).has_error());
  EXPECT_EQ(stream->Call(Read(1)).data(), "1111222233334444");
}

TEST(Upload, AHeaderThatIsTooEarlyEndsIt) {
  TestDaemon daemon;
  Client client(daemon.address());
  Call call(client);
  const grpc::Status ended = call.Header("a", 2, "aa").Header("b", 3, "bb").Header("c", 1).End();
  EXPECT_EQ(ended.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(ended), "EARLY_HEADER");
  EXPECT_EQ(Blob(ended), "b");
  EXPECT_THAT(ended.error_message(),
              HasSubstr("the header of blob \"c\" was sent before all bytes of blob \"b\""));
  EXPECT_TRUE(HasBlobBytes(daemon, 2));
}

TEST(Upload, ErrorsNameTheBlob) {
  TestDaemonOptions options;
  options.blob_limit_bytes = 10;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  const auto expect = [](const grpc::Status& status, const std::string& reason,
                         const std::string& text) {
    EXPECT_EQ(Reason(status), reason) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
    EXPECT_EQ(Blob(status), "b");
  };
  expect(Call(client).Header("a", 2, "aa").Header("b", 3, "bbbb").End(), "BLOB_SIZE",
         "blob \"b\" was announced with 3 bytes, but more were sent");
  expect(Call(client).Header("a", 2, "aa").Header("b", 2, "bb").Data("b").End(), "BLOB_SIZE",
         "blob \"b\" was announced with 2 bytes, but more were sent");
  expect(Call(client).Header("a", 2, "aa").Header("b", 3, "bb").End(), "BLOB_SIZE",
         "blob \"b\" was announced with 3 bytes, but 2 were sent");
  expect(Call(client).Header("a", 6, "aaaaaa").Header("b", 6, "bbbbbb").End(), "BLOB_LIMIT",
         "6 bytes of blob \"b\" do not fit");
  EXPECT_EQ(Reason(Call(client).Data("a").End()), "NO_HEADER");
  EXPECT_EQ(Reason(Call(client).End()), "NO_HEADER");
}

TEST(Upload, AllItsBlobsAreOfOneSession) {
  TestDaemon daemon;
  Client client(daemon.address()), other(daemon.address());
  Call call(client);
  call.Header("a", 2, "aa").OfSession(other.session.session_id());
  EXPECT_EQ(Reason(call.Header("b", 2, "bb").End()), "OTHER_SESSION");
  EXPECT_TRUE(HasBlobBytes(daemon, 2));
}

TEST(Upload, EndsWithItsSessionBetweenTwoBlobs) {
  TestDaemon daemon;
  Client client(daemon.address());
  Call call(client);
  call.Header("a", 2, "aa");
  ASSERT_TRUE(HasBlobBytes(daemon, 2));
  grpc::ClientContext context;
  v1::CloseSessionRequest close;
  close.set_session_id(client.session.session_id());
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(client.sessions->CloseSession(&context, close, &closed).ok());
  ASSERT_TRUE(HasBlobBytes(daemon, 0));
  EXPECT_EQ(call.Header("b", 2, "bb").End().error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(HasBlobBytes(daemon, 0));
}

}  // namespace
}  // namespace kiln::testing
