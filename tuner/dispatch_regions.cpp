// Which kernel for shapes that were not tuned.
//
// The plane of (cols, rows) is decided once for each piece (dispatch_plane.hpp), so that a look-up is a search in a
// sorted list. What each config would cost in the middle of a piece is predicted (dispatch_predict.hpp) where it was
// not measured in the piece itself; the base and the kernels that tuned shapes need are there in any case; of the
// others, those are added that save most over all pieces, where a piece counts the more the nearer it is to a tuned
// shape.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/algorithms.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/space.hpp"
#include "tuner/dispatch_measured.hpp"
#include "tuner/dispatch_plane.hpp"
#include "tuner/dispatch_predict.hpp"

namespace rowtune {
namespace {

/// What a kernel that no tuned shape needs has to save: the predicted regret, summed over pieces by their weights.
constexpr double least_saving = 0.02;
/// Per doubling of what a kernel could hold over what the row needs: vectors that are not there still cost
/// instructions.
constexpr double of_idle_vectors = 0.1;
/// What a config has to be better by than the rest where the tuner would not try it.
constexpr double of_odd_config = 0.5;
constexpr int most_vectors = 64;       ///< that a thread may be asked to hold: more is never legal
constexpr double of_unknown_base = 9;  ///< regret of a base that was not measured
double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

/// A config by number, and what the rows add to it.
struct KernelNumber {
  std::size_t config;
  int vectors;
  bool ragged;
  auto operator<=>(const KernelNumber&) const = default;
};

/// A piece of the plane: rows of one class, up to these.
struct Piece {
  bool ragged;
  std::int64_t last_col, last_row;
  std::int64_t middle_col, middle_row;
  double weight;  ///< 1 at a tuned shape, less the further from all of them
  double cost;    ///< predicted regret of what serves it so far
  int kernel;     ///< that: -1 is the base
};

/// A kernel that may be in the table, and what it costs on the pieces that it can serve.
struct Candidate {
  int number = -1;                                          ///< in the table; -1: not taken
  double saving = std::numeric_limits<double>::infinity();  ///< at most: it falls as others are taken
  std::vector<std::pair<std::size_t, double>> costs;
};

/// A config that can serve rows of a length: its kernels, by what it costs that they hold more, ascending.
struct AbleConfig {
  std::size_t config;
  bool odd;  ///< the tuner would not try it, however many the rows
  std::vector<std::pair<double, Candidate*>> kernels;
};

class Regions {
 public:
  Regions(const MeasuredTable& measured, const DispatchTable& table) : measured_(measured), table_(table) {
    // Whatever was measured stands for election, and what serves a tuned shape.
    std::set<std::string> names;
    for (const auto& entry : table.entries) names.insert(entry.config);
    for (const auto& w : measured.workloads)
      for (const auto& [name, row] : w.configs) names.insert(name);
    configs_.assign(names.begin(), names.end());
    for (const auto& name : configs_) {
      parsed_.push_back(split_config_name(name));
      constants_.push_back(constants_of(table, {name, 0, true}));
      if (measured.device) algorithms_.push_back(&algorithm_named(DeviceKind::cuda, parsed_.back().algorithm));
    }
    for (std::size_t i = 0; i < table.kernels.size(); ++i) {
      const auto& k = table.kernels[i];
      const auto config = std::lower_bound(configs_.begin(), configs_.end(), k.config) - configs_.begin();
      candidates_[{static_cast<std::size_t>(config), k.vectors, k.ragged}].number = static_cast<int>(i);
    }
    const Plane plane = plane_of(measured);
    if (plane.col_ends.empty()) return;
    table_.least_cols = plane.least_cols, table_.least_rows = plane.least_rows;
    for (const bool ragged : {false, true}) {
      add_candidates(plane.col_ends, ragged);
      decide_on(plane, ragged);
    }
  }

  /// The table with its regions.
  DispatchTable with_regions(int most_kernels) {
    for (const auto& [kernel, candidate] : candidates_)
      if (candidate.number >= 0) serve_by(candidate);
    while (static_cast<int>(table_.kernels.size()) < most_kernels && take_another()) {
    }
    for (const auto& piece : pieces_) append(piece);
    return table_;
  }

 private:
  /// Each config with what it needs for the rows of each column of pieces.
  void add_candidates(const std::vector<std::int64_t>& col_ends, bool ragged) {
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (!measured_.device) {
        candidates_[{i, 0, true}];
        continue;
      }
      if (!cuda::family_of(parsed_[i].algorithm)) continue;
      const auto& k = constants_[i];
      for (const auto cols : col_ends) {
        const auto needed = dispatch::vectors_per_thread(k, cols);
        if (needed > most_vectors) continue;
        candidates_[{i, dispatch::rereads(k.family) ? 0 : static_cast<int>(std::max(1LL, needed)), ragged}];
      }
    }
  }

