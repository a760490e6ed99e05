// Messages between the pool and its workers: a job, and the answer to it. Both sides are the same
// executable, so the format needs no version. Malformed messages are refused, since a failing
// worker may send anything.
#ifndef KILN_COMPILER_WORKERS_MESSAGE_H_
#define KILN_COMPILER_WORKERS_MESSAGE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/kernel_image.h"
#include "proto/coding/coding.h"

namespace kiln::workers {

// `number` identifies the job; the answer repeats it.
std::string EncodeJob(uint64_t number, const KernelJob& job);
bool DecodeJob(std::string_view bytes, uint64_t* number, KernelJob* job);

// An error keeps its code, message and payloads.
std::string EncodeAnswer(uint64_t number, const absl::StatusOr<drivers::KernelImage>& image);
// Returns false if `bytes` is not an answer to this job.
bool DecodeAnswer(std::string_view bytes, uint64_t number, const KernelJob& job,
                  absl::StatusOr<drivers::KernelImage>* image);

// An error as the last part of a message: its payloads extend to the end. TakeStatus accepts no OK
// status.
void PutStatus(ByteWriter& out, const absl::Status& status);
absl::Status TakeStatus(ByteReader& in);

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_MESSAGE_H_
