// Where a value lies: on one device, or in parts on those of a mesh.
#ifndef KILN_SERVER_BUFFERS_PLACEMENT_H_
#define KILN_SERVER_BUFFERS_PLACEMENT_H_

#include <memory>
#include <vector>

#include "compiler/graph/mesh.h"

namespace kiln::buffers {

class Pool;

// Of a value on several devices; immutable and shared by all values that lie so. A pool stands for
// its device.
struct Placement {
  std::vector<std::shared_ptr<Pool>> pools;  // one for each place of the mesh, row-major
  graph::Mesh mesh;
  graph::Spec spec;  // as long as the value has dimensions
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_PLACEMENT_H_
