// Well-known graphs, for the golden files of fused kernels.
#ifndef KILN_TESTS_GOLDEN_GRAPHS_H_
#define KILN_TESTS_GOLDEN_GRAPHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace kiln::golden {

struct KnownGraph {
  std::string name;    // of the golden file
  graph::Graph graph;  // differentiated and simplified
};

// Small enough to be interpreted.
std::vector<KnownGraph> KnownGraphs();

struct ConvnetSizes {
  int64_t batch = 128;
  int64_t image = 28;        // height and width
  int64_t channels = 32;     // of the first two convolutions; the others have twice as many
  int64_t first_kernel = 5;  // of the first two convolutions; the others have 3
};
// One training step: two convolutions with relu, batch norm and max pool, twice, a linear layer,
// cross entropy; Adam. The output is the loss; the updates are parameters, moments and running
// statistics.
KnownGraph ConvnetStep(const ConvnetSizes& sizes);

struct TransformerSizes {
  int64_t batch = 8;
  int64_t tokens = 128;
  int64_t width = 256;
  int64_t heads = 4;
  int64_t words = 1000;
};
// One training step of an embedding, one block (layer norm, causal attention, layer norm, gelu) and
// a linear layer; cross entropy; Adam.
KnownGraph TransformerStep(const TransformerSizes& sizes);

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_GRAPHS_H_
