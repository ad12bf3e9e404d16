// rowtune devices: what this machine offers, and why a device is unusable.

#include <fmt/format.h>

#include "kernels/device.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {
namespace {

using reports::Cell;
using reports::Style;

Cell known(const std::string& text) { return text.empty() ? Cell() : Cell(text); }
Cell known(std::int64_t number) { return number > 0 ? Cell(number) : Cell(); }
Cell known(double number) { return number > 0 ? Cell(number) : Cell(); }
Cell bytes(std::int64_t number) { return number > 0 ? Cell(format_bytes(static_cast<double>(number))) : Cell(); }

const std::vector<reports::Field<DeviceInfo>>& device_fields() {
  using D = DeviceInfo;
  constexpr bool hidden = true;
  static const std::vector<reports::Field<D>> fields{
      {{"id", "device", "", "the name that --device takes"}, [](const D& d) { return Cell(d.id); }},
      {{"usable", "", "", "whether it can be tuned on", Style::flag}, [](const D& d) { return Cell(d.usable); }},
      {{"model", "", "", "model"}, [](const D& d) { return known(d.model); }},
      {{"units", "", "", "multiprocessors of a GPU, hardware threads of a cpu", Style::count},
       [](const D& d) { return d.usable ? known(std::int64_t{d.units}) : Cell(); }},
      {{"cache", "", "", "the last cache before memory"}, [](const D& d) { return bytes(d.cache_bytes); }},
      {{"memory", "", "", "memory"}, [](const D& d) { return bytes(d.memory_bytes); }},
      {{"peak_gbps", "peak GB/s", "GB/s", "bandwidth by clock and width", Style::rate},
       [](const D& d) { return known(d.peak_gbps); }},
      {{"toolchain", "", "", "what compiles its kernels"}, [](const D& d) { return known(d.toolchain); }},
      {{"architecture", "", "", "90 for sm_90", Style::count, hidden},
       [](const D& d) { return known(std::int64_t{d.architecture}); }},
      {{"cache_bytes", "", "bytes", "", Style::count, hidden}, [](const D& d) { return known(d.cache_bytes); }},
      {{"memory_bytes", "", "bytes", "", Style::count, hidden}, [](const D& d) { return known(d.memory_bytes); }},
      {{"shared_bytes_per_block", "", "bytes", "", Style::count, hidden},
       [](const D& d) { return known(std::int64_t{d.shared_bytes_per_block}); }},
      {{"registers_per_unit", "", "", "", Style::count, hidden},
       [](const D& d) { return known(std::int64_t{d.registers_per_unit}); }},
      {{"max_cluster", "", "", "blocks of a cluster", Style::count, hidden},
       [](const D& d) { return Cell(std::int64_t{d.max_cluster}); }},
      {{"limits", "", "", "part of a measurement's identity", Style::text, hidden},
       [](const D& d) { return known(d.limits); }},
      {{"driver", "", "", "", Style::text, hidden}, [](const D& d) { return known(d.driver); }},
      {{"uuid", "", "", "", Style::text, hidden}, [](const D& d) { return known(d.uuid); }},
      {{"why_unusable", "", "", "", Style::text, hidden}, [](const D& d) { return known(d.why_unusable); }}};
  return fields;
}

/// What the columns leave out.
std::string notes(const std::vector<DeviceInfo>& devices) {
  std::string text, chosen;
  for (const DeviceInfo& d : devices) {
    if (d.usable && chosen.empty()) chosen = d.id;
    if (!d.usable)
      text += fmt::format("{} is not usable: {}\n", d.id, d.why_unusable);
    else
      text += fmt::format("{} limits: {}\n", d.id, d.limits);
  }
  return text + fmt::format("--device auto takes {}\n", chosen);
}

}  // namespace

int devices_command(const Arguments& arguments) {
  CommandLine line(
      "devices", "devices [--format FORMAT]",
      "Lists every CUDA device, usable or not, and the cpu device, with the limits that matter to a space.");
  line.add_format();
  line.add_example("rowtune devices", "what is here, and what `--device auto` would take");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const std::vector<DeviceInfo> devices = list_devices();
  print(reports::sheet_of(device_fields(), devices), format);
  if (format == Format::table) print(fmt::format("\n{}", notes(devices)));
  return exit_done;
}

}  // namespace rowtune
