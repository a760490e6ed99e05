// The pass "pad_shards": pads sizes that a mesh does not divide.
//
// A dimension that a spec splits into unequal parts is padded at its end, so that all devices have
// parts of equal size; on the last ones, less of the part is meaningful. The tensor's elements are
// at the beginning of each dimension. The padding after them is unspecified and may be NaN:
//
//  * elementwise results, and movements along other dimensions, keep the padding;
//  * sums, products and maxima over a padded dimension select their identity there, and scatters an
//    index that is out of range (mask.h);
//  * merged and split dimensions are padded where the outermost one is (padded_shape.h);
//  * all other ops take the operand cut to the tensor's sizes, which gathers a split dimension.
//
// Where operands meet, the others are padded as well (fit.h). A sum whose result is wanted padded
// is computed padded. Where operands padded in several dimensions would make a value more than
// graph::kMeshDevicesMax times as large, they are cut instead.
#ifndef KILN_COMPILER_SHARD_PADDING_H_
#define KILN_COMPILER_SHARD_PADDING_H_

#include "compiler/graph/graph.h"

namespace kiln::shard {

// Returns a graph in which all specs divide what they split. Its results begin with those of
// `graph`, if its inputs begin with the inputs of `graph`. sharding->padding describes what was
// padded. Returns the graph itself without a mesh, or if there is nothing to pad. Requires: no
// gradient requests. Takes time linear in the graph's nodes.
graph::Graph PadShards(const graph::Graph& graph);

// Returns whether every spec, including those of hints, divides what it splits.
bool ComesOutEven(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDING_H_
