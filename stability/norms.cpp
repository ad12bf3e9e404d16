#include "stability/norms.hpp"

#include "stability/moments_methods.hpp"

namespace rowtune::stability {

NormRun::NormRun(Operation op, const MomentsChoice& choice, const ArithmeticChoice& arithmetic, double eps,
                 const RowSource& row)
    : row_(&row) {
  with_arithmetic<false>(arithmetic, [&]<class F, class M>() {
    RowView<F, M> x(row);
    const FlagWatch watch;
    MeanAndM2<F> r{F(0), F(0)};
    if (op == Operation::layernorm) {
      r = moments_of<F, M>(choice, x);
    } else {
      r.m2 = reduce(
          choice.summation, x.size(), F(0), [&](F s, std::int64_t i) { return M::fma(x[i], x[i], s); },
          [](F a, F b) { return a + b; });
    }
    const F variance = M::quotient(r.m2, M::from_count(row.size()));
    negative_ = variance < F(0);
    const F rstd = F(1) / M::sqrt(clamp_variance(variance) + M::from_double(eps));
    rstd_ = M::to_double(rstd);
    flags_ = watch.seen();
    emit_ = [mean = r.mean, rstd](std::span<double> values) {
      for (double& v : values) v = M::to_double((M::exact(v) - mean) * rstd);
    };
  });
}

void NormRun::output(std::int64_t first, std::span<double> out) const {
  row_->read(first, out);
  emit_(out);
}

}  // namespace rowtune::stability
