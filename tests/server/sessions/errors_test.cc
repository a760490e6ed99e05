// The errors for a client's mistakes. The client can continue after each of them.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Mistake {
  const char* name;
  v1::ConnectRequest request;
  grpc::StatusCode code;
  const char* message;
  const char* reason;
};

v1::ConnectRequest Changed(v1::ConnectRequest request,
                           const std::function<void(v1::ConnectRequest*)>& change) {
  change(&request);
  return request;
}

// The mistakes, for a session with handles 1 (two floats), 2 (three floats), 9 (released) and
// program 1 = AddGraph(2).
std::vector<Mistake> Mistakes() {
  v1::Graph unknown_op = AddGraph(2);
  unknown_op.mutable_nodes(2)->set_op("frobnicate");
  v1::Graph cycle = AddGraph(2);
  cycle.mutable_nodes(2)->set_operands(0, 2);
  v1::Graph newer = AddGraph(2);
  newer.set_op_set_version(99);
  return {
      {"unknown handle", RunProgram(1, {1, 77}, {10}), grpc::NOT_FOUND, "handle 77 is unknown",
       "UNKNOWN_HANDLE"},
      {"released handle", RunProgram(1, {1, 9}, {11}), grpc::NOT_FOUND,
       "handle 9 has been released", "UNKNOWN_HANDLE"},
      {"unknown program", RunProgram(5, {1, 1}, {12}), grpc::NOT_FOUND, "program 5 is unknown",
       "UNKNOWN_PROGRAM"},
      {"too few inputs", RunProgram(1, {1}, {13}), grpc::INVALID_ARGUMENT,
       "has 2 inputs, but the run gives 1", "WRONG_INPUT_COUNT"},
      {"too many outputs", RunProgram(1, {1, 1}, {14, 15}), grpc::INVALID_ARGUMENT,
       "has 1 outputs, but the run names 2", "WRONG_OUTPUT_COUNT"},
      {"wrong shape", RunProgram(1, {1, 2}, {16}), grpc::INVALID_ARGUMENT,
       "input 1 must be float32[2], but the buffer given is float32[3]", "INPUT_MISMATCH"},
      {"output handle used before", RunProgram(1, {1, 1}, {2}), grpc::INVALID_ARGUMENT,
       "handle 2 has been used before", "HANDLE_REUSED"},
      {"output handle 0", RunProgram(1, {1, 1}, {0}), grpc::INVALID_ARGUMENT,
       "handle 0 is not allowed", "HANDLE_REUSED"},
      {"unbound name",
       Changed(RunProgram(1, {1, 1}, {17}),
               [](auto* r) { (*r->mutable_run()->mutable_bindings())["n"] = 1; }),
       grpc::INVALID_ARGUMENT, "the graph has no such variable", "BAD_BINDING"},
      {"write over a handle", Write(1, {1}), grpc::INVALID_ARGUMENT,
       "handle 1 has been used before", "HANDLE_REUSED"},
      {"write of wrong size",
       Changed(Write(20, {1, 2}), [](auto* r) { r->mutable_write()->set_shape(0, 3); }),
       grpc::INVALID_ARGUMENT, "float32[3] takes 12 bytes, but 8 were sent", "SIZE_MISMATCH"},
      {"write without dtype",
       Changed(Write(21, {1}), [](auto* r) { r->mutable_write()->clear_dtype(); }),
       grpc::INVALID_ARGUMENT, "dtype is missing or unknown", "BAD_TENSOR_TYPE"},
      {"write of unknown dtype",
       Changed(Write(22, {1}),
               [](auto* r) { r->mutable_write()->set_dtype(static_cast<v1::DType>(99)); }),
       grpc::INVALID_ARGUMENT, "dtype is missing or unknown", "BAD_TENSOR_TYPE"},
      {"write of negative shape",
       Changed(Write(23, {1}), [](auto* r) { r->mutable_write()->set_shape(0, -1); }),
       grpc::INVALID_ARGUMENT, "is negative", "BAD_TENSOR_TYPE"},
      {"write of huge shape",
       Changed(Write(24, {1}),
               [](auto* r) {
                 r->mutable_write()->set_shape(0, int64_t{1} << 40);
                 r->mutable_write()->add_shape(int64_t{1} << 40);
               }),
       grpc::INVALID_ARGUMENT, "2^63 bytes or more", "BAD_TENSOR_TYPE"},
      {"write of unknown blob", WriteBlob(25, "nothing", 1), grpc::NOT_FOUND,
       "blob \"nothing\" has not been uploaded", "UNKNOWN_BLOB"},
      {"read of unknown handle", Read(78), grpc::NOT_FOUND, "handle 78 is unknown",
       "UNKNOWN_HANDLE"},
      {"release of unknown handle", Release({79}), grpc::NOT_FOUND, "handle 79 is unknown",
       "UNKNOWN_HANDLE"},
      {"program id used before", Define(1, AddGraph(2)), grpc::INVALID_ARGUMENT,
       "program id 1 has been used before", "PROGRAM_REUSED"},
      {"program id 0", Define(0, AddGraph(2)), grpc::INVALID_ARGUMENT,
       "program id 0 is not allowed", "PROGRAM_REUSED"},
      {"unknown op", Define(30, unknown_op), grpc::INVALID_ARGUMENT, "frobnicate", "UNKNOWN_OP"},
      {"cycle", Define(31, cycle), grpc::INVALID_ARGUMENT, "node 2", nullptr},
      {"newer op set", Define(32, newer), grpc::FAILED_PRECONDITION, "99", "VERSION"},
      {"larger than the device", Define(33, AddGraph(1 << 20)), grpc::RESOURCE_EXHAUSTED,
       "need 4194304 bytes, but cpu:0 has 1048576", "OUT_OF_MEMORY"},
      {"no operation", v1::ConnectRequest(), grpc::UNIMPLEMENTED,
       "no operation that this daemon knows", "UNKNOWN_OPERATION"},
  };
}

