#include "stability/study.hpp"

#include <atomic>
#include <exception>
#include <iterator>

namespace rowtune::stability {

bool Result::bound_exceeded() const { return bound && rel_error && !(*rel_error <= *bound); }

bool Result::failed() const {
  if (nan_count + inf_count + negative_count > 0) return true;
  return rel_error && !(*rel_error <= 1e-2);
}

std::vector<Cell> study_cells(const StudyOptions& options) {
  std::vector<Cell> cells;
  for (const auto make : {moments_cells, norm_cells, softmax_cells, threshold_cells, dataset_cells}) {
    std::vector<Cell> more = make(options);
    cells.insert(cells.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return cells;
}

std::vector<Result> run_cells(const std::vector<Cell>& cells,
                              const std::function<void(std::size_t, std::size_t, const std::string&)>& progress) {
  std::vector<std::vector<Result>> found(cells.size());
  std::exception_ptr failure;
  std::size_t done = 0;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < cells.size(); ++i) {
    try {
      found[i] = cells[i].run();
    } catch (...) {
#pragma omp critical(stability_progress)
      if (!failure) failure = std::current_exception();
    }
#pragma omp critical(stability_progress)
    progress(++done, cells.size(), cells[i].experiment + " " + cells[i].label);
  }
  if (failure) std::rethrow_exception(failure);
  std::vector<Result> all;
  for (std::vector<Result>& part : found)
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  return all;
}

}  // namespace rowtune::stability
