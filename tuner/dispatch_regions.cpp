// Which kernel for shapes that were not tuned.
//
// The measurements of all tuned shapes vote. Each config has a regret on each tuned shape (1 / time relative to the
// best there), and the votes are weighted by how similar that shape is to the asked one: exp(-distance), where the
// distance is two for each doubling of the columns, one for each doubling of the rows, and one where one of the two
// has ragged rows and the other has not. The config with the least weighted regret wins, the base among them. Columns
// weigh more than rows: they decide what fits where. What else was tried is told in README.md.
//
// The plane of (cols, rows) is cut at the tuned shapes and between them, and decided once for each piece, so that a
// look-up is a search in a sorted list.

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "kernels/cuda/plan.hpp"
#include "kernels/space.hpp"
#include "tuner/dispatch_measured.hpp"

namespace rowtune {
namespace {

constexpr double cols_weight = 2, rows_weight = 1, ragged_weight = 1;
constexpr double unmeasured = 0.3;  ///< regret of a config on a shape that it was not measured on
constexpr double most_regret = 3;   ///< one hopeless vote counts no more than this
/// What a kernel that no tuned shape needs has to gain where it is used first. Raised until the kernels are few enough.
constexpr double of_new_kernel[] = {0.02, 0.05, 0.1, 0.2, 0.5, 1e9};
/// Per doubling of what a kernel could hold over what the row needs: vectors that are not there still cost
/// instructions.
constexpr double of_idle_vectors = 0.1;
/// What a config has to be better by than the rest where the tuner would not try it.
constexpr double of_odd_config = 0.5;
constexpr std::size_t contenders = 4;  ///< configs of a tuned shape that stand for election elsewhere

/// How far the table reaches beyond the tuned shapes, as a factor.
constexpr std::int64_t reach = 8;

/// Ascending ends of intervals: the tuned extents, and what lies between them and beyond cut into pieces of at most
/// `ratio`.
std::vector<std::int64_t> cut(const std::set<std::int64_t>& tuned, double ratio) {
  std::set<std::int64_t> ends(tuned);
  const auto between = [&](double low, double high) {
    const int pieces = std::max(1, static_cast<int>(std::ceil(std::log(high / low) / std::log(ratio) - 1e-9)));
    for (int i = 1; i <= pieces; ++i)
      ends.insert(static_cast<std::int64_t>(std::llround(low * std::pow(high / low, double(i) / pieces))));
  };
  for (auto at = tuned.begin(); std::next(at) != tuned.end(); ++at)
    between(static_cast<double>(*at), static_cast<double>(*std::next(at)));
  const auto first = static_cast<double>(*tuned.begin()), last = static_cast<double>(*tuned.rbegin());
  between(std::ceil(first / reach), first);
  between(last, reach * last);
  ends.insert(dispatch::grid_limit);
  const auto limit = std::min<std::int64_t>(reach * *tuned.rbegin(), dispatch::grid_limit);
  return {ends.begin(), ends.upper_bound(limit)};
}

bool is_ragged(const MeasuredWorkload& w, Dtype dtype) {
  return w.alignment < 16 || w.shape.cols * size_of(dtype) % 16 != 0;
}

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

/// A kernel that may be chosen for a piece: a config by number, and what the rows add to it.
struct Option {
  std::size_t config;
  int vectors;
  bool ragged;
  bool is_base;
  double handicap;
  auto kernel() const { return std::tuple(config, vectors, ragged); }
};
using KernelNumber = std::tuple<std::size_t, int, bool>;

/// A piece of the plane: rows of the same class, from (first_col, first_row) to (last_col, last_row).
struct Piece {
  std::int64_t first_col, last_col, first_row, last_row;
  std::vector<double> predicted;  ///< regret of each config
};

class Regions {
 public:
  Regions(const MeasuredTable& measured, const DispatchTable& table) : measured_(measured), table_(table) {
    // Who may stand for election: what serves a tuned shape, what came close on one, and the base.
    std::set<std::string> names;
    for (const auto& entry : table.entries) names.insert(entry.config);
    for (const auto& w : measured.workloads) {
      std::vector<std::pair<double, std::string>> fastest;
      for (const auto& [name, row] : w.configs) fastest.emplace_back(*row.time_us, name);
      const auto some = std::min(contenders, fastest.size());
      std::partial_sort(fastest.begin(), fastest.begin() + static_cast<std::ptrdiff_t>(some), fastest.end());
      for (std::size_t i = 0; i < some; ++i) names.insert(fastest[i].second);
      if (!w.base.empty()) names.insert(w.base);
    }
    configs_.assign(names.begin(), names.end());
    for (const auto& name : configs_) {
      parsed_.push_back(split_config_name(name));
      constants_.push_back(constants_of(table, {name, 0, true}));
      dispatchable_.push_back(cuda::family_of(parsed_.back().algorithm).has_value());
    }
    for (const auto& w : measured.workloads) {
      auto& regrets = regrets_.emplace_back();
      for (const auto& name : configs_) {
        const auto time = w.time_of(name);
        regrets.push_back(time ? std::clamp(*time / w.best_us() - 1, 0.0, most_regret) : unmeasured);
      }
    }
    std::set<std::int64_t> cols, rows;
    for (const auto& w : measured.workloads) {
      if (w.shape.cols == 0 || w.shape.rows == 0) continue;
      cols.insert(w.shape.cols), rows.insert(w.shape.rows);
    }
    if (cols.empty()) return;
    least_cols_ = (*cols.begin() + reach - 1) / reach;
    least_rows_ = (*rows.begin() + reach - 1) / reach;
    for (const bool ragged : {false, true}) cut_plane(cut(cols, 2), cut(rows, 4), ragged);
  }

