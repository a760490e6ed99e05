// The call TuneProgram: begins a tuning, and sends its progress.
#ifndef KILN_SERVER_RPC_SERVICES_TUNE_CALL_H_
#define KILN_SERVER_RPC_SERVICES_TUNE_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "kiln/v1/program.pb.h"
#include "server/auth/principal.h"
#include "server/rpc/services/services.h"
#include "server/runtime/program/program.h"

namespace kiln::rpc {

void FillProgress(const tuner::TuneProgress& progress, v1::TuneProgramResponse* proto);

// Returns the call's reactor, which deletes itself. The tuning ends soon after the client has gone.
grpc::ServerWriteReactor<v1::TuneProgramResponse>* BeginTuning(
    const ProgramServiceParts& parts, const grpc::CallbackServerContext& context,
    const auth::Principal& caller, const std::shared_ptr<runtime::Program>& program,
    const v1::TuneProgramRequest& request);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_TUNE_CALL_H_
