// Tests that the stand-in finds the mistakes that a Level Zero driver must not make.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/level_zero/api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/level_zero/control.h"
#include "tests/stand_ins/level_zero/spirv.h"
#include "tests/stand_ins/testing/library_test.h"

namespace kiln::drivers::level_zero {
namespace {

using ::testing::HasSubstr;

// KILN_ZE(zeInit)(0) calls the library's function.
#define KILN_ZE(name) (*Find<decltype(name)>(#name))
#define KILN_EXPECT_ZE(call) EXPECT_EQ(call, ZE_RESULT_SUCCESS) << Message()

class LevelZeroStandInTest : public stand_ins::LibraryTest<stand_ins::level_zero::Control> {
 protected:
  void SetUp() override {
    OpenLibrary(KILN_LEVEL_ZERO_STAND_IN, "KilnLevelZeroStandInControl",
                "KilnLevelZeroStandInMessage");
    control_->host_kernels = true;
    KILN_EXPECT_ZE(KILN_ZE(zeInit)(ZE_INIT_FLAG_GPU_ONLY));
    uint32_t count = 1;
    ze_driver_handle_t driver = nullptr;
    KILN_EXPECT_ZE(KILN_ZE(zeDriverGet)(&count, &driver));
    KILN_EXPECT_ZE(KILN_ZE(zeDeviceGet)(driver, &count, &device_));
    ze_context_desc_t context = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    KILN_EXPECT_ZE(KILN_ZE(zeContextCreate)(driver, &context, &context_));
    ze_command_queue_desc_t queue = {};
    queue.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    KILN_EXPECT_ZE(KILN_ZE(zeCommandQueueCreate)(context_, device_, &queue, &queue_));
    ze_fence_desc_t fence = {ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
    KILN_EXPECT_ZE(KILN_ZE(zeFenceCreate)(queue_, &fence, &fence_));
    mistakes_ = control_->mistakes;
  }
  void TearDown() override {
    KILN_EXPECT_ZE(KILN_ZE(zeFenceDestroy)(fence_));
    KILN_EXPECT_ZE(KILN_ZE(zeCommandQueueDestroy)(queue_));
    KILN_EXPECT_ZE(KILN_ZE(zeContextDestroy)(context_));
    EXPECT_EQ(control_->objects, 0);
  }

  // Expects that the previous call was a mistake, for this reason.
  void ExpectMistake(const std::string& why) {
    EXPECT_EQ(control_->mistakes, ++mistakes_) << why;
    EXPECT_THAT(Message(), HasSubstr(why));
  }

  ze_command_list_handle_t List() {
    ze_command_list_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, 0, 0};
    ze_command_list_handle_t list = nullptr;
    KILN_EXPECT_ZE(KILN_ZE(zeCommandListCreate)(context_, device_, &desc, &list));
    return list;
  }
  char* Memory(size_t bytes) {
    ze_device_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, nullptr, 0, 0};
    void* memory = nullptr;
    KILN_EXPECT_ZE(KILN_ZE(zeMemAllocDevice)(context_, &desc, bytes, 64, device_, &memory));
    return static_cast<char*>(memory);
  }
  ze_result_t Fill(ze_command_list_handle_t list, void* memory, size_t bytes) {
    const uint8_t value = 1;
    return KILN_ZE(zeCommandListAppendMemoryFill)(list, memory, &value, 1, bytes, nullptr, 0,
                                                  nullptr);
  }
  ze_result_t Execute(ze_command_list_handle_t list) {
    return KILN_ZE(zeCommandQueueExecuteCommandLists)(queue_, 1, &list, fence_);
  }
  void Await() {
    KILN_EXPECT_ZE(KILN_ZE(zeFenceHostSynchronize)(fence_, UINT64_MAX));
    KILN_EXPECT_ZE(KILN_ZE(zeFenceReset)(fence_));
  }

  int64_t mistakes_ = 0;
  ze_device_handle_t device_ = nullptr;
  ze_context_handle_t context_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
};

TEST_F(LevelZeroStandInTest, ListsAreClosedBeforeTheyAreExecutedAndNotAfter) {
  char* memory = Memory(64);
  ze_command_list_handle_t list = List();
  KILN_EXPECT_ZE(Fill(list, memory, 64));
  EXPECT_NE(Execute(list), ZE_RESULT_SUCCESS);
  ExpectMistake("that is not closed");
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListClose)(list));
  EXPECT_NE(Fill(list, memory, 64), ZE_RESULT_SUCCESS);
  ExpectMistake("to a closed list");
  KILN_EXPECT_ZE(Execute(list));
  Await();
  EXPECT_EQ(memory[63], 1);
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListDestroy)(list));
  KILN_EXPECT_ZE(KILN_ZE(zeMemFree)(context_, memory));
}

