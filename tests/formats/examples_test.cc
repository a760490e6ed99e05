// The files in `examples`, one or more for each format of docs/formats, are what the code writes
// for known data. test_format_examples.py decodes them as the pages say, without this code. With
// KILN_UPDATE_EXAMPLES=1 the tests write the files anew.
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/cached_kernel.h"
#include "compiler/workers/message.h"
#include "drivers/interface/kernel_image.h"
#include "gtest/gtest.h"
#include "proto/coding/coding.h"
#include "proto/digest/sha256.h"
#include "server/auth/audit_log.h"
#include "server/auth/token.h"
#include "server/auth/user_store.h"
#include "server/cache/kernel_cache.h"
#include "server/cache/secret.h"
#include "server/errors/errors.h"
#include "server/quota/limit_store.h"
#include "server/runtime/cache/graph_source.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/checkpoint/log.h"
#include "server/sessions/checkpoint/log_record.h"
#include "server/sessions/checkpoint/sealed_file.h"
#include "server/sessions/closed_sessions.h"
#include "server/tuner/setting_store.h"
#include "server/tuner/trial_messages.h"
#include "server/tuner/tuned_setting.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;

std::string ExamplePath(const std::string& name) { return absl::StrCat(KILN_TEST_DATA, "/", name); }

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Updates() { return std::getenv("KILN_UPDATE_EXAMPLES") != nullptr; }

void ExpectExample(const std::string& name, const std::string& bytes) {
  const std::string path = ExamplePath(name);
  if (Updates()) std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(Content(path), bytes)
      << path << " is not what the code writes. If the format has a new version, describe it in "
      << "docs/formats and write the examples anew with KILN_UPDATE_EXAMPLES=1";
}

class ExamplesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/kiln_examples_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    // A copy, because a key must be readable only by its user.
    const std::string key = folder_ + "/example.key";
    fs::copy_file(ExamplePath("example.key"), key);
    chmod(key.c_str(), 0600);
    auto secret = cache::Secret::OpenExisting(key);
    ASSERT_TRUE(secret.ok()) << secret.status();
    secret_ = std::make_unique<cache::Secret>(*std::move(secret));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_;
  std::unique_ptr<cache::Secret> secret_;
};

absl::Status ExampleError() {
  return errors::WithReason(absl::NotFoundError("no tensor 9"), "UNKNOWN_HANDLE",
                            {{"handle", "9"}});
}

sessions::RequestedPlacement OnTwoDevices() {
  auto sharding = std::make_shared<buffers::Placement>();
  sharding->devices = {"cpu:0", "cpu:1"};
  sharding->mesh.axes = {{"data", 2}};
  sharding->spec = {{0}, {}};
  return {.sharding = std::move(sharding)};
}