TEST(Errors, EachMistakeIsNamedAndTheSessionLivesOn) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, AddGraph(2)));
  stream->Call(Write(1, {1, 2}));
  stream->Call(Write(2, {1, 2, 3}));
  stream->Call(Write(9, {1, 2}));
  stream->Call(Release({9}));
  uint64_t handle = 1000;
  for (const Mistake& mistake : Mistakes()) {
    SCOPED_TRACE(mistake.name);
    const v1::Result result = stream->Call(mistake.request);
    EXPECT_EQ(result.error().code(), mistake.code) << result.error().message();
    EXPECT_THAT(result.error().message(), HasSubstr(mistake.message));
    if (mistake.reason != nullptr) {
      EXPECT_EQ(Reason(result.error()), mistake.reason);
    }
    stream->Send(RunProgram(1, {1, 1}, {++handle}));
    EXPECT_THAT(Floats(stream->Call(Read(handle)).data()), ElementsAre(2, 4));
  }
}

TEST(Errors, LongNamesAreShortened) {
  TestDaemon daemon;
  const std::string name(1 << 20, 'n');
  Client client(daemon.address());
  auto stream = client.Connect();
  v1::Graph op = AddGraph(2);
  op.mutable_nodes(2)->set_op(name);
  op.mutable_nodes(2)->set_source(name);
  v1::Graph attribute = AddGraph(2);
  (*attribute.mutable_nodes(2)->mutable_attributes())[name].set_i(1);
  v1::Graph variable = AddGraph(2);
  variable.add_variables()->set_name(name);
  v1::ConnectRequest unbound = RunProgram(1, {1, 1}, {5});
  (*unbound.mutable_run()->mutable_bindings())[name] = 1;
  v1::ConnectRequest shape = Write(6, {1});
  shape.mutable_write()->mutable_shape()->Resize(1 << 20, 1);
  stream->Call(Define(1, AddGraph(2)));
  for (const v1::ConnectRequest& request :
       {Define(2, op), Define(3, attribute), Define(4, variable), unbound, shape,
        WriteBlob(7, name, 1)}) {
    const v1::Result result = stream->Call(request);
    EXPECT_NE(result.error().code(), 0);
    EXPECT_LT(result.error().ByteSizeLong(), 2000) << result.error().message().substr(0, 300);
  }
  for (const grpc::Status& status :
       {client.Upload(name, "x"), Client(daemon.address(), 0, name).opened}) {
    EXPECT_LT(status.error_message().size() + status.error_details().size(), 2000);
    EXPECT_FALSE(Reason(status).empty());
  }
  v1::ConnectRequest named = Define(8, AddGraph(3));
  named.mutable_define_program()->set_name(name);
  EXPECT_FALSE(stream->Call(named).has_error());
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(client.programs->ListPrograms(&context, {}, &programs).ok());
  EXPECT_LT(programs.ByteSizeLong(), 2000);
}

