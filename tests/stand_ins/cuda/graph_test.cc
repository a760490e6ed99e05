// Tests of the stand-in's graphs.
#include "tests/stand_ins/cuda/testing/library.h"

namespace kiln::drivers::cuda {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CudaGraphTest : public CudaStandInTest {
 protected:
  void SetUp() override {
    CudaStandInTest::SetUp();
    add_ = Load(AddText());
    for (CUdeviceptr& buffer : buffers_) {
      buffer = Allocate(16);
      Write(buffer, {0, 0, 0, 0});
    }
    KILN_EXPECT_CUDA(KILN_CUDA(cuGraphCreate)(&graph_, 0));
  }
  void TearDown() override {
    KILN_EXPECT_CUDA(KILN_CUDA(cuGraphDestroy)(graph_));
    CudaStandInTest::TearDown();
  }

  // buffers[to] = buffers[from] + n
  CUgraphNode Add(int from, int to, uint32_t n, const std::vector<CUgraphNode>& after) {
    Arguments arguments{buffers_[from], buffers_[to], n};
    const CUDA_KERNEL_NODE_PARAMS parameters = Parameters(arguments);
    CUgraphNode node = nullptr;
    KILN_EXPECT_CUDA(
        KILN_CUDA(cuGraphAddKernelNode_v2)(&node, graph_, after.data(), after.size(), &parameters));
    return node;
  }
  CUDA_KERNEL_NODE_PARAMS Parameters(Arguments& arguments) {
    return {add_, 1, 1, 1, 4, 1, 1, 0, arguments.pointers, nullptr, nullptr, nullptr};
  }
  CUgraphExec Instantiate() {
    CUgraphExec exec = nullptr;
    KILN_EXPECT_CUDA(KILN_CUDA(cuGraphInstantiateWithFlags)(&exec, graph_, 0));
    return exec;
  }
  CUresult Run(CUgraphExec exec) {
    const CUresult launched = KILN_CUDA(cuGraphLaunch)(exec, nullptr);
    return launched == CUDA_SUCCESS ? KILN_CUDA(cuCtxSynchronize)() : launched;
  }

  CUfunction add_ = nullptr;
  CUgraph graph_ = nullptr;
  CUdeviceptr buffers_[4] = {};
};

TEST_F(CudaGraphTest, NodesRunInTheirOrder) {
  CUDA_MEMSET_NODE_PARAMS fill{buffers_[0], 0, 7, 4, 4, 1};
  CUgraphNode filled = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddMemsetNode)(&filled, graph_, nullptr, 0, &fill, context_));
  const CUgraphNode left = Add(0, 1, 1, {filled});
  const CUgraphNode right = Add(0, 2, 2, {filled});
  CUgraphNode joined = nullptr;
  const CUgraphNode both[] = {left, right};
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddEmptyNode)(&joined, graph_, both, 2));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = buffers_[1];
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = buffers_[3];
  copy.WidthInBytes = 8;
  copy.Height = copy.Depth = 1;
  CUgraphNode copied = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddMemcpyNode)(&copied, graph_, &joined, 1, &copy, context_));
  const CUevent event = Event();
  CUgraphNode recorded = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddEventRecordNode)(&recorded, graph_, &copied, 1, event));
  const CUgraphExec exec = Instantiate();
  for (int i = 0; i < 5; ++i) KILN_EXPECT_CUDA(Run(exec));
  EXPECT_THAT(Read(buffers_[3], 4), ElementsAre(8, 8, 0, 0));
  EXPECT_THAT(Read(buffers_[2], 4), ElementsAre(9, 9, 9, 9));
  KILN_EXPECT_CUDA(KILN_CUDA(cuEventQuery)(event));

  // Nodes are changed, not created again.
  const int64_t nodes = control_->graph_nodes_added;
  Arguments arguments{buffers_[0], buffers_[1], 100};
  const CUDA_KERNEL_NODE_PARAMS changed = Parameters(arguments);
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphExecKernelNodeSetParams_v2)(exec, left, &changed));
  copy.WidthInBytes = 16;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphExecMemcpyNodeSetParams)(exec, copied, &copy, context_));
  fill.value = 1;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphExecMemsetNodeSetParams)(exec, filled, &fill, context_));
  EXPECT_EQ(KILN_CUDA(cuGraphExecMemsetNodeSetParams)(exec, left, &fill, context_),
            CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(Run(exec));
  EXPECT_THAT(Read(buffers_[3], 4), ElementsAre(101, 101, 101, 101));
  EXPECT_EQ(control_->graph_nodes_added, nodes);
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphExecDestroy)(exec));
}

TEST_F(CudaGraphTest, FindsMissingDependencies) {
  const CUgraphNode first = Add(0, 1, 1, {});
  const CUgraphNode second = Add(1, 2, 1, {});
  EXPECT_EQ(Run(Instantiate()), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(Message(), AllOf(HasSubstr("no dependency orders"), HasSubstr("node 0 (kernel k)"),
                               HasSubstr("node 1 (kernel k)")));
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddDependencies)(graph_, &first, &second, 1));
}

TEST_F(CudaGraphTest, TwoReadersNeedNoOrder) {
  Add(0, 1, 1, {});
  Add(0, 2, 1, {});
  KILN_EXPECT_CUDA(Run(Instantiate()));
  Add(3, 1, 1, {});
  EXPECT_EQ(Run(Instantiate()), CUDA_ERROR_LAUNCH_FAILED);  // two writers
}

TEST_F(CudaGraphTest, RefusesCyclesAndStrangeNodes) {
  const CUgraphNode first = Add(0, 1, 1, {});
  const CUgraphNode second = Add(1, 2, 1, {first});
  EXPECT_EQ(KILN_CUDA(cuGraphAddDependencies)(graph_, &first, &second, 1),
            CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddDependencies)(graph_, &second, &first, 1));
  CUgraphExec exec = nullptr;
  EXPECT_EQ(KILN_CUDA(cuGraphInstantiateWithFlags)(&exec, graph_, 0), CUDA_ERROR_INVALID_VALUE);
  CUgraph other = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphCreate)(&other, 0));
  CUgraphNode node = nullptr;
  EXPECT_EQ(KILN_CUDA(cuGraphAddEmptyNode)(&node, other, &first, 1), CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphDestroy)(other));
}

TEST_F(CudaGraphTest, AFaultEndsItsEvents) {
  const CUgraphNode kernel = Add(0, 1, 1, {});
  const CUevent event = Event();
  CUgraphNode recorded = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphAddEventRecordNode)(&recorded, graph_, &kernel, 1, event));
  const CUgraphExec exec = Instantiate();
  control_->next_launch_fails = CUDA_ERROR_LAUNCH_FAILED;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGraphLaunch)(exec, nullptr));
  EXPECT_EQ(KILN_CUDA(cuEventSynchronize)(event), CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace
}  // namespace kiln::drivers::cuda
