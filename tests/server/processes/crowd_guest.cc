#include "tests/server/processes/crowd_guest.h"

#include <grpcpp/generic/generic_stub.h>

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/eventually.h"

namespace kiln::testing {

std::unique_ptr<Client> Guest::Enter(uint32_t lease_seconds) {
  std::unique_ptr<Client> client;
  Eventually([&] {
    client = std::make_unique<Client>(address_, login_, lease_seconds);
    return client->opened.error_code() != grpc::RESOURCE_EXHAUSTED;
  });
  Expect(client->opened.ok(), "a session", client->opened.error_message());
  return client;
}

void Guest::VisitOnce(int64_t operations) {
  const bool vanishes = OneIn(4);
  const std::unique_ptr<Client> entered =
      Enter(vanishes ? Crowd::kShortLeaseSeconds : Crowd::kLeaseSeconds);
  if (!wrong_.empty()) return;
  Client& client = *entered;
  ids_.Add(user_, client.session.session_id());
  Sender sender(address_, client);
  Model model;
  for (Exact& define : Model::First()) sender.Send(std::move(define));
  const uint64_t steps = 100 + random_() % 2000;
  for (uint64_t step = 0; step < steps && operations_ < operations; ++step) {
    sender.Send(model.Next(random_));
    ++operations_;
    if (sender.in_flight() > random_() % 128) sender.AnswerAllBut(random_() % 32);
    if (OneIn(300)) sender.Cut();
    if (!sender.wrong().empty()) break;
    if (vanishes) continue;
    if (OneIn(500)) AskTooMuch(client);
    if (OneIn(500)) ExceedQuotas();
    if (OneIn(500)) SendNonsense(client);
    // After 128 steps the first operation has been answered.
    if (step > 128 && OneIn(500)) SendWrongNumber(client);
    if (OneIn(500)) Pry(client);
    if (OneIn(1000)) CancelSome();
  }
  if (vanishes) {
    Expect(sender.wrong().empty() || sender.has_lost_session(), "an answer", sender.wrong());
    return;
  }
  for (Exact& read : model.Last()) sender.Send(std::move(read));
  sender.AnswerAllBut(0);
  Expect(sender.wrong().empty(), "an answer", sender.wrong());
  Close(client);
}

void Guest::Close(Client& client) {
  grpc::ClientContext context;
  v1::CloseSessionRequest request;
  request.set_session_id(client.session.session_id());
  v1::CloseSessionResponse response;
  const grpc::Status closed = client.sessions->CloseSession(&context, request, &response);
  Expect(closed.ok(), "closing", closed.error_message());
}

void Guest::AskTooMuch(Client& client) {
  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto writer = client.blobs->Upload(&context, &response);
  v1::UploadRequest request;
  request.mutable_header()->set_session_id(client.session.session_id());
  request.mutable_header()->set_blob("too much");
  request.mutable_header()->set_size_bytes(uint64_t{4} * Crowd::kHostBytes);
  request.set_data("x");
  writer->Write(request);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  Expect(status.error_code() == grpc::RESOURCE_EXHAUSTED, "an upload of too much",
         status.error_message());
}

void Guest::ExceedQuotas() {
  Client client(address_, login_, Crowd::kLeaseSeconds);
  if (client.opened.error_code() == grpc::RESOURCE_EXHAUSTED) return;
  const auto stream = client.Connect();
  v1::Graph graph = AddGraph(1);
  while (graph.nodes_size() <= static_cast<int>(Crowd::kGraphNodes))
    *graph.add_nodes() = v1::Node(graph.nodes(2));
  const std::vector<float> values(Crowd::kDeviceBytes / sizeof(float) + 1);
  for (const v1::ConnectRequest& request : {Define(1, graph), Write(1, values)}) {
    const v1::Result refused = stream->Call(request);
    Expect(refused.error().code() == grpc::RESOURCE_EXHAUSTED, "more than a quota",
           refused.error().message());
  }
  const auto value = static_cast<float>(random_() % 1000);
  stream->Call(Write(2, {value}));
  const v1::Result read = stream->Call(Read(2));
  Expect(Floats(read.data()) == std::vector<float>{value}, "what is within the quotas",
         read.ShortDebugString());
  Close(client);
}

void Guest::SendNonsense(Client& client) {
  static constexpr std::pair<const char*, grpc::StatusCode> kMethods[] = {
      {"/kiln.v1.SessionService/OpenSession", grpc::INVALID_ARGUMENT},
      {"/kiln.v1.BlobService/FindBlobs", grpc::INVALID_ARGUMENT},
      {"/kiln.v1.ProgramService/ExplainProgram", grpc::INVALID_ARGUMENT},
      {"/kiln.v1.AdminService/Drain", grpc::PERMISSION_DENIED},
      {"/kiln.v1.AdminService/Nothing", grpc::UNIMPLEMENTED}};
  const auto& [method, refusal] = kMethods[random_() % std::size(kMethods)];
  std::string bytes(random_() % 200, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  bytes.insert(0, "\x0a\xff");  // a field longer than the message
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  absl::Notification done;
  grpc::Status status;
  grpc::GenericStub(client.channel)
      .UnaryCall(&context, method, {}, &request, &response, [&](grpc::Status ended) {
        status = std::move(ended);
        done.Notify();
      });
  done.WaitForNotification();
  Expect(status.error_code() == refusal, method, status.error_message());
}

void Guest::SendWrongNumber(Client& client) {
  const auto stream = client.Connect();
  Expect(stream->attached(), "another stream", "not attached");
  if (OneIn(2)) {
    stream->Send(Release({1}), 1);
    return stream->Drop();
  }
  stream->Send(Release({1}), uint64_t{1} << 60);
  const grpc::Status status = stream->End();
  Expect(Reason(status) == "BAD_SEQUENCE", "a number from the future", status.error_message());
}

void Guest::Pry(Client& client) {
  const std::string id = ids_.OfAnother(user_);
  if (id.empty()) return;
  Stream stream(*client.sessions, id);
  Expect(!stream.attached(), "another's session", "attached");
  const grpc::Status status = stream.End();
  Expect(status.error_code() == grpc::NOT_FOUND, "another's session", status.error_message());
}

void Guest::CancelSome() {
  Client client(address_, login_, Crowd::kLeaseSeconds);
  if (client.opened.error_code() == grpc::RESOURCE_EXHAUSTED) return;
  const auto stream = client.Connect();
  DefineCounter(*stream);
  constexpr int kRuns = 50;
  std::vector<uint64_t> runs;
  for (int i = 0; i < kRuns; ++i)
    runs.push_back(stream->Send(RunProgram(1, {1, 2}, {100 + static_cast<uint64_t>(i)})));
  stream->Send(CancelFrom(runs[static_cast<size_t>(random_() % kRuns)]));
  int ran = 0;
  for (const uint64_t run : runs) {
    const v1::Result result = stream->Answer(run);
    ran += result.has_error() ? 0 : 1;
    Expect(!result.has_error() || result.error().code() == grpc::CANCELLED, "a cancelled run",
           result.error().message());
  }
  const v1::Result counted = stream->Call(Read(1));
  Expect(Floats(counted.data()) == std::vector<float>{static_cast<float>(ran)},
         "the sum of runs that were not cancelled", counted.ShortDebugString());
  Close(client);
}

}  // namespace kiln::testing
