#include "kernels/cuda/cuda_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/cuda/slots.hpp"
#include "kernels/faults.hpp"
#include "kernels/space.hpp"

namespace rowtune::cuda {
namespace {

/// How a workload is rotated and how many launches make a sample.
struct Rotation {
  std::int64_t slots = 1;
  std::int64_t launches = 1;
  bool flush = false;  ///< the slots do not push each other out of the cache: read another buffer before each replay

  static Rotation of(const Workload& w, const DeviceInfo& device) {
    constexpr std::int64_t most_launches = 1000;                                   // of one graph
    constexpr double sample_us = 1000;                                             // aimed at
    constexpr std::int64_t cache_multiples = 5;                                    // between two touches of an address
    const double floor_us = 1.2;                                                   // of a launch inside a graph
    const double bandwidth = device.peak_gbps > 0 ? device.peak_gbps * 1e3 : 1e6;  // bytes per microsecond
    const double estimate = floor_us + static_cast<double>(bytes_moved(w)) / bandwidth;
    const auto wanted = std::clamp<std::int64_t>(static_cast<std::int64_t>(sample_us / estimate) + 1, 4, most_launches);
    Rotation r;
    if (w.regime == Regime::warm) {
      r.launches = wanted;
      // In place, each launch needs inputs of its own, restored before the sample.
      r.slots = 1;
      return r;
    }
    const std::int64_t slot = Slots::bytes_of_slot(w);
    const std::int64_t apart = cache_multiples * device.cache_bytes;
    r.slots = std::clamp<std::int64_t>((apart + slot - 1) / slot, 2, most_launches);
    const std::int64_t room =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(0.8 * static_cast<double>(device.memory_bytes)) / slot);
    r.slots = std::min(r.slots, room);
    r.launches = (std::max(wanted, r.slots) + r.slots - 1) / r.slots * r.slots;
    if (r.slots == most_launches) r.launches = most_launches;
    r.flush = r.slots * slot < apart;
    if (r.flush) r.launches = r.slots;  // an address comes once between two flushes
    return r;
  }
};

class CudaKernel;

/// Shared by the kernels of a workload.
struct Shared {
  Workload workload;
  DeviceInfo device;
  CompileFunction compile;
  Rotation rotation;
  Stream stream;
  Slots slots;
  OracleKernels oracle;
  DeviceBuffer scratch;
  Event start, stop;

  Shared(const Workload& w, const DeviceInfo& d, const CompileFunction& c)
      : workload(w),
        device(d),
        compile(c),
        rotation(Rotation::of(w, d)),
        slots(w, rotation.slots),
        oracle(w, c),
        scratch(rotation.flush ? 2 * d.cache_bytes / 16 * 16 : 0) {
    if (scratch.data())
      check(cudaMemsetAsync(scratch.data(), 0, static_cast<std::size_t>(scratch.bytes()), stream),
            "clearing the flush buffer");
    oracle.fill(slots, stream);
    stream.wait("filling the buffers");
  }
};

/// The plan of a config, with the fault that a test wants in it.
Plan plan_of(const Workload& workload, const Config& config) {
  Plan plan = plan_kernel(workload, config);
  const auto begin_with = [&plan](const std::string& statement) {
    constexpr std::string_view head = "(const rowtune::RowArgs args) {\n";
    for (std::size_t at = plan.source.find(head); at != std::string::npos; at = plan.source.find(head, at + 1))
      plan.source.insert(at + head.size(), statement);
  };
  switch (fault_of(config.name())) {
    case Fault::illegal_write:
      begin_with("  static_cast<volatile char*>(args.output)[1ll << 46] = 1;\n");
      break;
    case Fault::endless:
      begin_with("  while (clock64() != 0) __nanosleep(1000);\n");
      break;
    case Fault::wrong_result:
      begin_with("  if (blockIdx.x == 0) return;\n");
      break;
    case Fault::compile_error:
      begin_with("  this is no statement;\n");
      break;
    case Fault::shared_memory:
      for (Launch& launch : plan.launches) launch.dynamic_shared = 1 << 24;
      break;
    default:
      break;
  }
  return plan;
}

class CudaKernel : public Kernel {
 public:
  CudaKernel(const std::shared_ptr<Shared>& shared, const Config& config)
      : CudaKernel(shared, plan_of(shared->workload, config)) {}

  CudaKernel(std::shared_ptr<Shared> shared, const Plan& plan)
      : shared_(std::move(shared)),
        binary_(shared_->compile(plan.source)),
        loaded_(plan, binary_.cubin, shared_->device),
        workspace_(loaded_.plan().workspace_bytes) {
    if (workspace_.data())
      check(cudaMemsetAsync(workspace_.data(), 0, static_cast<std::size_t>(workspace_.bytes()), shared_->stream),
            "clearing the workspace");
  }

  KernelFacts facts() const override {
    KernelFacts facts = loaded_.facts();
    facts.binary_hash = binary_.hash;
    return facts;
  }

