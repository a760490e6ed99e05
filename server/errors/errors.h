// Machine-readable details on an absl::Status: a constant reason and what the error is about.
//
// They travel as payloads of the status, type URL "kiln/reason" and "kiln/<key>"; rpc/ turns them
// into the ErrorInfo of the wire. Copying a status keeps them, so that a dependent operation fails
// with the original reason.
#ifndef KILN_SERVER_ERRORS_ERRORS_H_
#define KILN_SERVER_ERRORS_ERRORS_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::errors {

// Payload type URLs start with this.
inline constexpr absl::string_view kPayloadPrefix = "kiln/";

using Detail =
    std::pair<absl::string_view, std::string>;  // key, value; for example {"handle", "7"}

// `status` with a reason (constant, upper case: "UNKNOWN_HANDLE") and details, which are shortened
// as names in messages are (compiler/ir/quoted.h). OK stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        std::initializer_list<Detail> details = {});

// The same error with a message of 1,000 bytes at most, cut between characters: much more does not
// fit into the trailer of a call, and what fails is remembered.
absl::Status WithBoundedMessage(const absl::Status& status);

// Bytes of memory that it takes; about.
int64_t BytesOf(const absl::Status& status);

// The reason; without one, the name of the code ("INVALID_ARGUMENT").
std::string Reason(const absl::Status& status);

// All details but the reason.
std::map<std::string, std::string> Details(const absl::Status& status);

}  // namespace kiln::errors

#endif  // KILN_SERVER_ERRORS_ERRORS_H_
