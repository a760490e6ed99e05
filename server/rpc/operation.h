// The wire's operations as the sessions know them.
#ifndef KILN_SERVER_RPC_OPERATION_H_
#define KILN_SERVER_RPC_OPERATION_H_

#include "kiln/v1/session.pb.h"
#include "server/sessions/operation.h"

namespace kiln::rpc {

// Takes bulk data out of `request`. A graph is charged to `account`.
sessions::Operation ToOperation(v1::ConnectRequest& request, memory::Account& account);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_OPERATION_H_
