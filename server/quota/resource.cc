#include "server/quota/resource.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/check/check.h"

namespace kiln::quota {
namespace {

constexpr ResourceRow kResources[kNumResources] = {
    {Resource::kHostMemory, "host_memory", "of the daemon's host memory",
     "of the daemon's host memory", "read answers, release programs and blobs, or close sessions",
     true, 0},
    {Resource::kDeviceMemory, "device_memory", "of device memory", "of device memory",
     "release tensors, use a smaller batch, or close sessions", true, 0},
    {Resource::kSessions, "sessions", "sessions", "session",
     "close one (`kiln sessions close NAME`)", false, 0},
    {Resource::kBuffers, "buffers", "tensors", "tensor", "release some", false, 1 << 20},
    {Resource::kPrograms, "programs", "programs", "program", "release some", false, 1 << 14},
    {Resource::kOperations, "operations", "unanswered operations", "unanswered operation",
     "wait for answers", false, 1 << 16},
    {Resource::kGraphNodes, "graph_nodes", "nodes in one graph", "node in one graph",
     "split the graph", false, 1 << 18},
    {Resource::kUploads, "uploads", "unfinished uploads", "unfinished upload",
     "wait until some finish", false, 256},
    {Resource::kUploadBytes, "upload_bytes", "of unfinished uploads", "of unfinished uploads",
     "wait until some finish", true, 0},
    {Resource::kDisk, "disk", "of disk for checkpoints", "of disk for checkpoints",
     "release tensors or close sessions before the daemon is restarted", true, 0},
    {Resource::kWeight, "weight", "weight", "weight", "wait for other users", false, kUsualWeight},
};

}  // namespace

absl::Span<const ResourceRow> Resources() { return kResources; }

const ResourceRow& RowOf(Resource resource) {
  const auto index = static_cast<size_t>(resource);
  KILN_CHECK_LT(index, kNumResources);
  KILN_DCHECK_EQ(kResources[index].resource, resource);
  return kResources[index];
}

std::optional<Resource> ParseResource(absl::string_view name) {
  for (const ResourceRow& row : kResources)
    if (row.name == name) return row.resource;
  return std::nullopt;
}

Limits::Limits() {
  for (const ResourceRow& row : kResources) (*this)[row.resource] = row.default_limit;
}

std::string AmountText(Resource resource, int64_t amount) {
  if (!RowOf(resource).is_bytes) return absl::StrCat(amount);
  constexpr absl::string_view kUnits[] = {"KiB", "MiB", "GiB"};
  if (amount < 1 << 10) return absl::StrCat(amount, " bytes");
  double value = static_cast<double>(amount) / (1 << 10);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace kiln::quota
