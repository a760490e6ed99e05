// Builds a pass's report and adds it to a list at the end, with the time that the pass took.
#ifndef KILN_COMPILER_PASS_TIMER_H_
#define KILN_COMPILER_PASS_TIMER_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "compiler/compiler.h"

namespace kiln::compiler {

// Returns the time by the options' clock, if they have one.
inline absl::Time TimeOf(const Options& options) {
  return options.now ? options.now() : absl::UnixEpoch();
}

class PassTimer {
 public:
  // `options` and `reports` must outlive this.
  PassTimer(std::string_view pass, const Options& options, std::vector<PassReport>* reports)
      : options_(options), reports_(reports), start_(TimeOf(options)) {
    report_.pass = std::string(pass);
    report_.start = start_;
    report_.disabled = Contains(options.disabled_passes);
    dumped_ = Contains(options.dumped_passes);
  }
  ~PassTimer() {
    Stop();
    reports_->push_back(std::move(report_));
  }
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

  bool disabled() const { return report_.disabled; }
  bool dumped() const { return dumped_; }
  // Cuts a text that is too long for a person to read.
  void SetText(std::string text) {
    constexpr size_t kLongest = 1 << 20;
    if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "\n...\n");
    report_.text = std::move(text);
  }
  // Adds a part of the pass's time; `sum` is the time of all `threads` threads together.
  void AddPart(std::string_view name, absl::Duration sum, int threads) {
    if (report_.disabled || sum <= absl::ZeroDuration()) return;
    report_.parts.push_back({std::string(name), absl::ToDoubleSeconds(sum) / threads});
  }
  // Stops the clock: later work does not count.
  void Stop() {
    if (stopped_) return;
    stopped_ = true;
    report_.seconds = report_.disabled ? 0 : absl::ToDoubleSeconds(TimeOf(options_) - start_);
  }

 private:
  bool Contains(const std::vector<std::string>& names) const {
    return std::find(names.begin(), names.end(), report_.pass) != names.end();
  }

  const Options& options_;
  std::vector<PassReport>* reports_;
  PassReport report_;
  bool dumped_ = false;
  bool stopped_ = false;
  const absl::Time start_;
};

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PASS_TIMER_H_
