// Finds the program that a user means.
#ifndef KILN_CLIENTS_CLI_FIND_PROGRAM_H_
#define KILN_CLIENTS_CLI_FIND_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/command.h"
#include "kiln/v1/program.pb.h"

namespace kiln::cli {

absl::StatusOr<v1::ListProgramsResponse> ListPrograms(const Invocation& invocation);

// Returns the digest of the one program in `programs` whose digest begins with `wanted`, or else of
// the newest one with that name. NOT_FOUND lists the existing programs; INVALID_ARGUMENT: several
// digests begin with `wanted`.
absl::StatusOr<std::string> FindProgram(const v1::ListProgramsResponse& programs,
                                        const std::string& wanted);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_FIND_PROGRAM_H_
