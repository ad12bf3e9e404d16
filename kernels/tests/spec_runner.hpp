#pragma once
// What the specification's tests run on: a machine that runs a config on tensors in host buffers. Two of them: the
// emulator (spec_emulator_runner.cpp) and a GPU. A test program links one.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/config.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/emulator/sample.hpp"
#include "kernels/include/rowtune/launch_args.cuh"
#include "kernels/words.hpp"

namespace rowtune::spec {

/// Bytes at a 256-byte boundary, as cudaMalloc gives them.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : bytes_(bytes), data_(new (std::align_val_t{256}) std::byte[bytes + 1]) {}
  Buffer(const Buffer& other) : Buffer(other.bytes_) { std::memcpy(data(), other.data(), bytes_); }
  Buffer& operator=(Buffer other) {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  Buffer(Buffer&&) = default;
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{256}); }
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

/// A matrix in a buffer; weights are a matrix of one row. No buffer: the operation lacks it.
struct Tensor {
  int buffer = -1;
  std::int64_t first = 0;  ///< byte of element (0, 0)
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements
  int bytes = 0;            ///< of an element
  bool there() const { return buffer >= 0; }
};

/// One call of an operation. In place: output is the same tensor as input.
struct Call {
  Workload workload;
  Config config;
  Tensor input, residual, weight, bias, output, residual_out;
  float weight_offset = 0;
  std::vector<Buffer> buffers;
};

class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::string name() const = 0;
  /// Whether this config of this workload can be run here (the emulator has a sample of them compiled in).
  virtual bool offers(const Workload& workload, const Config& config) const = 0;
  /// Workloads and configs to test, one for each kernel.
  virtual const std::vector<emulator::SampledCase>& cases() const = 0;
  /// Runs the call once. `order` draws the order of blocks and threads where the machine lets it. Throws what went
  /// wrong (a Fault of the emulator, a launch error).
  virtual void run(Call& call, std::uint64_t order) = 0;
};

/// The machine that this program links; made once.
Runner& runner();

/// The kernel's arguments; `address` gives the first byte of a buffer where the kernel runs.
template <class Address>
RowArgs arguments_of(const Call& call, const Address& address) {
  const auto at = [&](const Tensor& t) -> std::byte* { return t.there() ? address(t.buffer) + t.first : nullptr; };
  RowArgs a{};
  a.input = at(call.input);
  a.residual = at(call.residual);
  a.weight = at(call.weight);
  a.bias = at(call.bias);
  a.output = at(call.output);
  a.residual_out = at(call.residual_out);
  a.rows = call.input.rows;
  a.cols = call.input.cols;
  a.input_stride = call.input.stride;
  a.residual_stride = call.residual.stride;
  a.output_stride = call.output.stride;
  a.residual_out_stride = call.residual_out.stride;
  a.eps = static_cast<float>(call.workload.options.eps);
  a.weight_offset = call.weight_offset;
  if (call.workload.op == Operation::copy && call.workload.shape.contiguous()) {  // one long row
    a.cols *= a.rows;
    a.rows = a.cols == 0 ? 0 : 1;
  }
  return a;
}

/// A config legal for the workload on the device that the tests assume (sm_90): `must` constraints hold.
bool is_legal(const Workload& workload, const Config& config);

}  // namespace rowtune::spec
