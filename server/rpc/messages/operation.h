// Conversion of operations from the wire to the sessions' form.
#ifndef KILN_SERVER_RPC_MESSAGES_OPERATION_H_
#define KILN_SERVER_RPC_MESSAGES_OPERATION_H_

#include "kiln/v1/session.pb.h"
#include "server/sessions/operations/operation.h"

namespace kiln::rpc {

// Moves bulk data out of `request`. Charges a graph to `account`.
sessions::Operation ToOperation(v1::ConnectRequest& request, memory::Account& account);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_OPERATION_H_
