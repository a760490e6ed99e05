// Access to the row-major bytes of a value, in one device's memory or in parts on several devices.
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

// Calls `run`, in order, for each range that is contiguous both in the whole and in the memory of a
// part, clipped to the bytes [begin, end) of the whole: its offset in the whole, its offset in the
// part, and its size in bytes. Between two runs the part's memory has only padding, so all runs
// together span at most end - begin bytes of it. The cost is proportional to the number of runs
// found.
void ForEachRunWithin(const std::vector<int64_t>& shape, int64_t element_bytes, const Part& part,
                      int64_t begin, int64_t end,
                      const std::function<void(int64_t whole, int64_t part, int64_t bytes)>& run);

// Returns the mesh coordinates whose parts make up the whole, each part once: of devices with the
// same part, the first.
std::vector<size_t> DifferentParts(const Placement& placement, const std::vector<int64_t>& shape);

// Returns a pending value with this placement; `allocate` makes the part of a coordinate. If it
// fails, its error is returned and nothing is kept. Requires: the type fits the placement
// (graph::CheckSpec).
absl::StatusOr<std::shared_ptr<Value>> AllocateParts(
    std::shared_ptr<const TensorType> type, std::shared_ptr<const Placement> placement,
    const std::function<absl::StatusOr<std::shared_ptr<Value>>(
        size_t place, std::shared_ptr<const TensorType> part)>& allocate);

// Writes bytes of the whole, from `offset` on, to all parts that contain some of them; each call
// must come after the previous one has ended (Pool::FillPart). Allocates as much host memory for
// each device that has them in several runs, and overwrites the padding between these with zeros.
// The value and the bytes must live until `done`.
void FillWhole(Value& value, int64_t offset, absl::string_view bytes, Pool::Done done);
// Reads bytes of the whole of a value that has resolved to OK, like Pool::Read, and with the costs
// of FillWhole.
void ReadWhole(const Value& value, int64_t offset, absl::Span<char> destination, Pool::Done done);
// Whether both are plain memory copies, which have ended when the call returns.
bool IsAllHostMemory(const Value& value);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_WHOLE_H_
