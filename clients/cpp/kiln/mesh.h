// Devices as a grid, and how tensors lie on one.
//
//   const kiln::Mesh mesh = {.axes = {{"data", 2}}, .devices = {"cuda:0", "cuda:1"}};
//   auto x = *client->Upload<float>({64, 784}, values, {.mesh = mesh, .spec = {{"data"}}});
//
//   kiln::GraphBuilder builder;
//   builder.SetMesh(mesh);
//   kiln::Value input = builder.Input(kiln::DType::kFloat32, {64, 784});
//   builder.Lay(input, {{"data"}});                     // as what is passed for it lies
//   builder.Output(kiln::ops::Mean(input));             // each device has all of it
#ifndef KILN_CLIENTS_CPP_KILN_MESH_H_
#define KILN_CLIENTS_CPP_KILN_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

// Devices of one daemon as a grid with named axes: at most four axes and 64 devices.
struct Mesh {
  struct Axis {
    std::string name;  // 1 to 64 letters, digits and "_"; each once
    uint32_t size = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes = {};
  // As many as the product of the sizes, each once; row-major: the last axis counts fastest.
  std::vector<std::string> devices = {};
  bool operator==(const Mesh&) const = default;
};

// By dimension of a tensor the names of the axes that split it, the first one counting slowest.
// Parts are equal; of a size that does not come out even the last devices have less, or nothing.
// What is missing at the end is not split. Devices that differ in other axes alone have the same.
using Spec = std::vector<std::vector<std::string>>;

// Where a tensor lies.
struct Placement {
  Mesh mesh = {};
  Spec spec = {};
  // Instead of a mesh: all of it on the device of this name. With neither: on the session's.
  std::string device = {};
};

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_MESH_H_
