#include "tuner/measure.hpp"

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <chrono>
#include <nlohmann/json.hpp>

#include "kernels/cuda/nvml.hpp"
#include "tuner/identity.hpp"

namespace rowtune {
namespace {

constexpr double warm_up_seconds = 0.1;
constexpr double bandwidth_slack = 1.03;

/// One config from load to estimate; reads as the method.
class Session {
 public:
  Session(Bench& bench, const MeasureRequest& request, const DeviceInfo& device, const Clock& now)
      : bench_(bench), request_(request), device_(device), now_(now) {}

  void run(db::Measurement& m) {
    load(m);
    busy_since_ = now_();
    verify(m);
    warm_up();
    sample_until_settled(m);
    check_plausible(m);
  }

  /// Since the kernel was loaded.
  double busy_seconds() const { return busy_since_ > 0 ? now_() - busy_since_ : 0; }

 private:
  void load(db::Measurement& m) {
    kernel_ = bench_.load(split_config_name(request_.config));
    m.facts = kernel_->facts();
  }

  void verify(db::Measurement& m) {
    const Verification check = kernel_->verify();
    m.max_error_ulp = check.max_error_ulp;
    if (!check.right) throw ConfigFailure(Outcome::wrong_result, check.what);
  }

  void warm_up() {
    const double start = now_();
    SteadyState steady(std::min(warm_up_seconds, 0.5 * request_.limits.max_seconds));
    while (!steady.reached()) {
      const double sample = kernel_->sample();
      steady.add(sample, now_() - start);
    }
  }

  void sample_until_settled(db::Measurement& m) {
    const double start = now_();
    SettledEstimate criterion(request_.limits, request_.time_to_beat_us);
    while (!criterion.finished()) {
      const double sample = kernel_->sample();
      criterion.add(sample, now_() - start);
    }
    const Estimate estimate = criterion.estimate();
    m.time_us = estimate.median;
    m.time_lo_us = estimate.low;
    m.time_hi_us = estimate.high;
    m.sample_count = estimate.count;
    m.samples_us = criterion.samples();
    m.settled = criterion.stop() == Stop::settled;
  }

  void check_plausible(const db::Measurement& m) {
    const std::string why = implausible(request_.workload, device_, *m.time_us);
    if (!why.empty()) throw ConfigFailure(Outcome::implausible, why);
  }

