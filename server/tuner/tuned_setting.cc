#include "server/tuner/tuned_setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/quoted.h"

namespace kiln::tuner {
namespace {

constexpr std::string_view kHeader = "kiln settings 1";
// The end of the year 9999, in seconds since 1970.
constexpr int64_t kMeasuredMax = 253'402'300'799;

absl::string_view AsAbsl(std::string_view text) { return {text.data(), text.size()}; }

bool IsDuration(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

absl::Status CheckText(const char* what, const std::string& text, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " has ", text.size(), " bytes; at most ", bytes_max));
  }
  if (text.empty() || text.back() == '\n') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " does not end with a line feed"));
}

// The fewest digits that read back to the same number.
std::string PrintNumber(double number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

// Lines with a word and a value, then lines of a text.
void AppendText(std::string_view word, const std::string& text, std::string* out) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  absl::StrAppend(out, AsAbsl(word), " ", lines, "\n", text);
}

void Append(const TunedSetting& setting, std::string* out) {
  absl::StrAppend(out, "hardware ", absl::CEscape(setting.hardware), "\nversion ", setting.version,
                  "\nseconds ", PrintNumber(setting.seconds_before), " ",
                  PrintNumber(setting.seconds_after), " ", PrintNumber(setting.roofline_seconds),
                  "\nmeasured ", absl::ToUnixSeconds(setting.measured), "\nwidth ", setting.width,
                  "\n");
  AppendText("kernel", setting.kernel, out);
  AppendText("setting", setting.setting, out);
}

// Reads lines one after another. After the first error, all results are empty.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }

  void Fail(std::string_view why) {
    if (ok())
      status_ = absl::InvalidArgumentError(absl::StrCat("line ", number_, ": ", AsAbsl(why)));
    rest_ = {};
  }

  // Returns the next line without its line feed.
  std::string_view Line() {
    ++number_;
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) {
      Fail(rest_.empty() ? "the text ends too early" : "the line is not complete");
      return {};
    }
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  // Returns the value of a line "WORD VALUE".
  std::string_view Value(std::string_view word) {
    const std::string_view line = Line();
    if (!ok()) return {};
    if (line.substr(0, word.size()) == word && line.size() > word.size() &&
        line[word.size()] == ' ') {
      return line.substr(word.size() + 1);
    }
    Fail(absl::StrCat("expected \"", AsAbsl(word), "\" and a value, not ", Quoted(line)));
    return {};
  }

  int64_t Integer(std::string_view word, int64_t low, int64_t high) {
    const std::string_view value = Value(word);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (ok() && (error != std::errc() || end != value.data() + value.size() || number < low ||
                 number > high)) {
      Fail(absl::StrCat(Quoted(value), " is not an integer from ", low, " to ", high));
    }
    return ok() ? number : low;
  }

  // Returns the lines after a line "WORD COUNT", with their line feeds.
  std::string Text(std::string_view word, size_t bytes_max) {
    const int64_t lines = Integer(word, 0, static_cast<int64_t>(bytes_max));
    std::string text;
    for (int64_t i = 0; i < lines && ok(); ++i) {
      absl::StrAppend(&text, AsAbsl(Line()), "\n");
      if (text.size() > bytes_max) Fail(absl::StrCat("the ", AsAbsl(word), " is too large"));
    }
    return ok() ? text : "";
  }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
  absl::Status status_;
};

std::string ReadHardware(LineReader* reader) {
  const std::string_view value = reader->Value("hardware");
  std::string hardware;
  if (reader->ok() && !absl::CUnescape(AsAbsl(value), &hardware))
    reader->Fail("the name of the hardware has a wrong escape sequence");
  return hardware;
}

