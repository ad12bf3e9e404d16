// rowtune devices: what this machine offers, and why a device is unusable.

#include <fmt/format.h>

#include "kernels/device.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/table.hpp"

namespace rowtune {

int devices_command(const Arguments& arguments) {
  CommandLine line(
      "devices", "devices [--format FORMAT]",
      "Lists every CUDA device, usable or not, and the cpu device, with the limits that matter to a space.");
  line.add_format();
  line.add_example("rowtune devices", "what is here, and what `--device auto` would take");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));

  const std::vector<DeviceInfo> devices = list_devices();
  Table table;
  table.columns = {{"id", "device"},
                   {"usable", "usable"},
                   {"model", "model"},
                   {"architecture", ""},
                   {"units", "units"},
                   {"cache_bytes", ""},
                   {"cache", "cache"},
                   {"memory_bytes", ""},
                   {"memory", "memory"},
                   {"peak_gbps", "peak GB/s", 0},
                   {"toolchain", "toolchain"},
                   {"driver", ""},
                   {"uuid", ""},
                   {"limits", ""},
                   {"why_unusable", ""}};
  const auto bytes = [](std::int64_t n) {
    return n > 0 ? nlohmann::ordered_json(format_bytes(static_cast<double>(n))) : nlohmann::ordered_json();
  };
  for (const DeviceInfo& d : devices)
    table.rows.push_back({d.id, d.usable, d.model.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(d.model),
                          d.architecture, d.usable ? nlohmann::ordered_json(d.units) : nlohmann::ordered_json(),
                          d.cache_bytes, bytes(d.cache_bytes), d.memory_bytes, bytes(d.memory_bytes),
                          d.peak_gbps > 0 ? nlohmann::ordered_json(d.peak_gbps) : nlohmann::ordered_json(), d.toolchain,
                          d.driver, d.uuid, d.limits, d.why_unusable});
  std::string text = table.print(format);
  if (format == Format::table) {
    std::string chosen;
    for (const DeviceInfo& d : devices) {
      if (!d.usable) text += fmt::format("{} is not usable: {}\n", d.id, d.why_unusable);
      if (d.usable && chosen.empty()) chosen = d.id;
    }
    text +=
        fmt::format("--device auto takes {}. Units are multiprocessors of a GPU, hardware threads of a cpu.\n", chosen);
  }
  print(text);
  return exit_done;
}

}  // namespace rowtune