  /// The table with its regions. Kernels that no tuned shape needs are dear; see of_new_kernel.
  DispatchTable with_regions(double new_kernel) const {
    DispatchTable table = table_;
    table.least_cols = least_cols_, table.least_rows = least_rows_;
    std::vector<KernelNumber> kernels;  // those of the table
    for (const auto& k : table.kernels) {
      const auto config = std::lower_bound(configs_.begin(), configs_.end(), k.config) - configs_.begin();
      kernels.emplace_back(static_cast<std::size_t>(config), k.vectors, k.ragged);
    }
    for (const bool ragged : {false, true}) {
      auto& regions = ragged ? table.ragged : table.aligned;
      std::size_t column_begin = 0, last_begin = 0;
      std::vector<Option> options;
      const auto& pieces = pieces_[ragged];
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto& piece = pieces[i];
        const bool opens_column = i == 0 || pieces[i - 1].last_col != piece.last_col;
        if (opens_column) {
          options = options_for(kernels, ragged, piece.last_col);
          last_begin = column_begin, column_begin = regions.size();
        }
        const int kernel = choose(options, ragged, i, new_kernel, kernels);
        if (!opens_column && regions.back().kernel == kernel)
          regions.back().rows = piece.last_row;
        else
          regions.push_back({piece.last_col, piece.last_row, kernel});
        const bool closes_column = i + 1 == pieces.size() || pieces[i + 1].last_col != piece.last_col;
        if (closes_column && column_begin > last_begin && same_column(regions, last_begin, column_begin)) {
          // A column like the one before only moves its end.
          regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(last_begin),
                        regions.begin() + static_cast<std::ptrdiff_t>(column_begin));
          column_begin = last_begin;
        }
      }
    }
    for (std::size_t i = table.kernels.size(); i < kernels.size(); ++i) {
      const auto& [config, vectors, is_ragged] = kernels[i];
      table.kernels.push_back({configs_[config], vectors, is_ragged});
    }
    return table;
  }

 private:
  static bool same_column(const std::vector<DispatchRegion>& regions, std::size_t first, std::size_t second) {
    if (regions.size() - second != second - first) return false;
    for (std::size_t i = 0; first + i < second; ++i)
      if (regions[first + i].rows != regions[second + i].rows ||
          regions[first + i].kernel != regions[second + i].kernel)
        return false;
    return true;
  }