TEST_F(LevelZeroStandInTest, ListsOnTheirWayAreLeftAlone) {
  char* memory = Memory(64);
  ze_command_list_handle_t list = List();
  KILN_EXPECT_ZE(Fill(list, memory, 64));
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListClose)(list));
  control_->launch_gate.Close();
  KILN_EXPECT_ZE(Execute(list));
  EXPECT_NE(KILN_ZE(zeCommandQueueExecuteCommandLists)(queue_, 1, &list, nullptr),
            ZE_RESULT_SUCCESS);
  ExpectMistake("that is on its way already");
  EXPECT_NE(KILN_ZE(zeCommandListReset)(list), ZE_RESULT_SUCCESS);
  ExpectMistake("zeCommandListReset");
  EXPECT_NE(KILN_ZE(zeCommandListDestroy)(list), ZE_RESULT_SUCCESS);
  ExpectMistake("zeCommandListDestroy of a list on its way");
  EXPECT_NE(KILN_ZE(zeMemFree)(context_, memory), ZE_RESULT_SUCCESS);
  ExpectMistake("memory that a list on its way copies");
  EXPECT_NE(KILN_ZE(zeFenceReset)(fence_), ZE_RESULT_SUCCESS);
  ExpectMistake("zeFenceReset of one on its way");
  control_->launch_gate.Open();
  Await();
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListDestroy)(list));
  EXPECT_NE(KILN_ZE(zeCommandListDestroy)(list), ZE_RESULT_SUCCESS);
  ExpectMistake("of no list");
  KILN_EXPECT_ZE(KILN_ZE(zeMemFree)(context_, memory));
}

TEST_F(LevelZeroStandInTest, FencesAreResetBetweenExecutions) {
  ze_command_list_handle_t list = List();
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListClose)(list));
  KILN_EXPECT_ZE(Execute(list));
  KILN_EXPECT_ZE(KILN_ZE(zeFenceHostSynchronize)(fence_, UINT64_MAX));
  EXPECT_NE(Execute(list), ZE_RESULT_SUCCESS);
  ExpectMistake("that was not reset");
  KILN_EXPECT_ZE(KILN_ZE(zeFenceReset)(fence_));
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListDestroy)(list));
}

TEST_F(LevelZeroStandInTest, MemoryIsSomebodysAndEndsWhereItEnds) {
  char* memory = Memory(64);
  ze_command_list_handle_t list = List();
  EXPECT_NE(Fill(list, memory + 32, 64), ZE_RESULT_SUCCESS);
  ExpectMistake("memory that is not the context's");
  char own[64] = {};
  EXPECT_NE(KILN_ZE(zeCommandListAppendMemoryCopy)(list, memory, own, 64, nullptr, 0, nullptr),
            ZE_RESULT_SUCCESS);
  ExpectMistake("memory that is not the context's");
  EXPECT_NE(
      KILN_ZE(zeCommandListAppendMemoryCopy)(list, memory, memory + 16, 32, nullptr, 0, nullptr),
      ZE_RESULT_SUCCESS);
  ExpectMistake("a copy onto itself");
  EXPECT_NE(KILN_ZE(zeContextDestroy)(context_), ZE_RESULT_SUCCESS);
  ExpectMistake("a context with objects");
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListDestroy)(list));
  KILN_EXPECT_ZE(KILN_ZE(zeMemFree)(context_, memory));
  EXPECT_NE(KILN_ZE(zeMemFree)(context_, memory), ZE_RESULT_SUCCESS);
  ExpectMistake("what is not this context's");
}

TEST_F(LevelZeroStandInTest, StructuresAreMarkedAsWhatTheyAre) {
  ze_device_properties_t properties = {};
  EXPECT_NE(KILN_ZE(zeDeviceGetProperties)(device_, &properties), ZE_RESULT_SUCCESS);
  ExpectMistake("a structure of another type");
  properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  KILN_EXPECT_ZE(KILN_ZE(zeDeviceGetProperties)(device_, &properties));
  EXPECT_STREQ(properties.name, "stand-in GPU");
}

// Between two barriers any order is allowed, and over some runs every order occurs.
TEST_F(LevelZeroStandInTest, AMissingBarrierShows) {
  char* memory = Memory(64);
  ze_command_list_handle_t list = List();
  for (const uint8_t value : {1, 2}) {
    KILN_EXPECT_ZE(
        KILN_ZE(zeCommandListAppendMemoryFill)(list, memory, &value, 1, 64, nullptr, 0, nullptr));
  }
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListClose)(list));
  bool seen[3] = {};
  for (int i = 0; i < 30; ++i) {
    KILN_EXPECT_ZE(Execute(list));
    Await();
    seen[static_cast<int>(memory[0])] = true;
  }
  EXPECT_TRUE(seen[1]);
  EXPECT_TRUE(seen[2]);
  KILN_EXPECT_ZE(KILN_ZE(zeCommandListDestroy)(list));
  KILN_EXPECT_ZE(KILN_ZE(zeMemFree)(context_, memory));
}

TEST(LevelZeroStandInSpirvTest, WhatIsNoModuleIsRefused) {
  stand_ins::level_zero::SpirvModule module;
  EXPECT_EQ(stand_ins::level_zero::ReadSpirv("", &module), "it is no SPIR-V");
  const uint32_t header[] = {0x07230203, 0x00010200, 0, 8, 0};
  std::string bytes(reinterpret_cast<const char*>(header), sizeof(header));
  EXPECT_EQ(stand_ins::level_zero::ReadSpirv(bytes, &module), "it has no entry point");
  bytes.append("\x01\x00\xff\x00", 4);
  EXPECT_THAT(stand_ins::level_zero::ReadSpirv(bytes, &module), HasSubstr("beyond the module"));
}

}  // namespace
}  // namespace kiln::drivers::level_zero