  void decide_on(const Plane& plane, bool ragged) {
    const Predictor predictor(measured_, configs_);
    std::int64_t first_col = table_.least_cols;
    for (const auto last_col : plane.col_ends) {
      const auto base = base_of(last_col);
      // Those that are in the table in any case come first: of the others only what is better than they can save.
      std::vector<AbleConfig> certain, possible;
      for (auto& [kernel, candidate] : candidates_) {
        const auto idle = of_idle(kernel, last_col, ragged);
        if (!idle) continue;
        auto& able = candidate.number >= 0 ? certain : possible;
        if (able.empty() || able.back().config != kernel.config) able.push_back({kernel.config, false, {}});
        able.back().kernels.emplace_back(*idle, &candidate);
      }
      // What does not depend on the rows is asked once for all pieces of the column, not for each: half of the time.
      const double cols = middle(first_col, last_col);
      const auto longest = workload(1, last_col, ragged), usual = workload(1, std::llround(cols), ragged);
      for (auto* able : {&certain, &possible}) {
        std::erase_if(*able,
                      [&](const auto& a) { return !holds_all(Constraint::Kind::must, false, a.config, longest); });
        for (auto& a : *able) a.odd = !holds_all(Constraint::Kind::worth, false, a.config, usual);
      }
      std::int64_t first_row = table_.least_rows;
      for (const auto last_row : plane.row_ends) {
        const double rows = middle(first_row, last_row);
        const auto place = predictor.place(rows, cols, ragged);
        const auto* const inside = measured_inside(first_col, last_col, first_row, last_row, ragged);
        const auto cost_of = [&](std::size_t config) {
          const auto known = inside ? slowdown_at(*inside, configs_[config]) : std::nullopt;
          return known ? *known : predictor.regret(place, config);
        };
        Piece piece{ragged,
                    last_col,
                    last_row,
                    std::llround(cols),
                    std::llround(rows),
                    std::sqrt(place.most),
                    base ? cost_of(*base) : of_unknown_base,
                    -1};
        double least = piece.cost;
        const auto most = workload(last_row, last_col, ragged),
                   typical = workload(piece.middle_row, piece.middle_col, ragged);
        for (const auto* able : {&certain, &possible})
          for (const auto& [config, odd, kernels] : *able) {
            const double predicted = cost_of(config);
            if (predicted + kernels.front().first >= least) continue;
            if (!fits_rows(config, most)) continue;
            const double served =
                predicted + (odd || !holds_all(Constraint::Kind::worth, true, config, typical) ? of_odd_config : 0);
            for (const auto& [idle, candidate] : kernels) {
              const double cost = served + idle;
              if (cost >= least) break;
              candidate->costs.emplace_back(pieces_.size(), cost);
              if (able == &certain) least = cost;
            }
          }
        pieces_.push_back(piece);
        first_row = last_row + 1;
      }
      first_col = last_col + 1;
    }
  }

  /// A place off the grid in this piece: of several the nearest to its middle.
  const MeasuredWorkload* measured_inside(std::int64_t first_col, std::int64_t last_col, std::int64_t first_row,
                                          std::int64_t last_row, bool ragged) const {
    const MeasuredWorkload* nearest = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& w : measured_.workloads) {
      if (w.swept || is_ragged(w, measured_.head.dtype) != ragged) continue;
      const auto& [rows, cols, ld, off] = w.shape;
      if (cols < first_col || cols > last_col || rows < first_row || rows > last_row) continue;
      const double away = octaves(static_cast<double>(cols), middle(first_col, last_col)) +
                          octaves(static_cast<double>(rows), middle(first_row, last_row));
      if (away < least) least = away, nearest = &w;
    }
    return nearest;
  }

  /// The base of rows of this length, where any tuned shape has measured it.
  std::optional<std::size_t> base_of(std::int64_t cols) const {
    if (!measured_.device) return std::nullopt;
    const Workload w{measured_.head.op, measured_.head.dtype, Shape::of(1, cols), measured_.head.regime,
                     measured_.head.options};
    const auto name = base_config(w, *measured_.device).name();
    const auto at = std::lower_bound(configs_.begin(), configs_.end(), name);
    if (at == configs_.end() || *at != name) return std::nullopt;
    return static_cast<std::size_t>(at - configs_.begin());
  }

