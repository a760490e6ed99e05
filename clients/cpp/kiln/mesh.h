// Meshes of devices, and the layouts of tensors on them.
//
//   const kiln::Mesh mesh = {.axes = {{"data", 2}}, .devices = {"cuda:0", "cuda:1"}};
//   auto x = *client->Upload<float>({64, 784}, values, {.mesh = mesh, .spec = {{"data"}}});
//
//   kiln::GraphBuilder builder;
//   builder.SetMesh(mesh);
//   kiln::Value input = builder.Input(kiln::DType::kFloat32, {64, 784});
//   builder.Lay(input, {{"data"}});                     // the layout of the tensors passed for it
//   builder.Output(kiln::ops::Mean(input));             // each device has the whole result
#ifndef KILN_CLIENTS_CPP_KILN_MESH_H_
#define KILN_CLIENTS_CPP_KILN_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

// A grid of devices of one daemon, with named axes: at most four axes and 64 devices.
struct Mesh {
  struct Axis {
    std::string name;  // 1 to 64 letters, digits and "_"; each once
    uint32_t size = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes = {};
  // As many as the product of the axes' sizes, each once; row-major: the last axis varies fastest.
  std::vector<std::string> devices = {};
  bool operator==(const Mesh&) const = default;
};

// For each dimension of a tensor, the names of the axes that split it; the first one varies
// slowest. Parts are equal; if a size does not divide evenly, the last devices have less of it, or
// nothing. Dimensions without an entry are not split. Devices that differ only in other axes hold
// the same data.
using Spec = std::vector<std::vector<std::string>>;

// The devices on which a tensor is stored, and its layout.
struct Placement {
  Mesh mesh = {};
  Spec spec = {};
  // Used instead of a mesh: the whole tensor is on this device. If both are empty: on the
  // session's.
  std::string device = {};
};

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_MESH_H_