void ReadSeconds(LineReader* reader, TunedSetting* setting) {
  const std::string_view value = reader->Value("seconds");
  if (!reader->ok()) return;
  const std::vector<std::string> words = absl::StrSplit(AsAbsl(value), ' ');
  double numbers[3];
  bool is_right = words.size() == std::size(numbers);
  for (size_t i = 0; is_right && i < words.size(); ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto read = std::from_chars(words[i].data(), end, numbers[i]);
    is_right = read.ec == std::errc() && read.ptr == end && IsDuration(numbers[i]);
  }
  if (!is_right) return reader->Fail("expected three times in seconds");
  setting->seconds_before = numbers[0];
  setting->seconds_after = numbers[1];
  setting->roofline_seconds = numbers[2];
}

TunedSetting Read(LineReader* reader) {
  constexpr int64_t kIntMax = std::numeric_limits<int>::max();
  TunedSetting setting;
  setting.hardware = ReadHardware(reader);
  setting.version = static_cast<int>(reader->Integer("version", 1, kIntMax));
  ReadSeconds(reader, &setting);
  setting.measured = absl::FromUnixSeconds(reader->Integer("measured", 0, kMeasuredMax));
  setting.width = static_cast<int>(reader->Integer("width", 0, kIntMax));
  setting.kernel = reader->Text("kernel", kKernelBytesMax);
  setting.setting = reader->Text("setting", kSettingBytesMax);
  if (!reader->ok()) return setting;
  if (absl::Status legal = Check(setting); !legal.ok()) reader->Fail(std::string(legal.message()));
  return setting;
}

}  // namespace

absl::Status Check(const TunedSetting& setting) {
  absl::Status status = CheckText("kernel", setting.kernel, kKernelBytesMax);
  if (status.ok()) status = CheckText("setting", setting.setting, kSettingBytesMax);
  if (!status.ok()) return status;
  if (setting.kernel.empty()) return absl::InvalidArgumentError("the kernel is empty");
  if (setting.hardware.empty() || setting.hardware.size() > kHardwareBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of the hardware has ", setting.hardware.size(),
                     " bytes; it must have 1 to ", kHardwareBytesMax));
  }
  if (setting.version < 1 || setting.width < 0)
    return absl::InvalidArgumentError("the version or the width is out of range");
  const int64_t measured = absl::ToUnixSeconds(setting.measured);
  if (measured < 0 || measured > kMeasuredMax)
    return absl::InvalidArgumentError("the time of the measurement is out of range");
  for (const double seconds :
       {setting.seconds_before, setting.seconds_after, setting.roofline_seconds}) {
    if (!IsDuration(seconds))
      return absl::InvalidArgumentError(absl::StrCat(seconds, " is not a time in seconds"));
  }
  return absl::OkStatus();
}

std::string PrintSettings(std::vector<TunedSetting> settings) {
  // So that a changed table has a small difference.
  std::sort(settings.begin(), settings.end(), [](const TunedSetting& a, const TunedSetting& b) {
    return std::tie(a.hardware, a.kernel, a.version) < std::tie(b.hardware, b.kernel, b.version);
  });
  std::string text = absl::StrCat(AsAbsl(kHeader), "\n");
  for (const TunedSetting& setting : settings) Append(setting, &text);
  absl::StrAppend(&text, "end of ", settings.size(), "\n");
  return text;
}

absl::StatusOr<std::vector<TunedSetting>> ParseSettings(std::string_view text) {
  LineReader reader(text);
  std::vector<TunedSetting> settings;
  if (reader.Line() != kHeader)
    reader.Fail(absl::StrCat("a file of settings starts with the line \"", AsAbsl(kHeader), "\""));
  // An entry starts with another word than the last line.
  constexpr std::string_view kEnd = "end of ";
  while (reader.ok() && reader.rest().substr(0, kEnd.size()) != kEnd)
    settings.push_back(Read(&reader));
  if (reader.ok() && reader.Line() != absl::StrCat(AsAbsl(kEnd), settings.size()))
    reader.Fail(
        absl::StrCat("there are ", settings.size(), " settings, but not as many were written"));
  if (reader.ok() && !reader.AtEnd()) reader.Fail("there is text after the last line");
  if (!reader.ok()) return reader.status();
  return settings;
}

}  // namespace kiln::tuner
