#include "compiler/graph/mesh.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/graph/error.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {
namespace {

absl::Status MeshError(std::string_view message) { return MakeError("MESH", {}, message); }

bool IsAxisName(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

}  // namespace

std::vector<int64_t> Encode(const Spec& spec) {
  std::vector<int64_t> values;
  for (const std::vector<int>& axes : spec) {
    values.push_back(static_cast<int64_t>(axes.size()));
    values.insert(values.end(), axes.begin(), axes.end());
  }
  return values;
}

Spec Decode(absl::Span<const int64_t> values, size_t rank) {
  Spec spec(rank);
  size_t next = 0;
  for (std::vector<int>& axes : spec) {
    for (int64_t count = values[next++]; count > 0; --count) {
      axes.push_back(static_cast<int>(values[next++]));
    }
  }
  return spec;
}

bool IsWhole(const Spec& spec) {
  return std::all_of(spec.begin(), spec.end(), [](const auto& axes) { return axes.empty(); });
}

int64_t NumDevices(const Mesh& mesh) {
  int64_t product = 1;
  for (const Mesh::Axis& axis : mesh.axes) product *= axis.size;
  return product;
}

int64_t Parts(const Mesh& mesh, const Spec& spec, size_t dim) {
  int64_t product = 1;
  if (dim >= spec.size()) return product;
  for (const int axis : spec[dim]) product *= mesh.axes[axis].size;
  return product;
}

ir::Shape LocalShape(const Mesh& mesh, const Spec& spec, const ir::Shape& shape) {
  ir::Shape local = shape;
  for (size_t dim = 0; dim < local.size(); ++dim) {
    const int64_t parts = Parts(mesh, spec, dim);
    local[dim] = local[dim] / parts + (local[dim] % parts != 0 ? 1 : 0);
  }
  return local;
}

std::string Print(const Mesh& mesh, const Spec& spec) {
  std::string text = "[";
  for (size_t dim = 0; dim < spec.size(); ++dim) {
    StrAppend(&text, dim == 0 ? "" : ", ", spec[dim].empty() ? "_" : "");
    for (size_t i = 0; i < spec[dim].size(); ++i) {
      StrAppend(&text, i == 0 ? "" : "+", mesh.axes[spec[dim][i]].name);
    }
  }
  return text + "]";
}

absl::Status CheckMesh(const Mesh& mesh) {
  if (mesh.axes.empty() || mesh.axes.size() > kMeshAxesMax) {
    return MeshError(
        StrCat("the mesh has ", mesh.axes.size(), " axes; it must have 1 to ", kMeshAxesMax));
  }
  absl::flat_hash_set<std::string> names;
  int64_t devices = 1;
  for (const Mesh::Axis& axis : mesh.axes) {
    if (!IsAxisName(axis.name)) {
      return MeshError(StrCat("the mesh has an axis named ", Quoted(axis.name),
                              "; a name must have 1 to 64 letters, digits and \"_\""));
    }
    if (!names.insert(axis.name).second) {
      return MeshError(StrCat("the mesh has two axes named ", Quoted(axis.name)));
    }
    if (axis.size < 1 || axis.size > kMeshDevicesMax || devices * axis.size > kMeshDevicesMax) {
      return MeshError(StrCat("the mesh's axis ", Quoted(axis.name), " has size ", axis.size,
                              "; sizes must be at least 1, and a mesh can have at most ",
                              kMeshDevicesMax, " devices"));
    }
    devices *= axis.size;
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const Mesh& mesh, const Spec& spec, const ir::Shape& shape,
                       std::string_view what) {
  if (spec.size() > shape.size()) {
    return MeshError(
        StrCat(what, " has ", shape.size(), " dimensions, but its spec has ", spec.size()));
  }
  std::vector<int> used(mesh.axes.size(), 0);
  for (size_t dim = 0; dim < spec.size(); ++dim) {
    for (const int axis : spec[dim]) {
      if (axis < 0 || axis >= static_cast<int>(mesh.axes.size())) {
        return MeshError(StrCat(what, " is split by axis ", axis, " of a mesh that has ",
                                mesh.axes.size(), " axes"));
      }
      if (used[axis]++ > 0) {
        return MeshError(StrCat(what, " is split twice by the mesh's axis ",
                                Quoted(mesh.axes[axis].name),
                                "; an axis can split only one dimension"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::graph