  Verification verify() override {
    const Shared& s = *shared_;
    s.oracle.restore(s.slots, 1, s.stream);
    enqueue(0);
    Verification v = s.oracle.check(s.slots, loaded_.plan().depth, s.stream);
    if (s.workload.options.in_place) s.oracle.restore(s.slots, 1, s.stream);
    return v;
  }

  double sample() override {
    const Shared& s = *shared_;
    if (!graph_)
      graph_.emplace(s.stream, [&] {
        for (std::int64_t i = 0; i < s.rotation.launches; ++i) enqueue(i % s.slots.count());
      });
    if (s.workload.options.in_place) s.oracle.restore(s.slots, s.slots.count(), s.stream);
    if (s.rotation.flush) s.oracle.flush(s.scratch, s.stream);
    check(cudaEventRecord(s.start, s.stream), "recording an event");
    graph_->replay(s.stream);
    check(cudaEventRecord(s.stop, s.stream), "recording an event");
    s.stream.wait("running the kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, s.start, s.stop), "reading the time");
    return static_cast<double>(milliseconds) * 1e3 / static_cast<double>(s.rotation.launches);
  }

  void launch() override {
    enqueue(0);
    shared_->stream.wait("running the kernel");
  }

 private:
  void enqueue(std::int64_t slot) const {
    RowArgs args = shared_->slots.args(slot);
    args.workspace = workspace_.data();
    if (args.rows == 0 || args.cols == 0) return;
    loaded_.launch(args, shared_->stream);
  }

  std::shared_ptr<Shared> shared_;
  Binary binary_;
  LoadedPlan loaded_;
  DeviceBuffer workspace_;
  std::optional<Graph> graph_;
};

class CudaBench : public Bench {
 public:
  CudaBench(const Workload& w, const DeviceInfo& d, const CompileFunction& c)
      : shared_(std::make_shared<Shared>(w, d, c)) {}
  std::unique_ptr<Kernel> load(const Config& config) override { return std::make_unique<CudaKernel>(shared_, config); }
  std::int64_t launches_per_sample() const override { return shared_->rotation.launches; }
  std::int64_t bytes_in_rotation() const override {
    return shared_->rotation.slots * Slots::bytes_of_slot(shared_->workload);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

/// The elements of a tensor of slot 0, row by row, to the device or back. Both sides have the same row stride.
void copy_elements(const TensorPlace& place, int element_bytes, const std::byte* from, std::byte* to, bool to_device) {
  if (place.rows == 0 || place.cols == 0) return;
  const auto pitch = static_cast<std::size_t>(place.ld * element_bytes);
  check(cudaMemcpy2D(to, pitch, from, pitch, static_cast<std::size_t>(place.cols * element_bytes),
                     static_cast<std::size_t>(place.rows), to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost),
        to_device ? "uploading a tensor" : "downloading a tensor");
}

}  // namespace

void compute_once(const Workload& w, const Config& config, const HostTensors& tensors, const DeviceInfo& device,
                  const CompileFunction& compile) {
  const Plan plan = plan_kernel(w, config);
  const LoadedPlan loaded(plan, compile(plan.source).cubin, device);
  const Stream stream;
  const Slots slots(w, 1);
  const int element = size_of(w.dtype);
  const std::int64_t skip = w.shape.off * element;
  const auto upload = [&](Slots::Tensor t, const void* host, std::int64_t offset) {
    if (!slots.has(t)) return;
    const TensorPlace place = slots.place(t);
    copy_elements(place, element, static_cast<const std::byte*>(host) + offset,
                  static_cast<std::byte*>(place.base) + place.first, true);
  };
  upload(Slots::input, tensors.input, skip);
  upload(Slots::residual, tensors.residual, skip);
  upload(Slots::weight, tensors.weight, 0);
  upload(Slots::bias, tensors.bias, 0);
  const DeviceBuffer workspace(plan.workspace_bytes);
  if (workspace.data())
    check(cudaMemset(workspace.data(), 0, static_cast<std::size_t>(workspace.bytes())), "clearing the workspace");
  check(cudaDeviceSynchronize(), "uploading the tensors");
  RowArgs args = slots.args(0);
  args.workspace = workspace.data();
  if (args.rows > 0 && args.cols > 0) loaded.launch(args, stream);
  stream.wait("running the kernel");
  const TensorPlace place = slots.place(slots.result_tensor());
  copy_elements(place, element, static_cast<const std::byte*>(place.base) + place.first,
                static_cast<std::byte*>(tensors.output) + skip, false);
}

std::unique_ptr<Bench> make_bench(const Workload& w, const DeviceInfo& device, const CompileFunction& compile) {
  if (w.regime == Regime::overlapped)
    throw ConfigFailure(Outcome::launch_error,
                        "the overlapped regime needs kernels that take part in programmatic dependent launch, and none "
                        "do yet; use --regime cold or warm");
  return std::make_unique<CudaBench>(w, device, compile);
}

}  // namespace rowtune::cuda
