// One run of a program: its buffers, on their way through the queue and the device.
#ifndef KILN_SERVER_RUNTIME_RUN_H_
#define KILN_SERVER_RUNTIME_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/value.h"
#include "server/fairness/dispatcher.h"
#include "server/runtime/bound_program.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

using ValuePointer = std::shared_ptr<buffers::Value>;

// Checks number, shape and dtype of the inputs (a failed or pending input is fine here).
// INVALID_ARGUMENT names the input.
absl::Status CheckInputs(const Signature& signature, absl::Span<const ValuePointer> inputs);

// A run is queued as its device's work. When it ends, its results are resolved, then `done` is
// called; both happen on the device's thread, or on the one that queues it if it fails at once. An
// input that fails before the run does fails the results with the input's error.
class Run : public fairness::Work, public std::enable_shared_from_this<Run> {
 public:
  // Seconds on the device.
  using Done = std::function<void(const absl::Status&, double seconds)>;

  // Allocates the results. The inputs have passed CheckInputs. `label` is what the log calls the
  // run. RESOURCE_EXHAUSTED: memory; UNAVAILABLE: the device failed.
  static absl::StatusOr<std::shared_ptr<Run>> Create(std::string label,
                                                     std::shared_ptr<const BoundProgram> bound,
                                                     std::vector<ValuePointer> inputs,
                                                     std::shared_ptr<buffers::Account> account,
                                                     Done done);

  // Outputs, then updates.
  const std::vector<ValuePointer>& results() const { return results_; }

  double predicted_seconds() const override { return program().predicted_seconds(); }
  std::string label() const override { return label_; }
  absl::Status Submit(int64_t ticket, absl::Duration waited) override;
  void Fail(const absl::Status& status) override;

 private:
  using Slots = absl::InlinedVector<drivers::Buffer*, 32>;

  explicit Run(std::string label) : label_(std::move(label)) {}
  void LogStarted() const;
  void LogEnded(const absl::Status& status, const drivers::SubmitResult& result) const;
  void Finished(const drivers::SubmitResult& result);
  // Whether something of it was lost with the device, which works again.
  bool IsLost() const;
  // The error of the first input that has failed, or of the values of the variables.
  absl::Status InputFailure() const;
  void Resolve(const absl::Status& status, double seconds);

  Program& program() const { return *bound_->program; }
  // Larger buffers for the inputs that need them.
  absl::Status AllocateWider(const std::shared_ptr<buffers::Account>& account);
  // Copies those inputs on the device and puts the larger buffers into the slots.
  absl::Status Widen(Slots* slots);

  const std::string label_;
  std::shared_ptr<const BoundProgram> bound_;
  std::shared_ptr<const Program::Loaded> loaded_;
  std::vector<ValuePointer> inputs_;
  std::vector<std::shared_ptr<buffers::Value>> wider_;  // by input, null for most; or empty
  std::vector<ValuePointer> results_;
  std::shared_ptr<Arena> arena_;
  Done done_;
  int64_t ticket_ = 0;
  bool sampled_ = false;
  std::shared_ptr<Run> self_;  // while the device has it
};

// The error of an operation that uses something that failed: same code, reason and details.
absl::Status DependencyError(const absl::Status& cause);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_H_
