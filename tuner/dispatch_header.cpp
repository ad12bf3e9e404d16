// Dispatch tables as a CUDA header: data for rowtune/dispatch/launch.cuh, with the evidence as comments.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/cuda/plan.hpp"
#include "tuner/dispatch_table.hpp"

namespace rowtune {
namespace {

/// A text as a C++ string literal, and without what could end a comment line.
std::string literal(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e)
      quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      quoted += c;
  }
  return quoted + "\"";
}
std::string comment(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += static_cast<unsigned char>(c) < 0x20 || c == '\\' ? ' ' : c;
  return safe;
}

const char* spelling_of(dispatch::Family family) {
  using dispatch::Family;
  switch (family) {
    case Family::lanes:
      return "lanes";
    case Family::block:
      return "block";
    case Family::shared:
      return "shared";
    case Family::cluster:
      return "cluster";
    case Family::cluster_shared:
      return "cluster_shared";
    case Family::split:
      return "split";
    case Family::split_reread:
      return "split_reread";
    case Family::threepass:
      return "threepass";
    default:
      return "reread";
  }
}

std::string kernel_line(const dispatch::Kernel& k) {
  return fmt::format("      {{Family::{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}",
                     spelling_of(k.family), k.block, k.rows_per_warp, k.vector, k.split, k.vectors, k.ragged, k.packed,
                     k.async, k.batch, k.hint, k.exp, k.variance, k.min_blocks, k.resident_blocks, k.early, k.ahead,
                     k.shared_weights);
}

/// `5.57 us [5.55, 5.60], 70 % of a copy, 1.88 x base (reread...), ties 2, 0.51 ulp, ...`
std::string evidence_line(const DispatchEntry& entry) {
  const auto& e = entry.evidence;
  std::string text = fmt::format("{}x{}, {}-byte rows: {} {:.3f} us", entry.rows, entry.cols, entry.alignment,
                                 entry.config, e.time_us);
  if (e.time_lo_us && e.time_hi_us) text += fmt::format(" [{:.3f}, {:.3f}]", *e.time_lo_us, *e.time_hi_us);
  if (e.ceiling_fraction) text += fmt::format(", {:.0f} % of a copy", 100 * *e.ceiling_fraction);
  if (e.gain_over_base) text += fmt::format(", {:.2f} x base", *e.gain_over_base);
  text += e.decided ? fmt::format(", {} ties in the final", e.ties) : fmt::format(", {} ties by intervals", e.ties);
  if (e.regret && entry.config != e.best_config)
    text += fmt::format(", {:.1f} % over {}", 100 * *e.regret, e.best_config);
  if (e.max_error_ulp) text += fmt::format(", {:.3g} ulp", *e.max_error_ulp);
  return text;
}

std::string list(const std::string& type, const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return fmt::format("  static constexpr const {}* {} = nullptr;\n", type, name);
  return fmt::format("  static constexpr {} {}[] = {{\n{}}};\n", type, name, fmt::join(lines, "\n"));
}

std::string regions(const std::string& name, const std::vector<DispatchRegion>& all, int first_kernel) {
  std::vector<std::string> lines;
  for (const auto& r : all)
    lines.push_back(fmt::format("      {{{}, {}, {}}},", r.cols, r.rows, r.kernel < 0 ? -1 : r.kernel + first_kernel));
  return list("Region", name, lines);
}

std::string device_line(const DispatchTable& t) {
  const auto d = cuda::device_of_limits(t.device_limits).value();
  return fmt::format("      {{{}, {}, {}, {}, {}, {}, {}, {}, {}}},", literal(t.device_model), d.architecture, d.units,
                     d.max_threads_per_block, d.max_threads_per_unit, d.registers_per_unit, d.shared_bytes_per_block,
                     d.shared_bytes_per_unit, d.cache_bytes);
}

