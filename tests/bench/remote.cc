// Measures a running kilnd through the C++ client, next to bare gRPC over the same kind of
// connection.
//
//   bench_remote KILND_ADDRESS ECHO_ADDRESS LABEL [replays|uploads]
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kiln/client.h"
#include "tests/bench/echo_client.h"
#include "tests/bench/measure.h"

namespace kiln::bench {
namespace {

bool IsQuick() { return std::getenv("BENCH_QUICK") != nullptr; }
Effort CurrentEffort() { return IsQuick() ? QuickEffort() : Effort{.rounds = 9, .seconds = 0.2}; }

v1::ConnectRequest RunMessage() {
  v1::ConnectRequest message;
  // Numbers as large as in a long session, since small ones take fewer bytes.
  message.set_sequence(123456);
  message.set_acknowledged(123455);
  message.mutable_run()->set_program(1);
  message.mutable_run()->add_inputs(2);
  message.mutable_run()->add_outputs(123456);
  return message;
}

// One small kernel, because the round trip is measured.
absl::StatusOr<Graph> SmallGraph() {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {256});
  builder.Output(x + x);
  return builder.Build();
}

class Remote {
 public:
  Remote(Client& client, Program program, Tensor input)
      : client_(client), program_(std::move(program)), input_(std::move(input)) {}

  absl::Status OneByOne(int times) {
    for (int i = 0; i < times; ++i) {
      absl::StatusOr<RunResult> run = client_.Run(program_, {input_});
      if (!run.ok()) return run.status();
      if (auto done = run->done.Get(); !done.ok()) return done.status();
    }
    return absl::OkStatus();
  }
  // Sends without waiting, with a bounded number in flight, as a training loop would.
  absl::Status Pipelined(int times) {
    constexpr size_t kInFlight = 256;
    std::vector<Future<RunReport>> open;
    size_t oldest = 0;
    for (int i = 0; i < times; ++i) {
      absl::StatusOr<RunResult> run = client_.Run(program_, {input_});
      if (!run.ok()) return run.status();
      open.push_back(run->done);
      if (open.size() - oldest < kInFlight) continue;
      if (auto done = open[oldest++].Get(); !done.ok()) return done.status();
    }
    return client_.Barrier();
  }
  absl::Status Upload(const std::string& data, int times) {
    for (int i = 0; i < times; ++i) {
      auto tensor = client_.Upload(DType::kUInt8, {static_cast<int64_t>(data.size())}, data);
      if (!tensor.ok()) return tensor.status();
    }
    return client_.Barrier();
  }

 private:
  Client& client_;
  Program program_;
  Tensor input_;
};

absl::Status Replays(Remote& remote, EchoClient& echo, const std::string& label) {
  auto one_by_one = [&](int times) { return remote.OneByOne(times); };
  auto ping = Interleave(
      one_by_one, [&](int times) { return echo.PingPong(times); }, CurrentEffort());
  if (!ping.ok()) return ping.status();
  Print({.name = absl::StrCat("one replay, ", label),
         .unit = "us",
         .value = ping->seconds * 1e6,
         .peer = "gRPC stream echo",
         .peer_value = ping->peer_seconds * 1e6});
  auto unary = Interleave(
      one_by_one, [&](int times) { return echo.Unary(times); }, CurrentEffort());
  if (!unary.ok()) return unary.status();
  Print({.name = absl::StrCat("one replay, ", label),
         .unit = "us",
         .value = unary->seconds * 1e6,
         .peer = "gRPC unary echo",
         .peer_value = unary->peer_seconds * 1e6});
  auto pipelined = Interleave([&](int times) { return remote.Pipelined(times); },
                              [&](int times) { return echo.Pipeline(times); }, CurrentEffort());
  if (!pipelined.ok()) return pipelined.status();
  Print({.name = absl::StrCat("pipelined replays, ", label),
         .unit = "thousand/s",
         .value = 1e-3 / pipelined->seconds,
         .peer = "gRPC stream messages",
         .peer_value = 1e-3 / pipelined->peer_seconds});
  return absl::OkStatus();
}

absl::Status Uploads(Remote& remote, EchoClient& echo, const std::string& label) {
  const std::string data(IsQuick() ? 4 << 20 : 64 << 20, 'x');
  const auto bytes = static_cast<double>(data.size());
  auto upload =
      Interleave([&](int times) { return remote.Upload(data, times); },
                 [&](int times) { return echo.Upload(static_cast<int64_t>(data.size()), times); },
                 CurrentEffort());
  if (!upload.ok()) return upload.status();
  Print({.name = absl::StrCat("upload of ", data.size() >> 20, " MiB, ", label),
         .unit = "GB/s",
         .value = 1e-9 * bytes / upload->seconds,
         .peer = "gRPC stream of 1 MiB chunks",
         .peer_value = 1e-9 * bytes / upload->peer_seconds});
  return absl::OkStatus();
}

absl::Status Measure(const std::string& kilnd, const std::string& echo_address,
                     const std::string& label, const std::string& part) {
  auto client = Client::Connect({.address = kilnd, .description = "bench"});
  if (!client.ok()) return client.status();
  auto program = (*client)->Define(SmallGraph(), "bench_small");
  if (!program.ok()) return program.status();
  if (auto digest = program->digest(); !digest.ok()) return digest.status();
  auto input = (*client)->Upload<float>({256}, std::vector<float>(256, 1));
  if (!input.ok()) return input.status();
  Remote remote(**client, *program, *input);
  EchoClient echo(echo_address, RunMessage());
  if (part != "uploads") {
    if (absl::Status status = Replays(remote, echo, label); !status.ok()) return status;
  }
  return part == "replays" ? absl::OkStatus() : Uploads(remote, echo, label);
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr,
                 "usage: bench_remote KILND_ADDRESS ECHO_ADDRESS LABEL [replays|uploads]\n");
    return 2;
  }
  absl::Status status = kiln::bench::Measure(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : "");
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_remote: %s\n", status.ToString().c_str());
  return 1;
}
