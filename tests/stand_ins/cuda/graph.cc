// Graphs: building, changing and launching.
#include <algorithm>

#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

// Reads one row of bytes; copies of several dimensions are refused.
bool ReadCopy(const CUDA_MEMCPY3D& parameters, Copy* copy) {
  const auto known = [](CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
  };
  if (!known(parameters.srcMemoryType) || !known(parameters.dstMemoryType) ||
      parameters.Height != 1 || parameters.Depth != 1 || parameters.WidthInBytes == 0 ||
      parameters.srcPitch > kPitchMax || parameters.dstPitch > kPitchMax ||
      parameters.srcY + parameters.srcZ + parameters.dstY + parameters.dstZ != 0)
    return false;
  copy->bytes = parameters.WidthInBytes;
  if (parameters.srcMemoryType == CU_MEMORYTYPE_HOST) {
    copy->from_host = static_cast<const uint8_t*>(parameters.srcHost) + parameters.srcXInBytes;
  } else {
    copy->from_device = parameters.srcDevice + parameters.srcXInBytes;
  }
  if (parameters.dstMemoryType == CU_MEMORYTYPE_HOST) {
    copy->to_host = static_cast<uint8_t*>(parameters.dstHost) + parameters.dstXInBytes;
  } else {
    copy->to_device = parameters.dstDevice + parameters.dstXInBytes;
  }
  return (copy->from_device == 0 || IsDeviceMemory(copy->from_device, copy->bytes)) &&
         (copy->to_device == 0 || IsDeviceMemory(copy->to_device, copy->bytes));
}

bool ReadFill(const CUDA_MEMSET_NODE_PARAMS& parameters, Fill* fill) {
  const unsigned bytes = parameters.elementSize;
  *fill = {parameters.dst, parameters.value, bytes, parameters.width};
  return (bytes == 1 || bytes == 2 || bytes == 4) && parameters.height == 1 &&
         parameters.width > 0 && parameters.dst % bytes == 0 &&
         IsDeviceMemory(parameters.dst, parameters.width * bytes);
}

GraphNode* FindNode(std::vector<GraphNode>& nodes, CUgraphNode handle) {
  for (GraphNode& node : nodes)
    if (node.handle == handle) return &node;
  return nullptr;
}

// Adds a node with these dependencies.
CUresult AddNode(const char* call, CUgraphNode* handle, CUgraph graph_handle,
                 const CUgraphNode* dependencies, size_t count, GraphNode node) {
  const std::shared_ptr<Graph> graph = TheRuntime().graphs.Find(graph_handle);
  if (graph == nullptr || handle == nullptr || (count > 0 && dependencies == nullptr))
    return Mistake(std::string(call) + ": no graph", CUDA_ERROR_INVALID_HANDLE);
  for (size_t i = 0; i < count; ++i) {
    const auto same = std::find(dependencies, dependencies + i, dependencies[i]);
    if (FindNode(graph->nodes, dependencies[i]) == nullptr || same != dependencies + i)
      return Mistake(std::string(call) + ": a dependency that is no node of the graph, or twice",
                     CUDA_ERROR_INVALID_VALUE);
    node.dependencies.push_back(dependencies[i]);
  }
  node.handle = reinterpret_cast<CUgraphNode>(TheRuntime().next_handle += 16);
  *handle = node.handle;
  graph->nodes.push_back(std::move(node));
  ++TheControl().graph_nodes_added;
  return CUDA_SUCCESS;
}

// Calls `change` with a node of that kind of an instantiated graph; earlier launches are not
// affected.
template <typename Change>
CUresult Update(const char* call, CUgraphExec exec_handle, CUgraphNode node_handle,
                GraphNode::Kind kind, Change change) {
  return InContext(call, [&](Context& context, Lock&) {
    const std::shared_ptr<GraphExec> exec = TheRuntime().graph_execs.Find(exec_handle);
    if (exec == nullptr)
      return Mistake(std::string(call) + ": no graph", CUDA_ERROR_INVALID_HANDLE);
    GraphNode* const node = FindNode(exec->nodes, node_handle);
    if (node == nullptr || node->kind != kind)
      return Mistake(std::string(call) + ": no such node of this kind", CUDA_ERROR_INVALID_VALUE);
    const CUresult result = change(context, *node);
    if (result == CUDA_SUCCESS) ++TheControl().graph_nodes_updated;
    return result;
  });
}

