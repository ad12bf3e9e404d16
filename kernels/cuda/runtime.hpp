#pragma once
// Thin RAII over the CUDA runtime: errors become exceptions that say what was being done.

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/errors.hpp"

namespace rowtune::cuda {

/// Throws ConfigFailure: out_of_memory, crash for errors that ruin the context (illegal access, trap...), else
/// launch_error.
void check(cudaError_t error, const std::string& what);

/// Device memory.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait(const std::string& what) const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Records the launches that `record` makes on the stream, to be replayed.
class Graph {
 public:
  template <class Record>
  Graph(const Stream& stream, Record record) {
    begin(stream);
    try {
      record();
    } catch (...) {
      abandon(stream);
      throw;
    }
    finish(stream);
  }
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay(const Stream& stream) const;

 private:
  static void begin(const Stream& stream);
  static void abandon(const Stream& stream);
  void finish(const Stream& stream);
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace rowtune::cuda
