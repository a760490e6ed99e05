// Places buffers in memory; buffers that are never live together may share bytes.
#ifndef KILN_COMPILER_SHARD_PLACE_H_
#define KILN_COMPILER_SHARD_PLACE_H_

#include "compiler/shard/program.h"

namespace kiln::shard {

// Sets the offsets of all buffers of the kind, each a multiple of kPublishedAlignment, and returns
// how many bytes they take together. Places the largest first, each at the lowest offset where it
// fits.
int64_t PlaceBuffers(Buffer::Kind kind, std::vector<Buffer>* buffers);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PLACE_H_