  Bench& bench_;
  const MeasureRequest& request_;
  const DeviceInfo& device_;
  const Clock& now_;
  std::unique_ptr<Kernel> kernel_;
  double busy_since_ = 0;
};

/// JSON of the clocks and of what throttles them, as they are right after the last sample; empty when unknown.
std::string clocks_now(const cuda::Nvml* nvml) {
  const auto state = nvml ? nvml->state() : std::nullopt;
  if (!state) return "";
  return nlohmann::json({{"sm_mhz", state->sm_mhz},
                         {"memory_mhz", state->memory_mhz},
                         {"throttle", cuda::throttle_text(state->throttle_reasons)}})
      .dump();
}

void fail(db::Measurement& m, Outcome outcome, const std::string& message) {
  m.outcome = outcome;
  m.message = message;
  m.time_us = m.time_lo_us = m.time_hi_us = std::nullopt;
  m.settled = false;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

db::Measurement describe_config(const DeviceInfo& device, const std::string& source_fingerprint,
                                const db::Provenance& provenance, const MeasureRequest& request) {
  const Config config = split_config_name(request.config);
  db::Measurement m;
  m.key = key_of(device, source_fingerprint, request.workload, request.config);
  m.provenance = provenance;
  m.eligible = request.eligible;
  m.is_base = request.is_base;
  m.algorithm = config.algorithm;
  m.block_size = config.block_size();
  m.rows_per_warp = config.rows_per_warp();
  m.vector_width = config.vector_width();
  m.split_count = config.split_count();
  nlohmann::json extra = nlohmann::json::object();
  for (const AxisValue& axis : config.axes)
    if (std::string_view("brvs").find(axis.letter) == std::string_view::npos)
      extra[std::string(1, axis.letter)] = axis.value;
  m.extra_axes = extra.dump();
  m.bytes = bytes_moved(request.workload);
  return m;
}

std::string implausible(const Workload& workload, const DeviceInfo& device, double microseconds) {
  if (workload.regime != Regime::cold || !(device.peak_gbps > 0)) return "";
  const double gbps = static_cast<double>(bytes_moved(workload)) / (microseconds * 1e3);
  if (gbps <= bandwidth_slack * device.peak_gbps) return "";
  return fmt::format(
      "{:.4g} us for {} bytes is {:.0f} GB/s, but the memory of {} peaks at {:.0f} GB/s: the inputs were in a cache, "
      "or "
      "the kernel did not run",
      microseconds, bytes_moved(workload), gbps, device.model, device.peak_gbps);
}

DeviceMeasurer::DeviceMeasurer(Device& device, Clock now)
    : device_(device),
      now_(std::move(now)),
      nvml_(device.info().kind == DeviceKind::cuda ? cuda::Nvml::open(device.info().uuid) : nullptr),
      provenance_(provenance_of(device.info())) {}

DeviceMeasurer::~DeviceMeasurer() = default;

void DeviceMeasurer::open(const Workload& workload) {
  if (bench_ && opened_ == workload) return;
  release();  // first: two sets of buffers may not fit
  const double start = now_();
  bench_ = device_.open(workload);
  opened_ = workload;
  open_seconds_ = now_() - start;
  busy_seconds_ += open_seconds_;
}

void DeviceMeasurer::release() {
  bench_.reset();
  opened_.reset();
}

db::Measurement DeviceMeasurer::describe(const MeasureRequest& request) const {
  return describe_config(device_.info(), device_.source_fingerprint(request.workload.op), provenance_, request);
}

db::Measurement DeviceMeasurer::measure(const MeasureRequest& request) {
  db::Measurement m = describe(request);
  try {
    open(request.workload);
    m.launches_per_sample = bench_->launches_per_sample();
    m.bytes_in_rotation = bench_->bytes_in_rotation();
    Session session(*bench_, request, device_.info(), now_);
    const auto count_busy = [&](void*) { busy_seconds_ += session.busy_seconds(); };
    const std::unique_ptr<void, decltype(count_busy)> at_the_end(&session, count_busy);
    session.run(m);
    m.clocks = clocks_now(nvml_.get());
  } catch (const ConfigFailure& failure) {
    fail(m, failure.outcome, failure.what());
  } catch (const EnvironmentError&) {
    throw;  // the device is gone: no other config would fare better
  } catch (const UsageError& refused) {
    fail(m, Outcome::launch_error, refused.what());
  } catch (const std::invalid_argument& nonsense) {  // a sample that is no time
    fail(m, Outcome::implausible, nonsense.what());
  } catch (const std::exception& unforeseen) {
    fail(m, Outcome::crash, unforeseen.what());
  }
  return m;
}

std::vector<std::vector<double>> DeviceMeasurer::interleave(const InterleaveRequest& request) {
  if (request.fresh_buffers) {
    release();
#ifdef __GLIBC__
    malloc_trim(0);  // or the same pages would come again
#endif
  }
  open(request.workload);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const std::string& name : request.configs) kernels.push_back(bench_->load(split_config_name(name)));
  for (auto& kernel : kernels) kernel->sample();  // warms up, and does not count

  const double start = now_();
  const std::size_t n = kernels.size();
  std::vector<std::vector<double>> samples(n);
  for (int round = 0; round < request.rounds; ++round) {
    // Every round starts elsewhere and every other one runs backwards, so that no config always follows the same one.
    for (std::size_t turn = 0; turn < n; ++turn) {
      const std::size_t step = round % 2 == 0 ? turn : n - 1 - turn;
      const std::size_t i = (step + static_cast<std::size_t>(round) / 2) % n;
      samples[i].push_back(kernels[i]->sample());
    }
    if (now_() - start >= request.max_seconds) break;
  }
  busy_seconds_ += now_() - start;
  return samples;
}

std::vector<std::optional<double>> DeviceMeasurer::energy(const EnergyRequest& request) {
  std::vector<std::optional<double>> joules(request.configs.size());
  if (!nvml_ || !nvml_->energy_joules()) return joules;
  open(request.workload);
  for (std::size_t i = 0; i < request.configs.size(); ++i) {
    const auto kernel = bench_->load(split_config_name(request.configs[i]));
    const double warm_up = now_();
    while (now_() - warm_up < 0.1 * request.seconds) kernel->sample();
    const double start = now_();
    const auto before = nvml_->energy_joules();
    double launches = 0;
    while (now_() - start < request.seconds) {
      kernel->sample();
      launches += static_cast<double>(bench_->launches_per_sample());
    }
    const auto after = nvml_->energy_joules();
    if (before && after && *after > *before) joules[i] = (*after - *before) / launches;
    busy_seconds_ += now_() - warm_up;
  }
  return joules;
}

}  // namespace rowtune
