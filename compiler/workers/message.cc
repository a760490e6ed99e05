#include "compiler/workers/message.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "compiler/workers/fields.h"

namespace kiln::workers {
namespace {

void AppendTarget(const drivers::Target& target, std::string* out) {
  // Fails to compile if a field is added and not sent.
  const auto& [architecture, processor, features, variant, limits, capabilities, costs, rates,
               finisher] = target;
  const auto& [driver, device, version] = finisher;
  for (const std::string* text :
       {&architecture, &processor, &features, &variant, &driver, &device, &version})
    AppendField(*text, out);
  AppendPlain(limits, out);
  AppendPlain(capabilities, out);
  AppendPlain(costs, out);
  AppendPlain(rates, out);
}

bool TakeTarget(std::string_view* in, drivers::Target* target) {
  return TakeField(in, &target->architecture) && TakeField(in, &target->processor) &&
         TakeField(in, &target->features) && TakeField(in, &target->variant) &&
         TakeField(in, &target->finisher.driver) && TakeField(in, &target->finisher.device) &&
         TakeField(in, &target->finisher.version) && TakePlain(in, &target->limits) &&
         TakePlain(in, &target->capabilities) && TakePlain(in, &target->costs) &&
         TakePlain(in, &target->rates);
}

void AppendStatus(const absl::Status& status, std::string* out) {
  AppendPlain(status.raw_code(), out);
  AppendField({status.message().data(), status.message().size()}, out);
  status.ForEachPayload([out](absl::string_view url, const absl::Cord& payload) {
    AppendField({url.data(), url.size()}, out);
    AppendField(std::string(payload), out);
  });
}

// The status is the last part of a message: its payloads extend to the end.
bool TakeStatus(std::string_view in, absl::Status* status) {
  int code = 0;
  std::string message, url, payload;
  if (!TakePlain(&in, &code) || !TakeField(&in, &message)) return false;
  // An error's code must be one of the canonical ones.
  if (code <= 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) return false;
  *status = absl::Status(static_cast<absl::StatusCode>(code), message);
  while (!in.empty()) {
    if (!TakeField(&in, &url) || !TakeField(&in, &payload)) return false;
    status->SetPayload(url, absl::Cord(payload));
  }
  return true;
}

// The field is empty if there is no unfinished image.
bool TakeUnfinished(std::string_view* in, std::optional<drivers::KernelImage>* image) {
  std::string bytes;
  if (!TakeField(in, &bytes)) return false;
  return bytes.empty() || drivers::KernelImage::Deserialize(bytes, &image->emplace());
}

bool TakeImage(std::string_view in, const KernelJob& job, drivers::KernelImage* image) {
  std::string bytes;
  return TakeField(&in, &bytes) && in.empty() && drivers::KernelImage::Deserialize(bytes, image) &&
         image->name == job.name && image->architecture == job.target.architecture;
}

}  // namespace

std::string EncodeJob(uint64_t number, const KernelJob& job) {
  std::string bytes;
  AppendPlain(number, &bytes);
  AppendField(job.name, &bytes);
  AppendField(job.kernel, &bytes);
  AppendField(job.schedule, &bytes);
  AppendTarget(job.target, &bytes);
  AppendField(job.unfinished ? job.unfinished->Serialize() : "", &bytes);
  return bytes;
}

bool DecodeJob(std::string_view bytes, uint64_t* number, KernelJob* job) {
  return TakePlain(&bytes, number) && TakeField(&bytes, &job->name) &&
         TakeField(&bytes, &job->kernel) && TakeField(&bytes, &job->schedule) &&
         TakeTarget(&bytes, &job->target) && TakeUnfinished(&bytes, &job->unfinished) &&
         bytes.empty();
}

std::string EncodeAnswer(uint64_t number, const absl::StatusOr<drivers::KernelImage>& image) {
  std::string bytes;
  AppendPlain(number, &bytes);
  AppendPlain(image.ok(), &bytes);
  if (image.ok()) {
    AppendField(image->Serialize(), &bytes);
  } else {
    AppendStatus(image.status(), &bytes);
  }
  return bytes;
}

bool DecodeAnswer(std::string_view bytes, uint64_t number, const KernelJob& job,
                  absl::StatusOr<drivers::KernelImage>* image) {
  uint64_t answered = 0;
  uint8_t ok = 0;
  if (!TakePlain(&bytes, &answered) || answered != number || !TakePlain(&bytes, &ok) || ok > 1)
    return false;
  if (ok == 1) {
    drivers::KernelImage made;
    if (!TakeImage(bytes, job, &made)) return false;
    *image = std::move(made);
    return true;
  }
  absl::Status status;
  if (!TakeStatus(bytes, &status)) return false;
  *image = std::move(status);
  return true;
}

}  // namespace kiln::workers
