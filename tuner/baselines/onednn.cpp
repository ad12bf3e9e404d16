// Times oneDNN's softmax, log-softmax and layer normalisation on the workloads of the cpu device, for `rowtune
// baseline`. The method is the cpu device's own (kernels/cpu/bench.cpp): the same buffers and rotation, as many
// launches a sample, the same rule when to stop; every element is checked before. oneDNN keeps the weights of a bf16
// layer norm in fp32.

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/bench.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/slot.hpp"
#include "kernels/cpu/verify.hpp"
#include "kernels/errors.hpp"
#include "kernels/space.hpp"
#include "tuner/shapes.hpp"
#include "tuner/statistics.hpp"

namespace rowtune {
namespace {

using dnnl::memory;

constexpr int min_warm_up = 3;
constexpr double max_error_ulp =
    4;  ///< of the dtype; rowtune's own check is tighter, and oneDNN does not pass it in bf16

std::vector<float> as_floats(const void* data, Dtype dtype, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  if (dtype == Dtype::f32) {
    std::memcpy(out.data(), data, out.size() * sizeof(float));
  } else {
    const auto* halves = static_cast<const std::uint16_t*>(data);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint32_t bits = std::uint32_t{halves[i]} << 16;
      std::memcpy(&out[i], &bits, sizeof bits);
    }
  }
  return out;
}

/// oneDNN's primitive for a workload, and how it is called on the tensors of a slot.
class Operator {
 public:
  explicit Operator(const Workload& w)
      : rows_({w.shape.rows, w.shape.cols}, w.dtype == Dtype::f32 ? memory::data_type::f32 : memory::data_type::bf16,
              memory::format_tag::ab) {
    const auto inference = dnnl::prop_kind::forward_inference;
    if (w.op == Operation::softmax) {
      primitive_ = dnnl::softmax_forward({{inference, rows_, 1}, engine_});
    } else if (w.op == Operation::log_softmax) {
      primitive_ = dnnl::logsoftmax_forward({{inference, rows_, 1}, engine_});
    } else {
      const auto flags = dnnl::normalization_flags::use_scale_shift;
      const auto eps = static_cast<float>(w.options.eps);
      primitive_ = dnnl::layer_normalization_forward({{inference, rows_, eps, flags}, engine_});
      weights_ = memory({{2, w.shape.cols}, memory::data_type::f32, memory::format_tag::ab}, engine_);
    }
  }

  void set_weights(cpu::Slot& slot, const Workload& w) {
    if (!slot.weight) return;
    auto* to = static_cast<float*>(weights_.get_data_handle());
    for (const cpu::GuardedMatrix* from : {&*slot.weight, &*slot.bias}) {
      const std::vector<float> values = as_floats(from->data(), w.dtype, w.shape.cols);
      to = std::copy(values.begin(), values.end(), to);
    }
  }

  /// A launch on a slot, ready to be called many times.
  std::function<void()> on(cpu::Slot& slot) {
    const memory input(rows_, engine_, slot.input.data()), output(rows_, engine_, slot.output->data());
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, output}};
    if (weights_) arguments.emplace(DNNL_ARG_SCALE_SHIFT, weights_);
    return [this, arguments] {
      primitive_.execute(stream_, arguments);
      stream_.wait();
    };
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory::desc rows_;
  dnnl::primitive primitive_;
  memory weights_;
};

Estimate time_of(const Workload& w, const DeviceInfo& device) {
  Operator op(w);
  const Config base = enumerate_space(w, device).base;
  std::vector<cpu::Slot> slots;
  std::vector<std::function<void()>> launches;
  const std::int64_t count = cpu::slots_for(w, device);
  slots.reserve(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i <= count; ++i) {  // one more holds pristine inputs
    slots.emplace_back(w);
    cpu::fill_with_test_data(slots.back(), w, device.units);
    slots.back().output->fill(0xff);  // NaN
  }
  op.set_weights(slots.front(), w);
  for (std::int64_t i = 0; i < count; ++i) launches.push_back(op.on(slots[static_cast<std::size_t>(i)]));

  launches.front()();
  const Verification check = cpu::Expectation(w, slots.back(), device.units).check(slots.front(), slots.back(), base);
  if (!check.right && !(check.max_error_ulp <= max_error_ulp)) throw ConfigFailure(Outcome::wrong_result, check.what);

  using Clock = std::chrono::steady_clock;
  std::size_t next = 0;
  const std::int64_t batch = cpu::launches_for(w);
  const auto sample = [&] {
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < batch; ++i) {
      launches[next]();
      next = (next + 1) % launches.size();
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(batch);
  };
  for (int i = 0; i < min_warm_up; ++i) sample();
  SettledEstimate estimate({});
  const auto begin = Clock::now();
  while (!estimate.finished()) {
    const double us = sample();
    estimate.add(us, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return estimate.estimate();
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  po::options_description options("rowtune_onednn [options] > others.jsonl\n\nOptions");
  const auto text = [](const char* value) { return po::value<std::string>()->default_value(value); };
  options.add_options()("help", "this text")("shapes", text("llm"), "a preset, RxC,RxC..., or a file")(
      "op", text("softmax,log_softmax,layernorm"), "those that oneDNN has")("dtype", text("f32,bf16"), "f32, bf16")(
      "regime", text("cold"), "cold or warm");
  po::variables_map values;
  try {
    po::store(po::parse_command_line(argc, argv, options), values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see --help", error.what()));
  }
  if (values.count("help") > 0) {
    std::ostringstream help;
    help << options;
    fmt::print("{}", help.str());
    return 0;
  }
  const auto given = [&](const char* name) { return values[name].as<std::string>(); };
  const ShapeSet shapes = ShapeSet::parse(given("shapes"));
  const DeviceInfo device = cpu_device_info();
  const dnnl_version_t* version = dnnl_version();
  for (const Operation op : parse_operations(given("op")))
    for (const Dtype dtype : parse_dtypes(given("dtype")))
      for (const Shape& shape : shapes.of(op)) {
        const Workload w = Workload::of(op, dtype, shape, parse_regime(given("regime")));
        if (w.dtype == Dtype::f16 || !shape.contiguous() ||
            (w.op != Operation::softmax && w.op != Operation::log_softmax && w.op != Operation::layernorm)) {
          fmt::print(stderr, "skipped {}: oneDNN {} has no such primitive here\n", to_string(w), version->major);
          continue;
        }
        try {
          const Estimate e = time_of(w, device);
          const nlohmann::ordered_json line{
              {"device_model", device.model},
              {"op", to_string(op)},
              {"dtype", to_string(dtype)},
              {"shape", to_string(shape)},
              {"regime", given("regime")},
              {"impl", "onednn"},
              {"version", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)},
              {"time_us", e.median},
              {"time_lo_us", e.low},
              {"time_hi_us", e.high},
              {"method", fmt::format("median of {} samples of {} launches", e.count, cpu::launches_for(w))}};
          fmt::print("{}\n", line.dump());
          std::fflush(stdout);
        } catch (const ConfigFailure& failure) {
          fmt::print(stderr, "skipped {}: {}\n", to_string(w), failure.what());
        } catch (const dnnl::error& error) {
          fmt::print(stderr, "skipped {}: {}\n", to_string(w), error.what());
        }
      }
  return 0;
}

}  // namespace
}  // namespace rowtune

int main(int argc, char** argv) {
  try {
    return rowtune::run(argc, argv);
  } catch (const rowtune::UsageError& error) {
    fmt::print(stderr, "rowtune_onednn: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rowtune_onednn: {}\n", error.what());
    return 3;
  }
}
