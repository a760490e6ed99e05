// Structured log: one line for each event on stderr, `time=… level=… event=… key=value …`.
//
//   log::Info("session_opened", {{"session", "s3"}, {"device", "cpu:0"}});
//
// Thread-safe; a line is written with one write(2). Values with blanks, quotes or control
// characters are quoted.
#ifndef KILN_SERVER_LOG_LOG_H_
#define KILN_SERVER_LOG_LOG_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace kiln::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Returns false if `name` is not one of "debug", "info", "warning", "error".
bool ParseLevel(absl::string_view name, Level* level);

// Events below this level are dropped. Default: kInfo.
void SetLevel(Level level);
// Whether events of this level are written. Check this first if computing an event's values takes
// time.
bool IsOn(Level level);

// Sets the clock for events; until then all of them have the epoch's time.
void SetClock(absl::Time (*now)());

// The most Info and Warning lines of one event per minute, since clients can cause some of them;
// the next line afterwards has the number of dropped ones ("unlogged").
inline constexpr int kLinesOfAnEvent = 1000;

using Field = std::pair<absl::string_view, std::string>;
using Fields = absl::Span<const Field>;

void Debug(absl::string_view event, Fields fields = {});
void Info(absl::string_view event, Fields fields = {});
void Warning(absl::string_view event, Fields fields = {});
void Error(absl::string_view event, Fields fields = {});

// The line as written, with its newline.
std::string Format(absl::Time time, Level level, absl::string_view event, Fields fields);

}  // namespace kiln::log

#endif  // KILN_SERVER_LOG_LOG_H_