  void cut_plane(const std::vector<std::int64_t>& col_ends, const std::vector<std::int64_t>& row_ends, bool ragged) {
    std::int64_t first_col = least_cols_;
    for (const auto last_col : col_ends) {
      std::int64_t first_row = least_rows_;
      for (const auto last_row : row_ends) {
        Piece piece{first_col, last_col, first_row, last_row, std::vector<double>(configs_.size(), 0)};
        const auto weights = votes(ragged, piece);
        for (std::size_t i = 0; i < weights.size(); ++i)
          for (std::size_t c = 0; c < configs_.size(); ++c) piece.predicted[c] += weights[i] * regrets_[i][c];
        pieces_[ragged].push_back(std::move(piece));
        first_row = last_row + 1;
      }
      first_col = last_col + 1;
    }
  }

  /// The weight of each tuned shape's vote on a piece, by its middle; together 1.
  std::vector<double> votes(bool ragged, const Piece& piece) const {
    const auto middle = [](std::int64_t a, std::int64_t b) {
      return std::sqrt(static_cast<double>(std::max<std::int64_t>(a, 1)) * static_cast<double>(b));
    };
    const double cols = middle(piece.first_col, piece.last_col), rows = middle(piece.first_row, piece.last_row);
    std::vector<double> weights;
    double total = 0;
    for (const auto& w : measured_.workloads) {
      double distance = ragged_weight * (is_ragged(w, measured_.head.dtype) != ragged);
      distance += cols_weight * octaves(std::max<double>(1, static_cast<double>(w.shape.cols)), cols);
      distance += rows_weight * octaves(std::max<double>(1, static_cast<double>(w.shape.rows)), rows);
      weights.push_back(std::exp(-distance));
      total += weights.back();
    }
    for (double& weight : weights) weight /= total;
    return weights;
  }