sessions::Checkpoint ExampleCheckpoint() {
  using Kind = sessions::Checkpoint::Value::Kind;
  sessions::Checkpoint checkpoint;
  checkpoint.identity = {.number = 3,
                         .id = "secret id",
                         .name = "s3",
                         .client = {"python", "1.0", "ann's laptop", 7, true},
                         .lease = absl::Seconds(900),
                         .away_lease = absl::Seconds(60),
                         .priority = fairness::Priority::kBatch,
                         .opened = absl::FromUnixSeconds(1'700'000'000),
                         .checkpoint_interval = absl::Seconds(5)};
  checkpoint.generation = 2;
  checkpoint.parked = sessions::Park{"night", absl::Hours(8), {{"weights", 1}}};
  checkpoint.user = "ann";
  checkpoint.device = "cpu:0";
  checkpoint.remaining = absl::Seconds(300);
  checkpoint.executed = 20;
  checkpoint.runs = 11;
  checkpoint.device_seconds = 0.5;
  auto first = std::make_shared<sessions::ProgramOrigin>();
  first->wire = "graph 1";
  first->name = "step";
  first->settings = 1'700'000'000'000'000;
  auto second = std::make_shared<sessions::ProgramOrigin>();
  second->wire = "graph 2";
  second->devices = {"cpu:0", "cpu:1"};
  second->live = true;
  checkpoint.origins = {std::move(first), std::move(second)};
  checkpoint.values = {
      {.kind = Kind::kBytes, .type = {ir::DType::kInt16, {2, 3}}},
      {.kind = Kind::kBytes, .type = {ir::DType::kUInt8, {4, 1}}, .placement = OnTwoDevices()},
      {.kind = Kind::kFailed, .error = ExampleError()},
      {},
      {},
      {.kind = Kind::kBytes, .type = {ir::DType::kBool, {}}, .placement = {.device = "cpu:1"}}};
  checkpoint.pending = {{15, sessions::SavedRun{.origin = 0,
                                                .bindings = {{"n", -5}},
                                                .inputs = {0, 2},
                                                .results = {3},
                                                .report_time = true,
                                                .updates = {{1, 0}}}},
                        {16, sessions::SavedDefinition{1}},
                        {17, sessions::SavedRead{1}},
                        {18, sessions::SavedBarrier{}},
                        {19, sessions::SavedMove{3, 4, OnTwoDevices()}}};
  checkpoint.answers = {{.sequence = 13, .error = ExampleError()},
                        {.sequence = 14, .value = 5, .digest = "digest", .device_seconds = 0.25}};
  for (const uint64_t handle : {1, 2, 3, 4, 9}) checkpoint.used_handles.Insert(handle);
  checkpoint.handles = {{1, 3}, {2, 1}, {4, 4}};
  for (const uint64_t program : {1, 2}) checkpoint.used_programs.Insert(program);
  checkpoint.programs = {{.number = 1, .origin = 0}, {.number = 2, .error = ExampleError()}};
  checkpoint.blobs = {{.name = "blob", .size = 5}};
  checkpoint.cancelled = {{.first = 21, .cancel = 25}};
  checkpoint.log = 2;
  checkpoint.is_live = true;
  return checkpoint;
}

// 12 bytes, 4 bytes and 1 byte of values, then 5 of the blob.
constexpr char kExampleBytes[] = "value 1 ....v2..1blob.";

TEST_F(ExamplesTest, SessionFile) {
  const sessions::Checkpoint checkpoint = ExampleCheckpoint();
  const std::string path = folder_ + "/example.session";
  auto writer = sessions::SealedWriter::Open(path, *secret_, sessions::kCheckpointVersion,
                                             Encode(checkpoint), checkpoint.data_bytes());
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ(checkpoint.data_bytes(), sizeof(kExampleBytes) - 1);
  ASSERT_TRUE((*writer)->Write(kExampleBytes).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  ExpectExample("example.session", Content(path));
  auto reader = sessions::SealedReader::Open(path, *secret_, sessions::kCheckpointVersion);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(sessions::Decode((*reader)->description()).ok());
}

class ExampleGraph : public runtime::GraphSource {
 public:
  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return variables_; }
  std::string Wire() const override { return "graph 1"; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings&, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    return absl::UnimplementedError("only an example");
  }

 private:
  const std::string key_ = "00";
  const std::vector<runtime::Variable> variables_;
};

// One record of each kind of operation; a Write's has the bytes, too.
std::vector<std::string> OperationRecords() {
  const buffers::TensorType type{ir::DType::kUInt8, {2, 2}};
  const sessions::Operation operations[] = {
      sessions::UnknownOperation{},
      sessions::DefineProgram{1, std::make_shared<const ExampleGraph>(), "step"},
      sessions::DefineProgram{2, ExampleError(), "broken"},
      sessions::DefineProgram{
          3, std::make_shared<const ExampleGraph>(), "on two", {"cpu:0", "cpu:1"}, {}, "", true, 5},
      sessions::RunProgram{1, {1, 2}, {3}, {{"n", -5}}, true},
      sessions::Write{4, type, "", {"blob"}},
      sessions::Write{5, type, "", {}, OnTwoDevices()},
      sessions::Move{4, 6, {.device = "cpu:1"}},
      sessions::Read{3},
      sessions::Release{{1, 2}, {"blob"}},
      sessions::ReleaseProgram{1},
      sessions::Barrier{},
      sessions::Cancel{7},
      sessions::Park{"night", absl::Hours(8), {{"weights", 3}}},
      sessions::Refused{ExampleError(), {8}}};
  std::vector<std::string> records;
  for (const sessions::Operation& operation : operations) {
    const sessions::ExecutedRecord executed{.sequence = records.size() + 1,
                                            .acknowledged = records.size(),
                                            .highest_handle = 300,
                                            .highest_program = 3};
    records.push_back(
        absl::StrCat(EncodeHead(executed), EncodeOperation(operation),
                     std::holds_alternative<sessions::Write>(operation) ? "data" : ""));
  }
  return records;
}

TEST_F(ExamplesTest, SessionLog) {
  const sessions::LogLocation location{folder_ + "/example", "secret id", "boot id"};
  sessions::SessionLog log(
      location, *secret_, [](int64_t) { return absl::OkStatus(); }, 0, "");
  ASSERT_TRUE(log.Begin("").ok());
  for (const std::string& record : OperationRecords()) ASSERT_TRUE(log.Append({record}).ok());
  ASSERT_TRUE(log.Begin("night").ok());
  for (const std::string& record :
       {Encode(sessions::CancelledRecord{21, 25, {21, 22}}),
        absl::StrCat(EncodeHead(sessions::BlobRecord{"blob", ""}), "bytes"),
        Encode(sessions::TakenOverRecord{3}), Encode(sessions::BlobsDeletedRecord{{"a", "b"}})})
    ASSERT_TRUE(log.Append({record}).ok());
  for (const uint64_t number : {1, 2}) {
    const std::string path = sessions::SegmentPath(location.stem, number);
    ExpectExample(fs::path(path).filename(), Content(path));
  }
}

drivers::KernelImage ExampleKernel() {
  drivers::KernelImage image;
  image.name = "add_64";
  image.architecture = "opencl-c";
  image.code = "__kernel void add_64() {}";
  image.grid_size = 12;
  image.block_size = 256;
  image.shared_bytes = 1024;
  image.num_arguments = 3;
  image.takes_slot_table = true;
  image.finished = "binary";
  image.access = {drivers::Access::kRead, drivers::Access::kWrite, drivers::Access::kReadWrite};
  image.flops = 64;
  image.bytes = 768;
  return image;
}

TEST_F(ExamplesTest, KernelImage) { ExpectExample("image.kernel", ExampleKernel().Serialize()); }

std::string ExampleCachedKernel() {
  compiler::CompiledKernel kernel;
  kernel.schedule = "split 0 8";
  kernel.refused_schedule = "vector 0";
  kernel.refusal = "it computes something else";
  kernel.compile_seconds = 0.125;
  kernel.image = ExampleKernel();
  return compiler::EncodeCachedKernel(kernel);
}

std::string ExampleTunedKernel() {
  compiler::CompiledKernel kernel;
  kernel.schedule = "split 0 8";
  kernel.image = ExampleKernel();
  kernel.setting = "setting 1\nstage 0 lanes=5\n";
  kernel.setting_refusal = "stage 0: lanes is 5";
  kernel.setting_ignored = "'polish=3': this version has no such knob";
  return compiler::EncodeCachedKernel(kernel);
}

// The database is what SQLite makes of it, so only its content is compared.
TEST_F(ExamplesTest, KernelCache) {
  const auto open = [this] {
    return cache::KernelCache(
        {.folder = folder_, .now = [] { return absl::FromUnixSeconds(1'700'000'000); }});
  };
  fs::rename(folder_ + "/example.key", folder_ + "/kernels.key");
  const std::string path = folder_ + "/kernels.sqlite";
  if (Updates()) {
    open().Put("example key", ExampleCachedKernel());
    open().Put("tuned key", ExampleTunedKernel());
    fs::copy_file(path, ExamplePath("kernels.sqlite"), fs::copy_options::overwrite_existing);
  } else {
    fs::copy_file(ExamplePath("kernels.sqlite"), path);
  }
  EXPECT_EQ(open().Get("example key"), ExampleCachedKernel());
  EXPECT_EQ(open().Get("tuned key"), ExampleTunedKernel());
}

std::vector<tuner::TunedSetting> ExampleSettings() {
  const tuner::TunedSetting first = {
      .kernel =
          "buffer b0 float32[100] read\nbuffer b1 float32[100] write\n"
          "stage r0:100\n  b1[r0] = exp2(b0[r0])\n",
      .hardware = "x86-64;x86-64-v3;+avx2,+fma;u2;v32x16;t1x1;s0;m32768;c524288",
      .version = 1,
      .setting = "setting 1\nstage 0 form=point_lanes lanes=8\n",
      .seconds_before = 0.0015,
      .seconds_after = 0.00125,
      .roofline_seconds = 1e-7,
      .measured = absl::FromUnixSeconds(1'700'000'000),
      .width = 4};
  tuner::TunedSetting second = first;
  second.hardware = "opencl-c;a \"GPU\"\xc3\xa9";
  second.setting = "";
  return {first, second};
}

TEST_F(ExamplesTest, SettingsText) {
  ExpectExample("settings.txt", tuner::PrintSettings(ExampleSettings()));
  const auto parsed = tuner::ParseSettings(Content(ExamplePath("settings.txt")));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->size(), 2);
}

TEST_F(ExamplesTest, SettingStore) {
  const auto open = [this] {
    return std::make_unique<tuner::SettingStore>(tuner::SettingStore::Options{
        .folder = folder_, .now = [] { return absl::FromUnixSeconds(1'700'000'001); }});
  };
  fs::rename(folder_ + "/example.key", folder_ + "/settings.key");
  const std::string path = folder_ + "/settings.sqlite";
  if (Updates()) {
    for (const tuner::TunedSetting& setting : ExampleSettings())
      ASSERT_EQ(open()->Put(setting), absl::OkStatus());
    fs::copy_file(path, ExamplePath("settings.sqlite"), fs::copy_options::overwrite_existing);
  } else {
    fs::copy_file(ExamplePath("settings.sqlite"), path);
  }
  for (const tuner::TunedSetting& setting : ExampleSettings())
    EXPECT_EQ(open()->Find(setting.kernel, setting.hardware), setting);
  EXPECT_EQ(open()->Export()->text, Content(ExamplePath("settings.txt")));
}

// Its entries have no changes: their settings were always there.
TEST_F(ExamplesTest, SettingStoreOfVersion1) {
  fs::rename(folder_ + "/example.key", folder_ + "/settings.key");
  fs::copy_file(ExamplePath("settings.1.sqlite"), folder_ + "/settings.sqlite");
  tuner::SettingStore store(
      {.folder = folder_, .now = [] { return absl::FromUnixSeconds(1'700'000'001); }});
  for (const tuner::TunedSetting& setting : ExampleSettings())
    EXPECT_EQ(store.Find(setting.kernel, setting.hardware), setting);
  EXPECT_EQ(store.last_change(), 1'700'000'001'000'000);
}

TEST_F(ExamplesTest, Rates) {
  tuner::DeviceRates rates;
  rates.all.float32 = {.fused = 4e11, .other = 2e11};
  rates.all.traffic = {{.bytes = 65536, .read = 2e11},
                       {.bytes = 67'108'864, .read = 4e10, .write = 2e10, .copy = 3e10}};
  rates.thread.float64 = {.fused = 5e10, .other = 2.5e10};
  rates.threads = 2;
  rates.launch_seconds = 1e-7;
  ExpectExample("rates.entry", tuner::EncodeRates(rates));
  EXPECT_EQ(tuner::DecodeRates(Content(ExamplePath("rates.entry"))), rates);
}

workers::KernelJob ExampleJob() {
  workers::KernelJob job;
  job.name = "add_64";
  job.kernel = "a kernel";
  job.schedule = "split 0 8";
  job.target.architecture = "opencl-c";
  job.target.processor = "gfx90a";
  job.target.features = "+f";
  job.target.variant = "f";
  job.target.finisher = {"opencl", "a GPU", "1.0"};
  job.unfinished = ExampleKernel();
  return job;
}

TEST_F(ExamplesTest, WorkerMessages) {
  ExpectExample("answer.message", workers::EncodeAnswer(7, ExampleKernel()));
  absl::Status error = absl::InternalError("no such instruction");
  error.SetPayload("kiln/reason", absl::Cord("WRONG"));
  ExpectExample("error.message", workers::EncodeAnswer(7, error));
  workers::KernelJob rehearsal = ExampleJob();
  rehearsal.rehearsal = {.graph = "a graph",
                         .key = "a key",
                         .choices = "choices 1\n",
                         .disabled_passes = {"cluster", "simplify"},
                         .setting = "setting 1\n"};
  const std::pair<const char*, workers::KernelJob> jobs[] = {{"job.message", ExampleJob()},
                                                             {"rehearsal.message", rehearsal}};
  for (const auto& [name, wanted] : jobs) {
    // The padding of the structs in a job has no known bytes, so jobs are not compared bit by bit.
    if (Updates())
      std::ofstream(ExamplePath(name), std::ios::binary) << workers::EncodeJob(7, wanted);
    uint64_t number = 0;
    workers::KernelJob job;
    ASSERT_TRUE(workers::DecodeJob(Content(ExamplePath(name)), &number, &job))
        << name << ": Target has changed? KILN_UPDATE_EXAMPLES=1 writes the example anew";
    EXPECT_EQ(number, 7);
    EXPECT_EQ(job.target.CacheKey(), ExampleJob().target.CacheKey());
    EXPECT_EQ(job.rehearsal.has_value(), wanted.rehearsal.has_value());
  }
}

TEST_F(ExamplesTest, TrialMessages) {
  const tuner::OpenRequest open{"a kernel", "opencl-c gfx90a", 11, uint64_t{1} << 33};
  ExpectExample("trial_open.message", tuner::EncodeRequest(300, open));
  ExpectExample("trial_prepare.message",
                tuner::EncodeRequest(301, tuner::PrepareRequest{{.sample = kernel::Sample::kOdd}}));
  ExpectExample(
      "trial_load.message",
      tuner::EncodeRequest(302, tuner::LoadRequest{5, {3, 400}, {{ExampleKernel(), {0, 2, 1}}}}));
  ExpectExample("trial_time.message", tuner::EncodeRequest(303, tuner::TimeRequest{5, 1000, 0.25}));
  ExpectExample(
      "trial_run.message",
      tuner::EncodeRequest(304, tuner::RunRequest{5, {kernel::Sample::kEqual, 0.25, 7}, 1.5}));
  ExpectExample("trial_answer.message", tuner::EncodeTrialAnswer(303, 0.125));
  absl::Status error = absl::DataLossError("it writes outside its outputs");
  error.SetPayload("kiln/reason", absl::Cord("WRONG"));
  ExpectExample("trial_error.message", tuner::EncodeTrialAnswer(304, error));
}

TEST_F(ExamplesTest, StateTables) {
  const absl::Time created = absl::FromUnixSeconds(1'700'000'000);
  auto users = auth::UserStore::Open(folder_ + "/users");
  ASSERT_TRUE(users.ok());
  ASSERT_TRUE((*users)
                  ->Add({.name = "ann",
                         .role = auth::Role::kAdmin,
                         .identities = {.certificate = true, .system = true},
                         .created = created,
                         .tokens = {{"0011223344556677", "$argon2id$hash", created,
                                     created + absl::Hours(24), secret_->Fingerprint()},
                                    {"8899aabbccddeeff", "$argon2id$other", created}}})
                  .ok());
  ASSERT_TRUE(
      (*users)->Add({.name = "bob", .created = created, .revoked = created + absl::Hours(1)}).ok());
  ExpectExample("users", Content(folder_ + "/users"));
  auto limits = quota::LimitStore::Open(folder_ + "/quotas", {});
  ASSERT_TRUE(limits.ok());
  ASSERT_TRUE((*limits)
                  ->Set("ann", {{quota::Resource::kDeviceMemory, int64_t{4} << 30},
                                {quota::Resource::kSessions, 8}})
                  .ok());
  ExpectExample("quotas", Content(folder_ + "/quotas"));
  sessions::ClosedSessions closed;
  closed.Remember("secret id", "ann", ExampleError());
  ASSERT_TRUE(closed.Save(folder_ + "/ended_sessions").ok());
  ExpectExample("ended_sessions", Content(folder_ + "/ended_sessions"));
}

TEST_F(ExamplesTest, AuditLog) {
  auto log = auth::AuditLog::Open(folder_ + "/audit.jsonl", *secret_, 1 << 20);
  ASSERT_TRUE(log.ok());
  for (const char* subject : {"ann", "a \"name\"\n"}) {
    (*log)->Append({.time = absl::FromUnixMillis(1'700'000'000'123),
                    .user = "root",
                    .action = "add_user",
                    .subject = subject,
                    .outcome = "ok"});
  }
  ExpectExample("audit.jsonl", Content(folder_ + "/audit.jsonl"));
  ExpectExample("audit.jsonl.head", Content(folder_ + "/audit.jsonl.head"));
}

}  // namespace
}  // namespace kiln::testing
