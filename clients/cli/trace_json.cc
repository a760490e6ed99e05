#include "clients/cli/trace_json.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln::cli {
namespace {

// A row of the timeline. The first member orders processes, the third the rows of a process.
struct Track {
  int process_order = 0;
  std::string process;
  int order = 0;
  std::string name;
  std::string counter = {};  // of its open spans; empty: they are not counted
  auto operator<=>(const Track&) const = default;
};

std::string UserOrDaemon(const v1::TraceSpan& span) {
  return span.user().empty() ? "the daemon" : span.user();
}

Track TrackOf(const v1::TraceSpan& span) {
  constexpr int kDevices = 1, kCompiler = 2, kSessions = 3, kCalls = 4;
  switch (span.kind()) {
    case v1::TraceSpan::RUN:
    case v1::TraceSpan::COMMAND:
      return {kDevices, span.device(), 1, "runs"};
    case v1::TraceSpan::COPY:
      return {kDevices, span.device(), 2, "copies"};
    case v1::TraceSpan::WAIT:
      return {kDevices, span.device(), 3, absl::StrCat("queue: ", UserOrDaemon(span)),
              absl::StrCat("waiting: ", UserOrDaemon(span))};
    case v1::TraceSpan::COMPILE:
    case v1::TraceSpan::PASS:
      return {kCompiler, "compiler", 1, "programs"};
    case v1::TraceSpan::KERNEL:
      return {kCompiler, "compiler", 2, "workers"};
    case v1::TraceSpan::OPERATION:
      return {kSessions, absl::StrCat("session ", span.session(), " of ", UserOrDaemon(span)), 1,
              "operations", "operations in flight"};
    default:
      return {kCalls, absl::StrCat("calls of ", UserOrDaemon(span)), 1, "calls"};
  }
}

const char* Category(v1::TraceSpan::Kind kind) {
  switch (kind) {
    case v1::TraceSpan::OPERATION:
      return "operation";
    case v1::TraceSpan::CALL:
      return "call";
    case v1::TraceSpan::WAIT:
      return "wait";
    case v1::TraceSpan::RUN:
      return "run";
    case v1::TraceSpan::COMMAND:
      return "command";
    case v1::TraceSpan::COPY:
      return "copy";
    case v1::TraceSpan::COMPILE:
      return "compile";
    case v1::TraceSpan::PASS:
      return "pass";
    case v1::TraceSpan::KERNEL:
      return "kernel";
    default:
      return "other";
  }
}

// The daemon sends text without control characters.
std::string JsonText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The format has microseconds; a double would lose nanoseconds of long traces. Requires: not
// negative.
std::string Microseconds(int64_t nanoseconds) {
  return absl::StrFormat("%d.%03d", nanoseconds / 1000, nanoseconds % 1000);
}

int64_t StartOf(const v1::TraceSpan& span) { return span.start_nanoseconds(); }
int64_t EndOf(const v1::TraceSpan& span) {
  return span.start_nanoseconds() + static_cast<int64_t>(span.duration_nanoseconds());
}

// Spans of a track that are parts of one work.
struct Group {
  int64_t start = 0;
  int64_t end = 0;
  std::vector<const v1::TraceSpan*> spans;
};

// The groups of a track, by their start.
std::vector<Group> GroupsOf(const std::vector<const v1::TraceSpan*>& spans) {
  std::map<uint64_t, Group> numbered;
  std::vector<Group> groups;
  for (const v1::TraceSpan* span : spans) {
    if (span->number() == 0) {
      groups.push_back({StartOf(*span), EndOf(*span), {span}});
      continue;
    }
    Group& group =
        numbered.try_emplace(span->number(), Group{StartOf(*span), EndOf(*span), {}}).first->second;
    group.start = std::min(group.start, StartOf(*span));
    group.end = std::max(group.end, EndOf(*span));
    group.spans.push_back(span);
  }
  for (auto& [number, group] : numbered) {
    // The whole comes before its parts.
    std::stable_sort(group.spans.begin(), group.spans.end(), [](const auto* a, const auto* b) {
      return std::tuple(StartOf(*a), -EndOf(*a)) < std::tuple(StartOf(*b), -EndOf(*b));
    });
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::tuple(a.start, -a.end) < std::tuple(b.start, -b.end);
  });
  return groups;
}

// Divides groups among as few lanes as possible, so that those of a lane do not overlap.
std::vector<std::vector<Group>> LanesOf(std::vector<Group> groups) {
  std::vector<std::vector<Group>> lanes;
  for (Group& group : groups) {
    const auto free = std::find_if(lanes.begin(), lanes.end(), [&](const auto& lane) {
      return lane.back().end <= group.start;
    });
    (free == lanes.end() ? lanes.emplace_back() : *free).push_back(std::move(group));
  }
  return lanes;
}

class ChromeWriter {
 public:
  // Times begin at `origin`, in nanoseconds since the trace began.
  ChromeWriter(int64_t origin, std::ostream& out) : origin_(origin), out_(out) {}

