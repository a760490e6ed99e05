// Machine-readable details of an absl::Status: a constant reason, and the subject of the error.
//
// They are stored as payloads of the status, with type URLs "kiln/reason" and "kiln/<key>"; rpc/
// converts them to the ErrorInfo on the wire. Copying a status keeps them, so a dependent operation
// fails with the original reason.
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

// The prefix of payload type URLs.
inline constexpr absl::string_view kPayloadPrefix = "kiln/";

using Detail =
    std::pair<absl::string_view, std::string>;  // key, value; for example {"handle", "7"}

// Returns `status` with a reason (constant, upper case: "UNKNOWN_HANDLE") and details, which are
// shortened like names in messages (compiler/ir/quoted.h). OK stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        std::initializer_list<Detail> details = {});

// Returns the same error with a message of at most 1,000 bytes, cut between characters: much more
// does not fit into the trailer of a call, and errors are kept in memory.
absl::Status WithBoundedMessage(const absl::Status& status);

// The approximate memory of a status.
int64_t BytesOf(const absl::Status& status);

// The reason; without one, the name of the code ("INVALID_ARGUMENT").
std::string Reason(const absl::Status& status);

// All details except the reason.
std::map<std::string, std::string> Details(const absl::Status& status);

}  // namespace kiln::errors

#endif  // KILN_SERVER_ERRORS_ERRORS_H_
