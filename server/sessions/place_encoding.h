// Encodes placements (Place) in files.
#ifndef KILN_SERVER_SESSIONS_PLACE_ENCODING_H_
#define KILN_SERVER_SESSIONS_PLACE_ENCODING_H_

#include "server/sessions/encoding.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// Requires: `place` has no error.
void PutPlace(Encoder& out, const Place& place);
// Fails the decoder if no request could have this placement.
Place TakePlace(Decoder& in);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_PLACE_ENCODING_H_