  void Name(const char* what, int process, int thread, const std::string& name, int order) {
    Event(absl::StrFormat(R"({"ph":"M","name":"%s_name","pid":%d,"tid":%d,"args":{"name":%s}})",
                          what, process, thread, JsonText(name)));
    Event(absl::StrFormat(
        R"({"ph":"M","name":"%s_sort_index","pid":%d,"tid":%d,"args":{"sort_index":%d}})", what,
        process, thread, order));
  }

  void Slice(const v1::TraceSpan& span, int process, int thread) {
    std::string arguments;
    const auto add = [&](const char* name, const std::string& json) {
      absl::StrAppend(&arguments, arguments.empty() ? "" : ",", "\"", name, "\":", json);
    };
    for (const auto& [name, value] :
         {std::pair("user", &span.user()), std::pair("session", &span.session()),
          std::pair("device", &span.device()), std::pair("program", &span.program()),
          std::pair("operation", &span.detail())}) {
      if (!value->empty()) add(name, JsonText(*value));
    }
    if (span.bytes() > 0) add("bytes", absl::StrCat(span.bytes()));
    Event(absl::StrFormat(
        R"({"ph":"X","cat":"%s","name":%s,"ts":%s,"dur":%s,"pid":%d,"tid":%d,"args":{%s}})",
        Category(span.kind()), JsonText(span.name()), Microseconds(StartOf(span) - origin_),
        Microseconds(static_cast<int64_t>(span.duration_nanoseconds())), process, thread,
        arguments));
  }

  void Count(const std::string& name, int64_t time, int64_t count, int process) {
    Event(absl::StrFormat(R"({"ph":"C","name":%s,"ts":%s,"pid":%d,"args":{"count":%d}})",
                          JsonText(name), Microseconds(time - origin_), process, count));
  }

  void Gap(const CollectedTrace::Gap& gap) {
    Event(absl::StrFormat(
        R"({"ph":"i","s":"g","cat":"gap","name":"%d spans were dropped","ts":%s,"pid":0,"tid":0})",
        gap.dropped, Microseconds(gap.after_nanoseconds - origin_)));
  }

 private:
  void Event(const std::string& json) {
    out_ << (std::exchange(has_some_, true) ? ",\n" : "\n") << json;
  }

  const int64_t origin_;
  std::ostream& out_;
  bool has_some_ = false;
};

// Writes how many spans of a track are open, at each time when that changes.
void WriteCounter(const Track& track, const std::vector<const v1::TraceSpan*>& spans, int process,
                  ChromeWriter* writer) {
  std::map<int64_t, int64_t> changes;
  for (const v1::TraceSpan* span : spans) {
    ++changes[StartOf(*span)];
    --changes[EndOf(*span)];
  }
  int64_t count = 0;
  for (const auto& [time, change] : changes) {
    if (change == 0) continue;
    count += change;
    writer->Count(track.counter, time, count, process);
  }
}

}  // namespace

void WriteChromeTrace(const CollectedTrace& trace, std::ostream& out) {
  std::map<Track, std::vector<const v1::TraceSpan*>> tracks;
  // Some spans began before the trace did. No time is negative, which viewers may not expect.
  int64_t origin = 0;
  for (const v1::TraceSpan& span : trace.spans) {
    tracks[TrackOf(span)].push_back(&span);
    origin = std::min(origin, StartOf(span));
  }
  uint64_t dropped = 0;
  for (const CollectedTrace::Gap& gap : trace.gaps) dropped += gap.dropped;
  out << R"({"displayTimeUnit":"ms","otherData":{"began":)"
      << JsonText(absl::FormatTime(absl::RFC3339_full, trace.began + absl::Nanoseconds(origin),
                                   absl::UTCTimeZone()))
      << R"(,"daemon":)" << JsonText(trace.address) << R"(,"dropped":)" << dropped
      << "},\"traceEvents\":[";
  ChromeWriter writer(origin, out);
  int process = 0, thread = 0;
  std::string process_name;
  for (const auto& [track, spans] : tracks) {
    if (process == 0 || track.process != process_name) {
      process_name = track.process;
      ++process;
      writer.Name("process", process, 0, process_name, process);
    }
    if (!track.counter.empty()) WriteCounter(track, spans, process, &writer);
    int lane_number = 0;
    for (const std::vector<Group>& lane : LanesOf(GroupsOf(spans))) {
      ++lane_number;
      ++thread;
      writer.Name("thread", process, thread,
                  lane_number == 1 ? track.name : absl::StrCat(track.name, " ", lane_number),
                  thread);
      for (const Group& group : lane)
        for (const v1::TraceSpan* span : group.spans) writer.Slice(*span, process, thread);
    }
  }
  for (const CollectedTrace::Gap& gap : trace.gaps) writer.Gap(gap);
  out << "\n]}\n";
}

}  // namespace kiln::cli
