#include "drivers/cuda/call.h"

namespace kiln::drivers::cuda {
namespace {

CUdeviceptr AddressOf(const RangeAccess& operand, const Places& places) {
  return ToCuda(places.addresses[operand.range.slot] + operand.range.offset);
}

void* HostAddressOf(const RangeAccess& operand, const Places& places) {
  return places.addresses[operand.range.slot] + operand.range.offset;
}

CUresult EnqueueCopy(const Library& cuda, const Call& call, const Places& places, CUstream stream) {
  const CUdeviceptr to = AddressOf(call.operands[0], places);
  const CUdeviceptr from = AddressOf(call.operands[1], places);
  if (call.to_host && !call.from_host)
    return cuda.MemcpyDtoHAsync_v2(HostAddressOf(call.operands[0], places), from, call.bytes(),
                                   stream);
  if (call.from_host && !call.to_host)
    return cuda.MemcpyHtoDAsync_v2(to, HostAddressOf(call.operands[1], places), call.bytes(),
                                   stream);
  // Here both sides have device addresses, since pinned memory has them, too.
  return cuda.MemcpyDtoDAsync_v2(to, from, call.bytes(), stream);
}

// A kernel's parameters in CUDA's form: pointers to values, which CUDA copies.
class Parameters {
 public:
  Parameters(const Call& call, const Places& places) {
    const bool by_table = call.kernel->image().takes_slot_table;
    if (by_table) values_.push_back(places.table);
    for (const RangeAccess& operand : call.operands) {
      values_.push_back(by_table ? PackSlot(operand.range.slot, operand.range.offset)
                                 : AddressOf(operand, places));
    }
    if (call.kernel->image().runs_parts)
      values_.push_back(static_cast<uint64_t>(call.points.begin));
    for (uint64_t& value : values_) pointers_.push_back(&value);
  }
  void** get() { return pointers_.data(); }

 private:
  std::vector<uint64_t> values_;
  std::vector<void*> pointers_;
};

CUDA_KERNEL_NODE_PARAMS KernelParameters(const Call& call, Parameters& parameters) {
  const KernelImage& image = call.kernel->image();
  CUDA_KERNEL_NODE_PARAMS result = {};
  result.func = static_cast<const CudaKernel*>(call.kernel)->function();
  result.gridDimX = static_cast<unsigned>(call.points.size());
  result.blockDimX = static_cast<unsigned>(image.block_size);
  result.gridDimY = result.gridDimZ = result.blockDimY = result.blockDimZ = 1;
  result.kernelParams = parameters.get();
  return result;
}

CUDA_MEMCPY3D CopyParameters(const Call& call, const Places& places) {
  CUDA_MEMCPY3D result = {};
  result.dstMemoryType = call.to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (call.to_host) {
    result.dstHost = HostAddressOf(call.operands[0], places);
  } else {
    result.dstDevice = AddressOf(call.operands[0], places);
  }
  result.srcMemoryType = call.from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (call.from_host) {
    result.srcHost = HostAddressOf(call.operands[1], places);
  } else {
    result.srcDevice = AddressOf(call.operands[1], places);
  }
  // One row of one slice.
  result.dstPitch = result.srcPitch = result.WidthInBytes = call.bytes();
  result.dstHeight = result.srcHeight = 1;
  result.Height = result.Depth = 1;
  return result;
}

CUDA_MEMSET_NODE_PARAMS FillParameters(const Call& call, const Places& places) {
  CUDA_MEMSET_NODE_PARAMS result = {};
  result.dst = AddressOf(call.operands[0], places);
  result.value = call.value;
  result.elementSize = 1;
  result.width = call.bytes();
  result.height = 1;
  return result;
}

}  // namespace

CUresult Enqueue(const Context& context, const Call& call, const Places& places) {
  const Library& cuda = context.cuda();
  CUstream stream = context.list_stream();
  switch (call.kind) {
    case Call::Kind::kLaunch: {
      Parameters parameters(call, places);
      const CUDA_KERNEL_NODE_PARAMS p = KernelParameters(call, parameters);
      return cuda.LaunchKernel(p.func, p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY,
                               p.blockDimZ, p.sharedMemBytes, stream, p.kernelParams, nullptr);
    }
    case Call::Kind::kCopy:
      return EnqueueCopy(cuda, call, places, stream);
    case Call::Kind::kFill:
      break;
  }
  return cuda.MemsetD8Async(AddressOf(call.operands[0], places), call.value, call.bytes(), stream);
}

CUresult AddNode(const Context& context, const Call& call, const Places& places, CUgraph graph,
                 absl::Span<const CUgraphNode> dependencies, CUgraphNode* node) {
  const Library& cuda = context.cuda();
  switch (call.kind) {
    case Call::Kind::kLaunch: {
      Parameters values(call, places);
      const CUDA_KERNEL_NODE_PARAMS parameters = KernelParameters(call, values);
      return cuda.GraphAddKernelNode_v2(node, graph, dependencies.data(), dependencies.size(),
                                        &parameters);
    }
    case Call::Kind::kCopy: {
      const CUDA_MEMCPY3D parameters = CopyParameters(call, places);
      return cuda.GraphAddMemcpyNode(node, graph, dependencies.data(), dependencies.size(),
                                     &parameters, context.get());
    }
    case Call::Kind::kFill:
      break;
  }
  const CUDA_MEMSET_NODE_PARAMS parameters = FillParameters(call, places);
  return cuda.GraphAddMemsetNode(node, graph, dependencies.data(), dependencies.size(), &parameters,
                                 context.get());
}

CUresult SetNode(const Context& context, const Call& call, const Places& places, CUgraphExec exec,
                 CUgraphNode node) {
  const Library& cuda = context.cuda();
  switch (call.kind) {
    case Call::Kind::kLaunch: {
      Parameters values(call, places);
      const CUDA_KERNEL_NODE_PARAMS parameters = KernelParameters(call, values);
      return cuda.GraphExecKernelNodeSetParams_v2(exec, node, &parameters);
    }
    case Call::Kind::kCopy: {
      const CUDA_MEMCPY3D parameters = CopyParameters(call, places);
      return cuda.GraphExecMemcpyNodeSetParams(exec, node, &parameters, context.get());
    }
    case Call::Kind::kFill:
      break;
  }
  const CUDA_MEMSET_NODE_PARAMS parameters = FillParameters(call, places);
  return cuda.GraphExecMemsetNodeSetParams(exec, node, &parameters, context.get());
}

}  // namespace kiln::drivers::cuda
