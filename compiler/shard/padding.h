// The pass "pad_shards": sizes that a mesh does not divide become ones that it does.
//
// A dimension that a spec splits into parts that do not come out even is padded at its end, so that
// each device has as much of it, the last ones less that means something. What the tensor has
// stands at the beginning of each dimension; what is behind it is unspecified, and may be NaN:
//
//  * elementwise results, and movements along other dimensions, leave it where it is;
//  * sums, products and maxima over a padded dimension choose their identity there, and scatters
//    an index that is out of range (mask.h);
//  * dimensions are merged and taken apart padded where the outermost one is (padded_shape.h);
//  * everything else takes its operand cut to the tensor's sizes: what is split is gathered.
//
// Where operands meet, the others are padded, too (fit.h), and what is added up to a result that is
// wanted padded is made so. What would become more than graph::kMeshDevicesMax times as large,
// since its operands are padded in several dimensions, takes them cut.
#ifndef KILN_COMPILER_SHARD_PADDING_H_
#define KILN_COMPILER_SHARD_PADDING_H_

#include "compiler/graph/graph.h"

namespace kiln::shard {

// A graph in which all splits come out even: its results begin with those of `graph`, for inputs
// that begin with its inputs. What was padded stands in sharding->padding. The graph itself without
// a mesh, or where nothing is to be padded. No gradient requests. Linear in the graph's nodes.
graph::Graph PadShards(const graph::Graph& graph);

// Whether every spec, those of hints too, divides what it splits.
bool ComesOutEven(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDING_H_
