// Tests that the stand-in finds mistakes; drivers/hsa tests the driver's correct calls.
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "drivers/hsa/api.h"
#include "drivers/hsa/packet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/hsa/control.h"
#include "tests/stand_ins/testing/library_test.h"

namespace kiln::drivers::hsa {
namespace {

using ::testing::HasSubstr;

// KILN_HSA(hsa_init)() calls the library's function.
#define KILN_HSA(name) (*Find<decltype(name)>(#name))
#define KILN_EXPECT_HSA(call) EXPECT_EQ(call, HSA_STATUS_SUCCESS) << Message()

constexpr hsa_agent_t kHost = {1};
constexpr hsa_agent_t kGpu = {16};
// The agent's number, and the kind of pool.
constexpr hsa_amd_memory_pool_t kArguments = {1 * 4 + 0};
constexpr hsa_amd_memory_pool_t kMemory = {16 * 4 + 1};
constexpr uint64_t kTenSeconds = 1'000'000'000;

class HsaStandInTest : public stand_ins::LibraryTest<stand_ins::hsa::Control> {
 protected:
  void SetUp() override {
    OpenLibrary(KILN_HSA_STAND_IN, "KilnHsaStandInControl", "KilnHsaStandInMessage");
    KILN_EXPECT_HSA(KILN_HSA(hsa_init)());
    mistakes_ = control_->mistakes;
    failed_ = HSA_STATUS_SUCCESS;
    KILN_EXPECT_HSA(KILN_HSA(hsa_queue_create)(
        kGpu, 16, HSA_QUEUE_TYPE_MULTI,
        [](hsa_status_t status, hsa_queue_t*, void* data) {
          static_cast<HsaStandInTest*>(data)->failed_ = status;
        },
        this, UINT32_MAX, UINT32_MAX, &queue_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_signal_create)(1, 0, nullptr, &signal_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_allocate)(kArguments, 64, 0, &arguments_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_agents_allow_access)(1, &kGpu, nullptr, arguments_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_allocate)(kMemory, 64, 0, &memory_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_fill)(memory_, 5, 16));
    LoadCounter();
  }
  void TearDown() override {
    KILN_EXPECT_HSA(KILN_HSA(hsa_queue_destroy)(queue_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_signal_destroy)(signal_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_free)(arguments_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_free)(memory_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_executable_destroy)(executable_));
    EXPECT_EQ(control_->objects, 0);
    KILN_EXPECT_HSA(KILN_HSA(hsa_shut_down)());
  }

