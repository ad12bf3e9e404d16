#include "kernels/cuda/runtime.hpp"

#include <fmt/format.h>

namespace rowtune::cuda {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // what can be cleared is cleared
  Outcome kind = Outcome::launch_error;
  switch (error) {
    case cudaErrorMemoryAllocation:
      kind = Outcome::out_of_memory;
      break;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
      kind = Outcome::crash;
      break;
    case cudaErrorLaunchTimeout:
      kind = Outcome::timeout;
      break;
    default:
      break;
  }
  throw ConfigFailure(kind, fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

DeviceBuffer::DeviceBuffer(std::int64_t bytes) : bytes_(bytes) {
  if (bytes > 0)
    check(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), fmt::format("allocating {} bytes on the device", bytes));
}
DeviceBuffer::~DeviceBuffer() {
  if (data_) cudaFree(data_);
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
Stream::~Stream() { cudaStreamDestroy(stream_); }
void Stream::wait(const std::string& what) const { check(cudaStreamSynchronize(stream_), what); }

Event::Event() { check(cudaEventCreate(&event_), "creating an event"); }
Event::~Event() { cudaEventDestroy(event_); }

void Graph::begin(const Stream& stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning to record launches");
}
void Graph::abandon(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
}
void Graph::finish(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "recording launches");
  const cudaError_t error = cudaGraphInstantiate(&exec_, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "making a graph of the launches");
  check(cudaGraphUpload(exec_, stream), "uploading the graph");
}
Graph::~Graph() {
  if (exec_) cudaGraphExecDestroy(exec_);
}
void Graph::replay(const Stream& stream) const { check(cudaGraphLaunch(exec_, stream), "replaying the launches"); }

}  // namespace rowtune::cuda
