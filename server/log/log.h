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

// False if `name` is not one of "debug", "info", "warning", "error".
bool ParseLevel(absl::string_view name, Level* level);

// Events below this level are dropped. Default: kInfo.
void SetLevel(Level level);
// Whether events of this level are written: where making an event's values takes time, ask first.
bool IsOn(Level level);

// What tells the time of events; until it is called, all happen at the epoch.
void SetClock(absl::Time (*now)());

// So many Info and Warning lines of one event are written in a minute, since clients bring some of
// them about; the first one after tells how many were not ("unlogged").
inline constexpr int kLinesOfAnEvent = 1000;

using Field = std::pair<absl::string_view, std::string>;
using Fields = absl::Span<const Field>;

void Debug(absl::string_view event, Fields fields = {});
void Info(absl::string_view event, Fields fields = {});
void Warning(absl::string_view event, Fields fields = {});
void Error(absl::string_view event, Fields fields = {});

// The line as it is written, with its newline.
std::string Format(absl::Time time, Level level, absl::string_view event, Fields fields);

}  // namespace kiln::log

#endif  // KILN_SERVER_LOG_LOG_H_