  void LoadCounter() {
    std::ifstream file(KILN_HSA_TEST_KERNELS "/counter_1.co", std::ios::binary);
    const std::string code((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    hsa_code_object_reader_t reader = {};
    hsa_executable_symbol_t symbol = {};
    KILN_EXPECT_HSA(
        KILN_HSA(hsa_code_object_reader_create_from_memory)(code.data(), code.size(), &reader));
    KILN_EXPECT_HSA(KILN_HSA(hsa_executable_create_alt)(
        HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_executable_load_agent_code_object)(executable_, kGpu, reader,
                                                                    nullptr, nullptr));
    KILN_EXPECT_HSA(KILN_HSA(hsa_executable_freeze)(executable_, nullptr));
    KILN_EXPECT_HSA(
        KILN_HSA(hsa_executable_get_symbol_by_name)(executable_, "kernel.kd", &kGpu, &symbol));
    KILN_EXPECT_HSA(KILN_HSA(hsa_executable_symbol_get_info)(
        symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel_));
    KILN_EXPECT_HSA(KILN_HSA(hsa_code_object_reader_destroy)(reader));
  }

  // A correct packet: adds 1 to the memory's first number, and decrements the signal.
  Packet Counter() {
    std::memcpy(arguments_, &memory_, sizeof(memory_));
    Packet packet = {.dispatch = {}};
    packet.dispatch.header = PacketHeader(HSA_PACKET_TYPE_KERNEL_DISPATCH, true,
                                          HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_SYSTEM);
    packet.dispatch.setup = 1;
    packet.dispatch.workgroup_size_x = packet.dispatch.workgroup_size_y = 1;
    packet.dispatch.workgroup_size_z = 1;
    packet.dispatch.grid_size_x = packet.dispatch.grid_size_y = packet.dispatch.grid_size_z = 1;
    packet.dispatch.kernel_object = kernel_;
    packet.dispatch.kernarg_address = arguments_;
    packet.dispatch.completion_signal = signal_;
    return packet;
  }
  void Push(const Packet& packet, int64_t doorbell = -1) {
    const uint64_t index = KILN_HSA(hsa_queue_add_write_index_relaxed)(queue_, 1);
    static_cast<Packet*>(queue_->base_address)[index % queue_->size] = packet;
    KILN_HSA(hsa_signal_store_screlease)
    (queue_->doorbell_signal, doorbell < 0 ? static_cast<int64_t>(index) : doorbell);
  }
  bool Ends() {
    for (int i = 0; i < 1000 && failed_ == HSA_STATUS_SUCCESS; ++i) {
      if (KILN_HSA(hsa_signal_wait_scacquire)(signal_, HSA_SIGNAL_CONDITION_LT, 1,
                                              kTenSeconds / 1000, HSA_WAIT_STATE_BLOCKED) == 0)
        return true;
    }
    return false;
  }
  void ExpectMistake(const std::string& what) {
    EXPECT_GT(control_->mistakes, mistakes_);
    EXPECT_THAT(Message(), HasSubstr(what));
  }
  // Introduces an error into a correct packet.
  template <typename Change>
  void ExpectMalformed(Change change, const std::string& what) {
    Packet packet = Counter();
    change(packet);
    Push(packet);
    EXPECT_FALSE(Ends());
    EXPECT_EQ(failed_, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
    ExpectMistake(what);
  }

  int64_t mistakes_ = 0;
  std::atomic<hsa_status_t> failed_ = HSA_STATUS_SUCCESS;
  hsa_queue_t* queue_ = nullptr;
  hsa_signal_t signal_ = {};
  hsa_executable_t executable_ = {};
  uint64_t kernel_ = 0;
  void* arguments_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(HsaStandInTest, AKernelRuns) {
  Push(Counter());
  ASSERT_TRUE(Ends()) << Message();
  EXPECT_EQ(*static_cast<uint32_t*>(memory_), 6u);
  EXPECT_EQ(control_->mistakes, mistakes_);
}

TEST_F(HsaStandInTest, PacketsOfNoTypeAreFound) {
  ExpectMalformed([](Packet& packet) { packet.dispatch.header = HSA_PACKET_TYPE_INVALID; },
                  "a packet of type 1 is told of");
}
TEST_F(HsaStandInTest, DimensionsAreCounted) {
  ExpectMalformed([](Packet& packet) { packet.dispatch.setup = 3; }, "more than one dimension");
}
TEST_F(HsaStandInTest, BlocksHaveTheKernelsSize) {
  ExpectMalformed(
      [](Packet& packet) { packet.dispatch.workgroup_size_x = packet.dispatch.grid_size_x = 2; },
      "no blocks of 2 threads");
}
TEST_F(HsaStandInTest, FencesAreDemanded) {
  ExpectMalformed(
      [](Packet& packet) {
        packet.dispatch.header = PacketHeader(HSA_PACKET_TYPE_KERNEL_DISPATCH, true,
                                              HSA_FENCE_SCOPE_AGENT, HSA_FENCE_SCOPE_AGENT);
      },
      "nobody acquires what the host or a copy wrote");
}
TEST_F(HsaStandInTest, ArgumentsAreWhereTheyBelong) {
  ExpectMalformed([this](Packet& packet) { packet.dispatch.kernarg_address = memory_; },
                  "not in memory for arguments");
}
TEST_F(HsaStandInTest, ArgumentsAreAligned) {
  ExpectMalformed(
      [this](Packet& packet) {
        packet.dispatch.kernarg_address = static_cast<char*>(arguments_) + 8;
      },
      "not aligned");
}
TEST_F(HsaStandInTest, ArgumentsAreAddressesOfTheDevice) {
  ExpectMalformed([this](Packet&) { std::memset(arguments_, 0x11, 8); },
                  "argument 0 is no address of the device's");
}
TEST_F(HsaStandInTest, ReservedFieldsStayZero) {
  ExpectMalformed([](Packet& packet) { packet.dispatch.reserved2 = 1; }, "reserved fields");
}
TEST_F(HsaStandInTest, BarriersReleaseToWhoeverWaits) {
  ExpectMalformed(
      [this](Packet& packet) {
        packet = BarrierPacket({}, signal_);
        packet.barrier.header = PacketHeader(HSA_PACKET_TYPE_BARRIER_AND, true,
                                             HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_AGENT);
      },
      "a barrier packet is malformed");
}

TEST_F(HsaStandInTest, DoorbellsTellOfPacketsThatAreThere) {
  Push(Counter(), 3);
  EXPECT_TRUE(Ends());
  ExpectMistake("which nobody reserved");
}

TEST_F(HsaStandInTest, CopiesStayWithinOneAllocation) {
  EXPECT_EQ(KILN_HSA(hsa_amd_memory_async_copy)(memory_, kGpu, arguments_, kHost, 5000, 0, nullptr,
                                                signal_),
            HSA_STATUS_ERROR_INVALID_ARGUMENT);
  ExpectMistake("not one allocation's");
}
TEST_F(HsaStandInTest, CopiesNeedAccessToBothEnds) {
  void* closed = nullptr;
  KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_allocate)(kArguments, 64, 0, &closed));
  EXPECT_EQ(
      KILN_HSA(hsa_amd_memory_async_copy)(memory_, kGpu, closed, kHost, 64, 0, nullptr, signal_),
      HSA_STATUS_ERROR_INVALID_AGENT);
  ExpectMistake("neither agent may use both");
  KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_free)(closed));
}
TEST_F(HsaStandInTest, CopiesWaitForTheirDependencies) {
  hsa_signal_t before = {};
  KILN_EXPECT_HSA(KILN_HSA(hsa_signal_create)(1, 0, nullptr, &before));
  std::memset(arguments_, 9, 64);
  KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_async_copy)(memory_, kGpu, arguments_, kHost, 64, 1,
                                                      &before, signal_));
  EXPECT_EQ(KILN_HSA(hsa_signal_wait_scacquire)(signal_, HSA_SIGNAL_CONDITION_LT, 1,
                                                kTenSeconds / 1000, HSA_WAIT_STATE_BLOCKED),
            1);
  KILN_HSA(hsa_signal_store_relaxed)(before, 0);
  EXPECT_TRUE(Ends());
  EXPECT_EQ(*static_cast<uint32_t*>(memory_), 0x09090909u);
  KILN_EXPECT_HSA(KILN_HSA(hsa_signal_destroy)(before));
}

TEST_F(HsaStandInTest, NothingIsFreedTwice) {
  void* memory = nullptr;
  KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_allocate)(kMemory, 64, 0, &memory));
  KILN_EXPECT_HSA(KILN_HSA(hsa_amd_memory_pool_free)(memory));
  EXPECT_EQ(KILN_HSA(hsa_amd_memory_pool_free)(memory), HSA_STATUS_ERROR_INVALID_ALLOCATION);
  ExpectMistake("was not allocated");
  hsa_signal_t signal = {};
  KILN_EXPECT_HSA(KILN_HSA(hsa_signal_create)(1, 0, nullptr, &signal));
  KILN_EXPECT_HSA(KILN_HSA(hsa_signal_destroy)(signal));
  EXPECT_EQ(KILN_HSA(hsa_signal_destroy)(signal), HSA_STATUS_ERROR_INVALID_SIGNAL);
}

}  // namespace
}  // namespace kiln::drivers::hsa
