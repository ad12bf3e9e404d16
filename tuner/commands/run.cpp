// rowtune run: one config, checked and timed, or launched a given number of times for a profiler.

#include <fmt/format.h>

#include "kernels/device.hpp"
#include "kernels/space.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/measure.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Cell;
using reports::Style;

CommandLine describe() {
  CommandLine line("run", "run --op OP --dtype DTYPE --shape RxC --config NAME [options]",
                   "Checks one config against the reference and times it. With --launches it is checked once and then "
                   "launched that\nmany times, one after the other, and nothing else runs: for a profiler.");
  line.add_device("auto, cpu, or cuda:N");
  add_workload_options(line);
  line.add("Options")("config", po::value<std::string>()->value_name("NAME"),
                      "the config's name, as `best` and `space` print it; `base` for the base config")(
      "launches", po::value<int>()->value_name("N"), "launch N times instead of sampling")(
      "no-check", po::bool_switch(), "skip the check, so that only the launches run");
  line.add_format();
  line.add_example("rowtune run --op softmax --dtype bf16 --shape 4096x1000 --config base",
                   "is the base right, and how fast");
  line.add_example("ncu rowtune run --op softmax --dtype bf16 --shape 4096x1000 --config NAME --launches 3 --no-check",
                   "profile three launches");
  return line;
}

Estimate time_launches(Kernel& kernel, int launches) {
  std::vector<double> times;
  for (int i = 0; i < launches; ++i) {
    const double start = steady_seconds();
    kernel.launch();
    times.push_back((steady_seconds() - start) * 1e6);
  }
  return estimate_median(times);
}

Estimate time_samples(Kernel& kernel) {
  SteadyState steady(0.1);
  double start = steady_seconds();
  while (!steady.reached()) {
    const double sample = kernel.sample();
    steady.add(sample, steady_seconds() - start);
  }
  SettledEstimate criterion({});
  start = steady_seconds();
  while (!criterion.finished()) {
    const double sample = kernel.sample();
    criterion.add(sample, steady_seconds() - start);
  }
  return criterion.estimate();
}

}  // namespace

int run_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const Workload workload = workload_from(line);
  const std::string name = line.required("config");
  const bool check = !line.get<bool>("no-check");
  const bool only_launch = line.has("launches");
  const int launches = only_launch ? line.get<int>("launches") : 0;
  if (only_launch && launches < 1) throw UsageError("rowtune run: --launches must be at least 1");
  if (workload.shape.rows == 0 || workload.shape.cols == 0)
    throw UsageError(
        fmt::format("rowtune run: shape {} has no elements: there is nothing to time", to_string(workload.shape)));

  const std::unique_ptr<Device> device = open_device(line.text("device"));
  const Config config =
      name == "base" ? enumerate_space(workload, device->info()).base : parse_config(name, workload, device->info());
  const std::unique_ptr<Bench> bench = device->open(workload);
  const std::unique_ptr<Kernel> kernel = bench->load(config);

  Verification verification;
  if (check) {
    verification = kernel->verify();
    if (!verification.right)
      throw ConfigFailure(Outcome::wrong_result,
                          fmt::format("{} gives a wrong result for {} on {}: {}", config.name(), to_string(workload),
                                      device->info().id, verification.what));
  }
  const Estimate time = only_launch ? time_launches(*kernel, launches) : time_samples(*kernel);
  const double gbps = static_cast<double>(bytes_moved(workload)) / (time.median * 1e3);
  // A launch that is waited for includes the way there and back: its bandwidth would mislead.
  reports::Sheet sheet;
  sheet.heads = {column("device"),
                 column("op"),
                 column("dtype"),
                 column("shape"),
                 column("regime"),
                 column("config"),
                 column("time_us", only_launch ? "time, waited for" : "time", Style::time),
                 column("time_lo_us", "low", Style::time),
                 column("time_hi_us", "high", Style::time),
                 column("gbps", "GB/s", Style::rate, only_launch),
                 column("samples", only_launch ? "launches" : "", Style::count),
                 column("max_error_ulp", "max error", Style::error),
                 column("checked", "", Style::flag)};
  sheet.rows.push_back({device->info().id, to_string(workload.op), to_string(workload.dtype), to_string(workload.shape),
                        to_string(workload.regime), config.name(), time.median, time.low, time.high,
                        only_launch ? Cell() : Cell(gbps), std::int64_t{time.count},
                        check ? Cell(verification.max_error_ulp) : Cell(), check});
  print(sheet, format);
  return exit_done;
}

}  // namespace rowtune
