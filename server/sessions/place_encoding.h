// Places in files.
#ifndef KILN_SERVER_SESSIONS_PLACE_ENCODING_H_
#define KILN_SERVER_SESSIONS_PLACE_ENCODING_H_

#include "server/sessions/encoding.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// One without an error.
void PutPlace(Encoder& out, const Place& place);
// Fails the decoder for what no request can say.
Place TakePlace(Decoder& in);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_PLACE_ENCODING_H_
