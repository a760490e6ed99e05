// Calls of Upload: blobs come in, one after another.
#ifndef KILN_SERVER_RPC_UPLOAD_READER_H_
#define KILN_SERVER_RPC_UPLOAD_READER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/services.h"

namespace kiln::rpc {

// Takes the call, and lives as long as it. Each blob is stored with its last byte, so that what
// ends the call takes the unfinished one alone. A call is one upload under way, of one session: it
// counts once as such; and its place among those of the user that bring much is that of the blob
// it is at.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartUpload(const DaemonView& daemon,
                                                       const grpc::CallbackServerContext& context,
                                                       grpc::ByteBuffer* response);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_UPLOAD_READER_H_