// Whether the dependencies contain a cycle.
bool HasCycle(const std::vector<GraphNode>& nodes) {
  std::map<CUgraphNode, size_t> left;
  std::vector<CUgraphNode> ready;
  std::map<CUgraphNode, std::vector<CUgraphNode>> followers;
  for (const GraphNode& node : nodes) {
    left[node.handle] = node.dependencies.size();
    if (node.dependencies.empty()) ready.push_back(node.handle);
    for (CUgraphNode dependency : node.dependencies) followers[dependency].push_back(node.handle);
  }
  size_t reached = 0;
  while (!ready.empty()) {
    const CUgraphNode node = ready.back();
    ready.pop_back();
    ++reached;
    for (CUgraphNode follower : followers[node])
      if (--left[follower] == 0) ready.push_back(follower);
  }
  return reached != nodes.size();
}

CUresult CheckNodes(const Context& context, const std::vector<GraphNode>& nodes) {
  for (const GraphNode& node : nodes) {
    if (node.kind == GraphNode::Kind::kEvent) {
      const std::shared_ptr<Event> event = TheRuntime().events.Find(node.event);
      if (event == nullptr || event->context != &context)
        return Mistake("cuGraphLaunch: an event is gone", CUDA_ERROR_INVALID_HANDLE);
    }
    if (node.kind != GraphNode::Kind::kKernel) continue;
    // The node keeps the module's code alive here, but not in the real library.
    const auto& functions = node.kernel.module->functions;
    const auto found = functions.find(node.kernel.function->decoded->name);
    if (found == functions.end() || TheRuntime().functions.Find(found->second) == nullptr)
      return Mistake("cuGraphLaunch: a kernel's module is unloaded", CUDA_ERROR_INVALID_HANDLE);
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  Lock lock(TheRuntime().mutex);
  if (graph == nullptr || flags != 0) return Mistake("cuGraphCreate", CUDA_ERROR_INVALID_VALUE);
  *graph = TheRuntime().graphs.Add(std::make_shared<Graph>());
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  Lock lock(TheRuntime().mutex);
  if (!TheRuntime().graphs.Remove(graph))
    return Mistake("cuGraphDestroy: no graph", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* handle, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return InContext("cuGraphAddKernelNode", [&](Context& context, Lock&) {
    GraphNode node{.kind = GraphNode::Kind::kKernel};
    const CUresult made = MakeLaunch("cuGraphAddKernelNode", context, *parameters, &node.kernel);
    if (made != CUDA_SUCCESS) return made;
    return AddNode("cuGraphAddKernelNode", handle, graph, dependencies, count, std::move(node));
  });
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* parameters, CUcontext) {
  return InContext("cuGraphAddMemcpyNode", [&](Context&, Lock&) {
    GraphNode node{.kind = GraphNode::Kind::kCopy};
    if (!ReadCopy(*parameters, &node.copy))
      return Mistake("cuGraphAddMemcpyNode: the copy", CUDA_ERROR_INVALID_VALUE);
    return AddNode("cuGraphAddMemcpyNode", handle, graph, dependencies, count, std::move(node));
  });
}
CUresult cuGraphAddMemsetNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return InContext("cuGraphAddMemsetNode", [&](Context&, Lock&) {
    GraphNode node{.kind = GraphNode::Kind::kFill};
    if (!ReadFill(*parameters, &node.fill))
      return Mistake("cuGraphAddMemsetNode: the fill", CUDA_ERROR_INVALID_VALUE);
    return AddNode("cuGraphAddMemsetNode", handle, graph, dependencies, count, std::move(node));
  });
}
CUresult cuGraphAddEmptyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  Lock lock(TheRuntime().mutex);
  return AddNode("cuGraphAddEmptyNode", handle, graph, dependencies, count,
                 GraphNode{.kind = GraphNode::Kind::kEmpty});
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* handle, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t count, CUevent event) {
  Lock lock(TheRuntime().mutex);
  if (TheRuntime().events.Find(event) == nullptr)
    return Mistake("cuGraphAddEventRecordNode: no event", CUDA_ERROR_INVALID_HANDLE);
  return AddNode("cuGraphAddEventRecordNode", handle, graph, dependencies, count,
                 GraphNode{.kind = GraphNode::Kind::kEvent, .event = event});
}
CUresult cuGraphAddDependencies(CUgraph graph_handle, const CUgraphNode* from,
                                const CUgraphNode* to, size_t count) {
  Lock lock(TheRuntime().mutex);
  const std::shared_ptr<Graph> graph = TheRuntime().graphs.Find(graph_handle);
  if (graph == nullptr) return Mistake("cuGraphAddDependencies", CUDA_ERROR_INVALID_HANDLE);
  for (size_t i = 0; i < count; ++i) {
    GraphNode* const follower = FindNode(graph->nodes, to[i]);
    if (follower == nullptr || FindNode(graph->nodes, from[i]) == nullptr || from[i] == to[i])
      return Mistake("cuGraphAddDependencies: no such nodes", CUDA_ERROR_INVALID_VALUE);
    std::vector<CUgraphNode>& known = follower->dependencies;
    if (std::find(known.begin(), known.end(), from[i]) != known.end())
      return Mistake("cuGraphAddDependencies: it is there already", CUDA_ERROR_INVALID_VALUE);
    known.push_back(from[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph_handle,
                                     unsigned long long flags) {
  return InContext("cuGraphInstantiate", [&](Context& context, Lock&) {
    const std::shared_ptr<Graph> graph = TheRuntime().graphs.Find(graph_handle);
    if (graph == nullptr) return Mistake("cuGraphInstantiate: no graph", CUDA_ERROR_INVALID_HANDLE);
    if (HasCycle(graph->nodes) || (flags & ~9ull) != 0)
      return Mistake("cuGraphInstantiate: a cycle, or flags", CUDA_ERROR_INVALID_VALUE);
    *exec = TheRuntime().graph_execs.Add(
        std::make_shared<GraphExec>(GraphExec{&context, graph->nodes, nullptr}));
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Lock lock(TheRuntime().mutex);
  if (!TheRuntime().graph_execs.Remove(exec))
    return Mistake("cuGraphExecDestroy: no graph", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  constexpr char kCall[] = "cuGraphExecKernelNodeSetParams";
  return Update(kCall, exec, node, GraphNode::Kind::kKernel,
                [&](Context& context, GraphNode& found) {
                  KernelLaunch launch;
                  const CUresult result = MakeLaunch(kCall, context, *parameters, &launch);
                  if (result == CUDA_SUCCESS) found.kernel = std::move(launch);
                  return result;
                });
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* parameters, CUcontext) {
  constexpr char kCall[] = "cuGraphExecMemcpyNodeSetParams";
  return Update(kCall, exec, node, GraphNode::Kind::kCopy, [&](Context&, GraphNode& found) {
    Copy copy;
    if (!ReadCopy(*parameters, &copy)) return Mistake(kCall, CUDA_ERROR_INVALID_VALUE);
    found.copy = copy;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  constexpr char kCall[] = "cuGraphExecMemsetNodeSetParams";
  return Update(kCall, exec, node, GraphNode::Kind::kFill, [&](Context&, GraphNode& found) {
    Fill fill;
    if (!ReadFill(*parameters, &fill)) return Mistake(kCall, CUDA_ERROR_INVALID_VALUE);
    found.fill = fill;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  constexpr char kCall[] = "cuGraphExecEventRecordNodeSetEvent";
  return Update(kCall, exec, node, GraphNode::Kind::kEvent, [&](Context&, GraphNode& found) {
    if (TheRuntime().events.Find(event) == nullptr)
      return Mistake(kCall, CUDA_ERROR_INVALID_HANDLE);
    found.event = event;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return InContext("cuGraphUpload", [&](Context& context, Lock&) {
    const bool known =
        TheRuntime().graph_execs.Find(exec) != nullptr && FindStream(context, stream) != nullptr;
    return known ? CUDA_SUCCESS : Mistake("cuGraphUpload", CUDA_ERROR_INVALID_HANDLE);
  });
}

CUresult cuGraphLaunch(CUgraphExec exec_handle, CUstream handle) {
  return InContext("cuGraphLaunch", [&](Context& context, Lock&) {
    const std::shared_ptr<GraphExec> exec = TheRuntime().graph_execs.Find(exec_handle);
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (exec == nullptr || stream == nullptr || exec->context != &context)
      return Mistake("cuGraphLaunch: no graph or stream", CUDA_ERROR_INVALID_HANDLE);
    if (const CUresult result = CheckNodes(context, exec->nodes); result != CUDA_SUCCESS)
      return result;
    if (const int code = TheControl().next_launch_refused.exchange(0))
      return static_cast<CUresult>(code);
    std::map<CUgraphNode, std::shared_ptr<Completion>> events;
    for (const GraphNode& node : exec->nodes) {
      if (node.kind != GraphNode::Kind::kEvent) continue;
      events[node.handle] = std::make_shared<Completion>();
      TheRuntime().events.Find(node.event)->recorded = events[node.handle];
    }
    const uint64_t seed = TheControl().graph_seed++;
    ++TheControl().graphs_launched;
    // The event also ends if the graph fails or is never run.
    const std::shared_ptr<Completion> ran = Push(
        *stream,
        [&context, nodes = exec->nodes, seed, events] {
          return RunGraph(context, nodes, seed, events);
        },
        exec->last);
    for (const auto& [node, completion] : events) ran->with.push_back(completion);
    exec->last = ran;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