  /// What could serve rows up to `cols` in this class: the kernels that are there, each config with what it needs for
  /// these rows, and the base, which every program has.
  std::vector<Option> options_for(const std::vector<KernelNumber>& kernels, bool ragged, std::int64_t cols) const {
    const std::string base = base_for(cols);
    std::vector<Option> options;
    std::set<KernelNumber> seen;
    const auto add = [&](std::size_t config, int vectors, bool kernel_is_ragged) {
      if (!seen.emplace(config, vectors, kernel_is_ragged).second) return;
      double handicap = 0;
      if (measured_.device) {
        auto constants = constants_[config];
        constants.vectors = vectors, constants.ragged = kernel_is_ragged;
        if ((ragged && !kernel_is_ragged) || !dispatch::holds(constants, cols, ragged ? constants.vector - 1 : 0))
          return;
        if (vectors > 0)
          handicap = of_idle_vectors *
                     octaves(static_cast<double>(dispatch::longest_row(constants)), static_cast<double>(cols));
      }
      options.push_back({config, vectors, kernel_is_ragged, false, handicap});
    };
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (measured_.device && configs_[i] == base) options.push_back({i, 0, true, true, 0});
      for (const auto& [config, vectors, kernel_is_ragged] : kernels)
        if (config == i) add(i, vectors, kernel_is_ragged);
      if (!measured_.device || !dispatchable_[i]) continue;
      // What these rows need: the worst of this class, whose first element lies just behind a boundary.
      const auto& k = constants_[i];
      const auto needed = dispatch::vectors_per_thread(k, cols, ragged ? k.vector - 1 : 0);
      if (needed > 1024) continue;
      add(i, dispatch::rereads(k.family) ? 0 : static_cast<int>(std::max(1LL, needed)), ragged);
    }
    return options;
  }

  /// Short rows have another base than long rows: that of the tuned shape with the nearest number of columns.
  std::string base_for(std::int64_t cols) const {
    const auto distance = [&](const MeasuredWorkload& w) {
      return octaves(std::max<double>(1, static_cast<double>(w.shape.cols)), static_cast<double>(cols));
    };
    return std::min_element(measured_.workloads.begin(), measured_.workloads.end(),
                            [&](const auto& a, const auto& b) { return distance(a) < distance(b); })
        ->base;
  }

  /// What a config breaks on rows like these: `must`: it cannot run; `worth`: the tuner would not try it.
  std::optional<Constraint::Kind> broken_constraint(std::size_t config, bool ragged, const Piece& piece) const {
    const auto known = broken_.try_emplace({config, ragged, piece.last_col, piece.last_row});
    auto& broken = known.first->second;
    if (!known.second) return broken;
    Workload w{measured_.head.op, measured_.head.dtype, Shape::of(piece.last_row, piece.last_col),
               measured_.head.regime, measured_.head.options};
    if (ragged) w.shape.ld = piece.last_col | 1, w.shape.off = 1;
    for (const auto& c : algorithm_named(DeviceKind::cuda, parsed_[config].algorithm).constraints) {
      if (broken == c.kind || c.holds(w, *measured_.device, parsed_[config])) continue;
      broken = c.kind;
      if (c.kind == Constraint::Kind::must) break;
    }
    return broken;
  }

  int choose(const std::vector<Option>& options, bool ragged, std::size_t piece_number, double new_kernel,
             std::vector<KernelNumber>& kernels) const {
    const Piece& piece = pieces_[ragged][piece_number];
    std::vector<std::pair<double, const Option*>> ranked;
    for (const auto& option : options) {
      if (piece.last_row * constants_[option.config].split > dispatch::grid_limit) continue;
      const bool there = std::find(kernels.begin(), kernels.end(), option.kernel()) != kernels.end();
      const double price = option.is_base || there ? 0 : new_kernel;
      ranked.emplace_back(piece.predicted[option.config] + option.handicap + price, &option);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto take = [&](const Option& option) {
      if (option.is_base) return -1;
      const auto at = std::find(kernels.begin(), kernels.end(), option.kernel());
      const auto number = static_cast<int>(at - kernels.begin());
      if (at == kernels.end()) kernels.push_back(option.kernel());
      return number;
    };
    using Candidate = std::pair<double, const Option*>;
    const auto better = [](const Candidate* odd, double regret) {
      return odd != nullptr && odd->first + of_odd_config < regret;
    };
    const Candidate* odd = nullptr;  // the best of those that the tuner would not try here
    for (const auto& candidate : ranked) {
      const auto& [regret, option] = candidate;
      if (!measured_.device || option->is_base) return take(better(odd, regret) ? *odd->second : *option);
      const auto broken = broken_constraint(option->config, ragged, piece);
      if (!broken) return take(better(odd, regret) ? *odd->second : *option);
      if (*broken == Constraint::Kind::worth && odd == nullptr) odd = &candidate;
    }
    return -1;
  }

  const MeasuredTable& measured_;
  const DispatchTable& table_;
  std::vector<std::string> configs_;
  std::vector<Config> parsed_;               ///< the same, taken apart
  std::vector<dispatch::Kernel> constants_;  ///< the same, without what rows add
  std::vector<bool> dispatchable_;           ///< whether a table may hold them
  mutable std::map<std::tuple<std::size_t, bool, std::int64_t, std::int64_t>, std::optional<Constraint::Kind>> broken_;
  std::vector<std::vector<double>> regrets_;  ///< of each workload: of each config
  std::vector<Piece> pieces_[2];              ///< aligned, ragged; by columns, then rows
  std::int64_t least_cols_ = 0, least_rows_ = 0;
};

}  // namespace

void add_regions(const MeasuredTable& measured, const DispatchSettings& settings, DispatchTable& table) {
  const Regions regions(measured, table);
  for (const double price : of_new_kernel) {
    auto with = regions.with_regions(price);
    const bool last = price == of_new_kernel[std::size(of_new_kernel) - 1];
    if (last || static_cast<int>(with.kernels.size()) <= settings.max_kernels) {
      table = std::move(with);
      return;
    }
  }
}

}  // namespace rowtune
