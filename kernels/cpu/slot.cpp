#include "kernels/cpu/slot.hpp"

#include "kernels/oracle.hpp"
#include "rowtune/testdata.cuh"

namespace rowtune::cpu {
namespace {

GuardedMatrix matrix_for(const Workload& w) {
  return GuardedMatrix(w.shape.rows, w.shape.cols, w.shape.ld, w.shape.off, size_of(w.dtype));
}

GuardedMatrix output_for(const Workload& w) {
  const auto [shape, bytes] = output_form(w);
  return GuardedMatrix(shape.rows, shape.cols, shape.ld, shape.off, bytes);
}

GuardedMatrix vector_for(const Workload& w) {
  return GuardedMatrix(1, w.shape.cols, w.shape.cols, w.shape.off, size_of(w.dtype));
}

void fill(GuardedMatrix& matrix, const Workload& w, int tensor, std::int64_t rows, int threads) {
  const std::int64_t cols = w.shape.cols;
#pragma omp parallel for num_threads(threads) if (rows > 1 && threads > 1)
  for (std::int64_t r = 0; r < rows; ++r) {
    void* row = matrix.row(r);
    for (std::int64_t c = 0; c < cols; ++c) store_element(w.dtype, row, c, test_value(tensor, r, c, cols));
  }
}

}  // namespace

Slot::Slot(const Workload& w) : input(matrix_for(w)) {
  const bool fused = w.op == Operation::fused_add_rmsnorm;
  if (fused) residual.emplace(matrix_for(w));
  if (!w.options.in_place) output.emplace(output_for(w));
  if (fused && !w.options.in_place) new_residual.emplace(matrix_for(w));
  if (w.options.weight) weight.emplace(vector_for(w));
  if (w.options.bias) bias.emplace(vector_for(w));
}

Tensors Slot::tensors(const Workload& w) {
  Tensors t;
  t.input = input.data();
  t.output = written().data();
  if (residual) t.residual = residual->data();
  if (auto* m = written_residual()) t.new_residual = m->data();
  if (weight) t.weight = weight->data();
  if (bias) t.bias = bias->data();
  t.rows = w.shape.rows;
  t.cols = w.shape.cols;
  t.ld = w.shape.ld;
  t.eps = static_cast<float>(w.options.eps);
  return t;
}

std::int64_t slot_bytes(const Workload& w) {
  const int matrices = inputs_of(w.op) + (w.options.in_place ? 0 : outputs_of(w.op));
  const int vectors = int(w.options.weight) + int(w.options.bias);
  const Shape& s = w.shape;
  const auto [form, bytes] = output_form(w);
  const std::int64_t results =
      gives_row_results(w.op) ? GuardedMatrix::bytes_needed(form.rows, form.cols, form.ld, form.off, bytes) : 0;
  return results + matrices * GuardedMatrix::bytes_needed(s.rows, s.cols, s.ld, s.off, size_of(w.dtype)) +
         vectors * GuardedMatrix::bytes_needed(1, s.cols, s.cols, s.off, size_of(w.dtype));
}

void fill_with_test_data(Slot& slot, const Workload& w, int threads) {
  fill(slot.input, w, test_input, w.shape.rows, threads);
  if (slot.residual) fill(*slot.residual, w, test_residual, w.shape.rows, threads);
  if (slot.weight) fill(*slot.weight, w, test_weight, 1, threads);
  if (slot.bias) fill(*slot.bias, w, test_bias, 1, threads);
}

void copy_inputs(Slot& to, const Slot& from) {
  to.input.copy_from(from.input);
  if (to.residual) to.residual->copy_from(*from.residual);
  if (to.weight) to.weight->copy_from(*from.weight);
  if (to.bias) to.bias->copy_from(*from.bias);
}

}  // namespace rowtune::cpu
