// Calls of Upload: blobs are received one after another.
#ifndef KILN_SERVER_RPC_SERVICES_UPLOAD_READER_H_
#define KILN_SERVER_RPC_SERVICES_UPLOAD_READER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/services/services.h"

namespace kiln::rpc {

// Takes the call, and lives as long as it. Each blob is stored with its last byte, so ending the
// call loses only the unfinished one. A call counts as one upload under way, of one session. Its
// place among the user's large uploads is that of its current blob.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartUpload(const BlobServiceParts& parts,
                                                       const grpc::CallbackServerContext& context,
                                                       grpc::ByteBuffer* response);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_UPLOAD_READER_H_