TEST(Errors, FailedResultsFailWhatUsesThem) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Send(Define(1, NegGraph(1)));
  stream->Send(Define(2, AddGraph(1)));
  stream->Send(Write(1, {1}));
  // Dependent operations are in flight before the first run is known to fail.
  daemon.device().Hold();
  const auto failed = stream->Send(RunProgram(1, {1}, {2}));
  const auto dependent = stream->Send(RunProgram(2, {1, 2}, {3}));
  const auto further = stream->Send(RunProgram(2, {3, 3}, {4}));
  const auto read = stream->Send(Read(4));
  daemon.device().LetGo();
  EXPECT_THAT(stream->Answer(failed).error().message(), HasSubstr("the kernel failed"));
  for (const auto sequence : {dependent, further}) {
    EXPECT_EQ(stream->Answer(sequence).error().code(), grpc::INTERNAL);
    EXPECT_EQ(stream->Answer(sequence).error().message(), "an input failed: the kernel failed");
  }
  EXPECT_THAT(stream->Answer(read).error().message(), HasSubstr("the kernel failed"));
  // The same holds for operations sent later.
  EXPECT_THAT(stream->Call(RunProgram(2, {4, 1}, {5})).error().message(),
              HasSubstr("the kernel failed"));
  EXPECT_THAT(stream->Call(Read(5)).error().message(), HasSubstr("the kernel failed"));
  stream->Send(RunProgram(2, {1, 1}, {6}));
  EXPECT_THAT(Floats(stream->Call(Read(6)).data()), ElementsAre(2));
}

TEST(Errors, BrokenProgramFailsItsRunsWithItsReason) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  v1::Graph graph = AddGraph(1);
  graph.mutable_nodes(2)->set_op("frobnicate");
  stream->Send(Define(1, graph));
  stream->Send(Write(1, {1}));
  const v1::Result run = stream->Call(RunProgram(1, {1, 1}, {2}));
  EXPECT_EQ(run.error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(run.error()), "UNKNOWN_OP");
  EXPECT_EQ(Reason(stream->Call(Read(2)).error()), "UNKNOWN_OP");
}

TEST(Errors, RunWithoutMemoryChangesNothing) {
  TestDaemonOptions options;
  options.memory_bytes = 800;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Send(Define(1, AccumulateGraph(75)));
  stream->Send(Write(1, std::vector<float>(75, 1)));
  stream->Send(Write(2, std::vector<float>(75, 2)));
  const v1::Result run = stream->Call(RunProgram(1, {1, 2}, {3}));
  EXPECT_EQ(run.error().code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(run.error().message(), HasSubstr("of 800 bytes are in use"));
  EXPECT_EQ(Floats(stream->Call(Read(1)).data())[0], 1);
  EXPECT_EQ(stream->Call(Read(3)).error().code(), grpc::RESOURCE_EXHAUSTED);
}

TEST(Errors, ReadIsForSmallValues) {
  TestDaemonOptions options;
  options.memory_bytes = 8 << 20;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>((1 << 18) + 1)));
  const v1::Result result = stream->Call(Read(1));
  EXPECT_EQ(result.error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(result.error().message(), HasSubstr("use BlobService.Download"));
}

TEST(Errors, StreamsThatBreakTheRulesEnd) {
  TestDaemon daemon;
  Client client(daemon.address());
  {
    Stream stranger(*client.sessions, "0123");
    const grpc::Status status = stranger.End();
    EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
    EXPECT_EQ(Reason(status), "UNKNOWN_SESSION");
  }
  {
    auto stream = client.Connect();
    stream->Send(Write(1, {1}), /*sequence=*/5);
    const grpc::Status status = stream->End();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                HasSubstr("operation 5 was sent, but the next sequence number must be 1"));
  }
  {
    grpc::ClientContext context;
    auto stream = client.sessions->Connect(&context);
    stream->Write(Write(1, {1}));
    v1::ConnectResponse response;
    EXPECT_FALSE(stream->Read(&response));
    const grpc::Status status = stream->Finish();
    EXPECT_THAT(status.error_message(), HasSubstr("must be `attach`"));
  }
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
}

