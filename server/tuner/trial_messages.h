// Messages between the daemon and a process that runs candidates (docs/formats/trial-messages.md).
// Both are the same executable. Malformed messages are refused, since a candidate may have damaged
// the process.
#ifndef KILN_SERVER_TUNER_TRIAL_MESSAGES_H_
#define KILN_SERVER_TUNER_TRIAL_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// The first request: makes the trials of a kernel.
struct OpenRequest {
  std::string kernel;    // text
  std::string hardware;  // Target::HardwareKey of the device for which candidates are compiled
  uint64_t seed = 0;
  // Bound on what the process allocates from now on; 0: none.
  uint64_t memory_bytes_max = 0;
};
struct PrepareRequest {
  Inputs inputs;
};
struct LoadRequest {
  uint64_t trial = 0;              // a number that no other trial has
  std::vector<uint64_t> unloaded;  // trials that are not needed any more
  std::vector<TrialStep> steps;
};
struct TimeRequest {
  uint64_t trial = 0;
  int times = 1;
  double seconds_max = 0;
};
struct RunRequest {
  uint64_t trial = 0;
  Inputs inputs;
  double seconds_max = 0;
};
using TrialRequest =
    std::variant<OpenRequest, PrepareRequest, LoadRequest, TimeRequest, RunRequest>;

// The outputs of a run follow its answer in messages of at most this many bytes each.
inline constexpr size_t kOutputPieceBytes = size_t{16} << 20;
inline constexpr int kTimesMax = 1'000'000;

// `number` identifies the request; the answer repeats it.
std::string EncodeRequest(uint64_t number, const TrialRequest& request);
bool DecodeRequest(std::string_view bytes, uint64_t* number, TrialRequest* request);

// The answer is seconds for a TimeRequest, and else 0. An error keeps its code, message and
// payloads.
std::string EncodeTrialAnswer(uint64_t number, const absl::StatusOr<double>& answer);
// Returns false if `bytes` is no answer to this request.
bool DecodeTrialAnswer(std::string_view bytes, uint64_t number, absl::StatusOr<double>* answer);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TRIAL_MESSAGES_H_