/// Everything for one operation and dtype.
std::string tuned(const std::vector<const DispatchTable*>& tables) {
  const auto& first = *tables.front();
  std::string text =
      fmt::format("template <>\nstruct Tuned<Operation::{}, {}> {{\n", to_string(first.op), to_string(first.dtype));
  text += fmt::format("  static constexpr bool weight = {};\n  static constexpr bool bias = {};\n",
                      first.options.weight, first.options.bias);
  std::vector<std::string> kernels, configs, devices, rows;
  std::string arrays;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto& t = *tables[i];
    const int first_kernel = static_cast<int>(kernels.size());
    for (const auto& k : t.kernels) {
      kernels.push_back(kernel_line(constants_of(t, k)) + ",");
      configs.push_back(fmt::format("      {},", literal(k.config)));
    }
    std::set<std::string> toolchains, sources;
    std::vector<std::string> lines;
    for (const auto& entry : t.entries) {
      toolchains.insert(fmt::format("{}, protocol {}", entry.evidence.toolchain, entry.evidence.protocol));
      sources.insert(entry.evidence.source_fingerprint);
      lines.push_back(fmt::format("      // {}\n      {{{}, {}, {}, {}, {:#.6g}f}},", comment(evidence_line(entry)),
                                  entry.cols, entry.rows, entry.alignment,
                                  entry.kernel < 0 ? -1 : entry.kernel + first_kernel, entry.evidence.time_us));
    }
    arrays += fmt::format("  // {}, {}. {}; kernel sources {}.\n", comment(t.device_model), comment(t.device_limits),
                          comment(fmt::format("{}", fmt::join(toolchains, "; "))),
                          comment(fmt::format("{}", fmt::join(sources, ", "))));
    arrays += list("Entry", fmt::format("entries_{}", i), lines);
    arrays += regions(fmt::format("aligned_{}", i), t.aligned, first_kernel);
    arrays += regions(fmt::format("ragged_{}", i), t.ragged, first_kernel);
    devices.push_back(device_line(t));
    rows.push_back(fmt::format("      {{kernels, {}, {}, entries_{}, {}, aligned_{}, {}, ragged_{}, {}, {}, {}}},",
                               first_kernel, t.kernels.size(), i, t.entries.size(), i, t.aligned.size(), i,
                               t.ragged.size(), t.least_cols, t.least_rows));
  }
  text += fmt::format("  static constexpr int kernel_count = {};\n", kernels.size());
  text += list("Kernel", "kernels", kernels) + list("const char*", "configs", configs) + arrays;
  text += fmt::format("  static constexpr int table_count = {};\n", tables.size());
  text += list("Device", "devices", devices) + list("Table", "tables", rows);
  return text + "};\n\n";
}

}  // namespace

std::string to_header(const DispatchTables& all) {
  std::map<std::pair<Operation, Dtype>, std::vector<const DispatchTable*>> groups;
  for (const auto& t : all.tables) {
    if (!is_cuda(t.device_limits)) continue;
    auto& group = groups[{t.op, t.dtype}];
    const auto same_code = [&](const DispatchTable* other) {
      return other->options.weight == t.options.weight && other->options.bias == t.options.bias;
    };
    const auto same_place = [&](const DispatchTable* other) {
      return other->device_model == t.device_model && other->device_limits == t.device_limits;
    };
    // A launcher has one set of options, and a device one table: the first.
    if (std::all_of(group.begin(), group.end(), same_code) && std::none_of(group.begin(), group.end(), same_place))
      group.push_back(&t);
  }
  std::string text =
      "// Made by `rowtune dispatch`: which kernel to launch for a shape, from measurements on the devices named "
      "below.\n"
      "// How to call it: rowtune/dispatch/launch.cuh. One such header a program. A host compiler gets the look-up "
      "alone.\n"
      "//\n"
      "// Kernel: family, block, rows per warp, vector, split, vectors a thread, ragged, packed, async, batch, hint,\n"
      "// exp, variance, min_blocks, resident_blocks, early, ahead, shared_weights (rowtune/dispatch/geometry.cuh).\n"
      "// Entry: cols, rows, alignment in bytes, kernel, microseconds. Region: up to these cols and rows, kernel (-1: "
      "the base).\n"
      "#pragma once\n\n#include \"rowtune/dispatch/tuned.cuh\"\n\n"
      "static_assert(rowtune::dispatch::data_version == 1, \"made for other kernel headers: run `rowtune dispatch` "
      "anew\");\n\nnamespace rowtune {\nnamespace dispatch {\n\n";
  for (const auto& [key, tables] : groups) text += tuned(tables);
  return text +
         "}  // namespace dispatch\n}  // namespace rowtune\n\n"
         "#if defined(__CUDACC__)\n#include \"rowtune/dispatch/launch.cuh\"\n#endif\n";
}

}  // namespace rowtune