  /// What it costs that a kernel holds more than rows of a class need; none where it cannot serve them.
  std::optional<double> of_idle(const KernelNumber& kernel, std::int64_t cols, bool ragged) const {
    if (!measured_.device) return 0;
    if (ragged && !kernel.ragged) return std::nullopt;
    auto k = constants_[kernel.config];
    k.vectors = kernel.vectors, k.ragged = kernel.ragged;
    if (!dispatch::holds(k, cols)) return std::nullopt;
    if (k.vectors == 0) return 0;
    return of_idle_vectors * octaves(static_cast<double>(dispatch::longest_row(k)), static_cast<double>(cols));
  }

  /// Rows of a class. The first element of ragged ones lies just behind a boundary.
  Workload workload(std::int64_t rows, std::int64_t cols, bool ragged) const {
    Workload w{measured_.head.op, measured_.head.dtype, Shape::of(rows, cols), measured_.head.regime,
               measured_.head.options};
    if (ragged) w.shape.ld = cols | 1, w.shape.off = 1;
    return w;
  }

  /// Whether so many rows fit a launch.
  bool fits_rows(std::size_t config, const Workload& w) const {
    return !measured_.device || (w.shape.rows * constants_[config].split <= dispatch::grid_limit &&
                                 holds_all(Constraint::Kind::must, true, config, w));
  }

  /// All constraints of a kind, of those for which the number of rows matters or of the others.
  bool holds_all(Constraint::Kind kind, bool by_rows, std::size_t config, const Workload& w) const {
    if (!measured_.device) return true;
    const auto& all = algorithms_[config]->constraints;
    return std::all_of(all.begin(), all.end(), [&](const Constraint& c) {
      return c.kind != kind || c.by_rows != by_rows || c.holds(w, *measured_.device, parsed_[config]);
    });
  }

  void serve_by(const Candidate& candidate) {
    for (const auto& [piece, cost] : candidate.costs)
      if (cost < pieces_[piece].cost) pieces_[piece].cost = cost, pieces_[piece].kernel = candidate.number;
  }

  /// Takes the kernel that saves most; false where none saves enough.
  bool take_another() {
    std::map<KernelNumber, Candidate>::value_type* best = nullptr;
    double most = least_saving;
    for (auto& candidate : candidates_) {
      auto& [number, saving, costs] = candidate.second;
      if (number >= 0 || saving <= most) continue;
      saving = 0;
      for (const auto& [piece, cost] : costs)
        saving += pieces_[piece].weight * std::max(0.0, pieces_[piece].cost - cost);
      if (saving > most) most = saving, best = &candidate;
    }
    if (best == nullptr) return false;
    auto& [kernel, taken] = *best;
    taken.number = static_cast<int>(table_.kernels.size());
    table_.kernels.push_back({configs_[kernel.config], kernel.vectors, kernel.ragged});
    serve_by(taken);
    return true;
  }

  /// Adds a piece to the regions of its class: one with the kernel of the one before only moves its end.
  void append(const Piece& piece) {
    auto& regions = piece.ragged ? table_.ragged : table_.aligned;
    if (!regions.empty() && regions.back().cols == piece.last_col && regions.back().kernel == piece.kernel)
      regions.back().rows = piece.last_row;
    else
      regions.push_back({piece.last_col, piece.last_row, piece.kernel});
  }

  const MeasuredTable& measured_;
  DispatchTable table_;
  std::vector<std::string> configs_;
  std::vector<Config> parsed_;                ///< the same, taken apart
  std::vector<dispatch::Kernel> constants_;   ///< the same, without what rows add
  std::vector<const Algorithm*> algorithms_;  ///< the same, on CUDA devices
  std::map<KernelNumber, Candidate> candidates_;
  std::vector<Piece> pieces_;  ///< aligned, then ragged; by columns, then rows
};

/// A column of regions like the one before only moves its end.
void join_columns(std::vector<DispatchRegion>& regions) {
  std::vector<DispatchRegion> joined;
  std::size_t last = 0;  // where the last column of `joined` begins
  for (auto from = regions.begin(); from != regions.end();) {
    const auto to = std::find_if(from, regions.end(), [&](const auto& r) { return r.cols != from->cols; });
    const auto same = [](const auto& a, const auto& b) { return a.rows == b.rows && a.kernel == b.kernel; };
    if (std::equal(joined.begin() + static_cast<std::ptrdiff_t>(last), joined.end(), from, to, same))
      joined.resize(last);
    last = joined.size();
    joined.insert(joined.end(), from, to);
    from = to;
  }
  regions = std::move(joined);
}

}  // namespace

void add_regions(const MeasuredTable& measured, const DispatchSettings& settings, DispatchTable& table) {
  table = Regions(measured, table).with_regions(settings.max_kernels);
  join_columns(table.aligned);
  join_columns(table.ragged);
}

}  // namespace rowtune
