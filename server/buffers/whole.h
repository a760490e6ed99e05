// The row-major bytes of a value, wherever it lies: in one device's memory or in parts on several.
#ifndef KILN_SERVER_BUFFERS_WHOLE_H_
#define KILN_SERVER_BUFFERS_WHOLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/buffers/placement.h"
#include "server/buffers/pool.h"
#include "server/buffers/value.h"

namespace kiln::buffers {

// Calls `run` with what stands together in the whole and in the memory of a part, in order, as far
// as it lies within the bytes [begin, end) of the whole, cut there: bytes from the beginning of
// either, and how many. Between two runs stands nothing in the part's memory but padding, so that
// from the first to the last they take no more bytes of it than end - begin. It costs no more than
// what is found.
void ForEachRunWithin(const std::vector<int64_t>& shape, int64_t element_bytes, const Part& part,
                      int64_t begin, int64_t end,
                      const std::function<void(int64_t whole, int64_t part, int64_t bytes)>& run);

// The places of which the parts make up the whole, each once: of devices that have the same part,
// the first.
std::vector<size_t> DifferentParts(const Placement& placement, const std::vector<int64_t>& shape);

// A pending value that lies so; `allocate` makes the part of a place. Its errors, and nothing is
// left then. The type fits the placement (graph::CheckSpec).
absl::StatusOr<std::shared_ptr<Value>> AllocateParts(
    std::shared_ptr<const TensorType> type, std::shared_ptr<const Placement> placement,
    const std::function<absl::StatusOr<std::shared_ptr<Value>>(
        size_t place, std::shared_ptr<const TensorType> part)>& allocate);

// Writes bytes of the whole, from `offset` on, to all parts that have some of them; each call once
// the one before has ended (Pool::FillPart). Takes host memory of as many bytes for each device
// that has them in several runs; padding between these becomes zeros. The value and the bytes live
// until `done`.
void FillWhole(Value& value, int64_t offset, absl::string_view bytes, Pool::Done done);
// Reads bytes of the whole of a value that has resolved to OK, as Pool::Read does, and like
// FillWhole.
void ReadWhole(const Value& value, int64_t offset, absl::Span<char> destination, Pool::Done done);
// Both are then plain copies in memory, which have ended when the call returns.
bool IsAllHostMemory(const Value& value);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_WHOLE_H_
