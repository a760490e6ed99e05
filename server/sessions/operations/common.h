// What the headers of operations share.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_COMMON_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_COMMON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/run/run.h"
#include "server/sessions/encoding.h"

namespace kiln::sessions {

struct SessionState;

// Calls `resume` once the awaited thing is ready. Returns false, without calling `resume`, if it is
// ready already.
using AddWaiter = std::function<bool(std::function<void()> resume)>;

// The source from which a program can be compiled again.
struct ProgramOrigin {
  std::string wire;  // GraphSource::Wire
  std::string name;
  std::vector<std::string> devices{};  // as DefineProgram::devices
  // The settings of its kernels: those of the time of the definition. kNewestSettings if the
  // program is live, or was defined by a daemon that did not know.
  runtime::SettingsChange settings = runtime::kNewestSettings;
  bool live = false;  // as DefineProgram::live
};

// Numbers the values and the origins of programs that a checkpoint has, each once. Errors: the
// state of a value is not known, or a program cannot be saved.
class CheckpointIndex {
 public:
  virtual ~CheckpointIndex() = default;
  virtual absl::StatusOr<size_t> Of(const runtime::ValuePointer& value) = 0;
  virtual absl::StatusOr<size_t> Of(const std::shared_ptr<const ProgramOrigin>& origin) = 0;
  absl::StatusOr<std::vector<size_t>> Of(absl::Span<const runtime::ValuePointer> values);
};
// The sizes of a checkpoint's tables, which bound the numbers in it.
struct CheckpointSizes {
  size_t values = 0;
  size_t origins = 0;
};

// The bytes of host memory of an operation's fields.
template <typename T>
int64_t HeldBy(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}
inline int64_t HeldBy(const std::string& text) { return static_cast<int64_t>(text.capacity()); }
inline int64_t HeldBy(const std::vector<std::string>& texts) {
  int64_t bytes = static_cast<int64_t>(texts.capacity() * sizeof(std::string));
  for (const std::string& text : texts) bytes += HeldBy(text);
  return bytes;
}

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_COMMON_H_
