// Compares one replay with a bare gRPC echo of the same messages, in sessions with snapshots
// ("protected") and without, and measures replays in flight. Prints a table; asserts nothing, since
// a busy machine must not fail a build.
//
// usage: replay_bench [unix | tcp | ADDRESS]: this process' own daemon with a fake device over that
// kind of socket, or the first device of the kilnd at ADDRESS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

constexpr uint32_t kSnapshotSeconds = 3600;  // no snapshot is taken meanwhile

class EchoReactor : public grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse> {
 public:
  EchoReactor() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_.mutable_result()->set_sequence(request_.sequence());
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override { StartRead(&request_); }
  void OnDone() override { delete this; }

 private:
  v1::ConnectRequest request_;
  v1::ConnectResponse response_;
};

class EchoService : public v1::SessionService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext*) override {
    return new EchoReactor();
  }
};

// Median microseconds of a call.
double MedianLatency(Stream& stream, const std::function<v1::ConnectRequest(uint64_t)>& request,
                     int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const v1::ConnectRequest next = request(static_cast<uint64_t>(i));
    const int64_t start = absl::GetCurrentTimeNanos();
    const v1::Result result = stream.Answer(stream.Send(next));
    times.push_back(static_cast<double>(absl::GetCurrentTimeNanos() - start) * 1e-3);
    if (result.has_error()) {
      std::fprintf(stderr, "a replay failed: %s\n", result.error().message().c_str());
      std::exit(1);
    }
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[static_cast<size_t>(count / 2)];
}

// Returns runs per second with all of them in flight, acknowledging as a real client does.
double PipelinedRate(Client& client, uint64_t first_sequence, uint64_t count) {
  grpc::ClientContext context;
  auto stream = client.sessions->Connect(&context);
  v1::ConnectRequest attach = AttachTo(client.session.session_id());
  attach.set_acknowledged(first_sequence - 1);
  stream->Write(attach);
  v1::ConnectResponse response;
  stream->Read(&response);
  std::atomic<uint64_t> acknowledged{first_sequence - 1};
  std::atomic<uint64_t> succeeded{0};
  std::thread reader([&] {
    v1::ConnectResponse answer;
    for (uint64_t i = 0; i < count && stream->Read(&answer); ++i) {
      acknowledged = answer.result().sequence();
      if (!answer.result().has_error()) ++succeeded;
    }
  });
  const absl::Time start = absl::Now();
  for (uint64_t i = 0; i < count; ++i) {
    v1::ConnectRequest request = RunProgram(1, {1, 2}, {});
    request.set_sequence(first_sequence + i);
    request.set_acknowledged(acknowledged > 100 ? acknowledged - 100 : 0);
    stream->Write(request, grpc::WriteOptions().set_buffer_hint());
  }
  stream->WritesDone();
  reader.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const grpc::Status status = stream->Finish();
  if (succeeded != count) {
    std::fprintf(stderr, "%lu of %lu replays succeeded: %s\n", succeeded.load(), count,
                 status.error_message().c_str());
    std::exit(1);
  }
  return static_cast<double>(count) / seconds;
}

// `address`: that of the daemon to measure; the echo listens on the same kind of socket.
void Measure(const std::string& address, const std::string& folder) {
  const bool tcp = address.rfind("unix:", 0) != 0;
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  const std::string socket = "unix:" + folder + "/echo.sock";
  builder.AddListeningPort(tcp ? "127.0.0.1:0" : socket, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto echo = builder.BuildAndStart();
  const std::string echo_address = tcp ? "127.0.0.1:" + std::to_string(port) : socket;

  Client client(address), protected_client(address, 0, "", kSnapshotSeconds);
  auto stream = client.Connect(), protected_stream = protected_client.Connect();
  v1::Graph accumulate = AccumulateGraph(1);
  accumulate.clear_outputs();
  for (Stream* each : {stream.get(), protected_stream.get()}) {
    each->Call(Define(1, accumulate));
    each->Call(Write(1, {0}));
    each->Call(Write(2, {1}));
  }
  auto echo_stub = v1::SessionService::NewStub(
      grpc::CreateChannel(echo_address, grpc::InsecureChannelCredentials()));
  Stream echo_stream(*echo_stub, "");
  const auto run = [](uint64_t) { return RunProgram(1, {1, 2}, {}); };
  std::vector<double> echo_times, replay_times, protected_times;
  // Alternates, so that load on the machine affects both equally.
  for (int round = 0; round < 9; ++round) {
    echo_times.push_back(MedianLatency(echo_stream, run, 1000));
    replay_times.push_back(MedianLatency(*stream, run, 1000));
    protected_times.push_back(MedianLatency(*protected_stream, run, 1000));
  }
  std::sort(echo_times.begin(), echo_times.end());
  std::sort(replay_times.begin(), replay_times.end());
  std::sort(protected_times.begin(), protected_times.end());
  const double echo_p50 = echo_times[4], replay_p50 = replay_times[4];
  std::printf("%-24s %8.1f us\n%-24s %8.1f us\n%-24s %8.2f\n", "bare gRPC echo", echo_p50, "replay",
              replay_p50, "ratio", replay_p50 / echo_p50);
  std::printf("%-24s %8.1f us\n%-24s %8.2f\n", "protected replay", protected_times[4],
              "its ratio to a replay", protected_times[4] / replay_p50);
  stream->Drop();
  protected_stream->Drop();
  std::printf("%-24s %8.0f /s\n", "replays in flight", PipelinedRate(client, 4 + 9 * 1000, 50'000));
  std::printf("%-24s %8.0f /s\n", "protected ones",
              PipelinedRate(protected_client, 4 + 9 * 1000, 50'000));
  echo->Shutdown(absl::ToChronoTime(absl::Now()));
}

}  // namespace
}  // namespace kiln::testing

int main(int argc, char** argv) {
  kiln::testing::TestDaemon daemon;
  const std::string where = argc > 1 ? argv[1] : "unix";
  const bool own = where == "unix" || where == "tcp";
  const std::string address = where == "tcp" ? daemon.daemon().listening()[1] : daemon.address();
  kiln::testing::Measure(own ? address : where, daemon.folder());
  return 0;
}