// Text in a message must be UTF-8, otherwise the message cannot be parsed.
constexpr char kNotUtf8[] = "\xff";

TEST(Errors, AMalformedMessageEndsItsStreamWithAnError) {
  TestDaemon daemon;
  Client client(daemon.address());
  {
    const grpc::Status status = Stream(*client.sessions, kNotUtf8).End();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_EQ(Reason(status), "MALFORMED_MESSAGE");
    EXPECT_THAT(status.error_message(), HasSubstr("is not a valid kiln.v1.ConnectRequest"));
  }
  {
    auto stream = client.Connect();
    EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
    stream->Send(WriteBlob(2, kNotUtf8, 1));
    EXPECT_EQ(Reason(stream->End()), "MALFORMED_MESSAGE");
  }
  const grpc::Status upload = client.Upload(kNotUtf8, "data");
  EXPECT_EQ(upload.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(upload.error_message(), HasSubstr("is not a valid kiln.v1.UploadRequest"));
  client.session.set_session_id(kNotUtf8);
  std::string data;
  const grpc::Status download = client.Download(1, 0, &data);
  EXPECT_EQ(Reason(download), "MALFORMED_MESSAGE");
  EXPECT_THAT(download.error_message(), HasSubstr("is not a valid kiln.v1.DownloadRequest"));
}

TEST(Errors, AMalformedRequestIsAnsweredWithAnError) {
  TestDaemon daemon;
  Client client(daemon.address());
  v1::RenewSessionRequest request;
  request.set_session_id(kNotUtf8);
  v1::RenewSessionResponse response;
  grpc::ClientContext context;
  const grpc::Status status = client.sessions->RenewSession(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "MALFORMED_MESSAGE");
  EXPECT_THAT(status.error_message(), HasSubstr("is not a valid kiln.v1.RenewSessionRequest"));
}

TEST(Errors, AMessageThatIsTooLargeEndsItsStreamWithAnError) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Send(Write(1, std::vector<float>((64 << 20) / sizeof(float))));
  EXPECT_EQ(stream->End().error_code(), grpc::RESOURCE_EXHAUSTED);
}

TEST(Errors, FailedDeviceFailsItsRunsAlone) {
  TestDaemonOptions options;
  options.devices = 2;
  TestDaemon daemon(std::move(options));
  Client broken(daemon.address(), 0, "cpu:0"), whole(daemon.address(), 0, "cpu:1");
  for (Client* client : {&broken, &whole}) {
    auto stream = client->Connect();
    stream->Call(Define(1, AddGraph(1)));
    stream->Call(Write(1, {1}));
  }
  daemon.device(0).Break("fell off the bus");
  auto stream = broken.Connect();
  const v1::Result result = stream->Call(RunProgram(1, {1, 1}, {2}));
  EXPECT_EQ(result.error().code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Reason(result.error()), "DEVICE_FAILED");
  EXPECT_THAT(result.error().message(), HasSubstr("fell off the bus"));
  EXPECT_EQ(stream->Call(RunProgram(1, {1, 1}, {3})).error().code(), grpc::UNAVAILABLE);
  Client late(daemon.address(), 0, "cpu:0");
  EXPECT_EQ(late.opened.error_code(), grpc::UNAVAILABLE);
  auto healthy = whole.Connect();
  healthy->Send(RunProgram(1, {1, 1}, {2}));
  EXPECT_THAT(Floats(healthy->Call(Read(2)).data()), ElementsAre(2));
  grpc::ClientContext context;
  v1::ListDevicesResponse devices;
  ASSERT_TRUE(whole.devices->ListDevices(&context, {}, &devices).ok());
  EXPECT_EQ(devices.devices(0).health(), v1::Device::FAILED);
  EXPECT_EQ(devices.devices(1).health(), v1::Device::HEALTHY);
}

}  // namespace
}  // namespace kiln::testing
