#include "stability/moments.hpp"

#include "stability/moments_methods.hpp"

namespace rowtune::stability {

std::string to_string(MomentsMethod method) {
  switch (method) {
    case MomentsMethod::one_pass:
      return "one_pass";
    case MomentsMethod::shifted_one_pass:
      return "shifted_one_pass";
    case MomentsMethod::two_pass:
      return "two_pass";
    case MomentsMethod::corrected_two_pass:
      return "corrected_two_pass";
    case MomentsMethod::welford:
      return "welford";
    case MomentsMethod::chan:
      break;
  }
  return "chan";
}

std::vector<MomentsChoice> all_moments(int lanes) {
  const Summation sequential{Order::sequential, 1}, strided{Order::lanes, lanes}, pairwise{Order::pairwise, 1};
  std::vector<MomentsChoice> choices;
  for (const MomentsMethod method : {MomentsMethod::one_pass, MomentsMethod::shifted_one_pass, MomentsMethod::two_pass,
                                     MomentsMethod::corrected_two_pass})
    for (const Summation& summation : {sequential, strided, pairwise}) choices.push_back({method, summation});
  choices.push_back({MomentsMethod::welford, sequential});
  choices.push_back({MomentsMethod::welford, strided});
  choices.push_back({MomentsMethod::chan, pairwise});
  return choices;
}

bool used_by_kernels(const MomentsChoice& choice) {
  return choice.summation.order == Order::lanes &&
         (choice.method == MomentsMethod::two_pass || choice.method == MomentsMethod::welford);
}

MomentsValue run_moments(const MomentsChoice& choice, const ArithmeticChoice& arithmetic, const RowSource& row) {
  return with_arithmetic<false>(arithmetic, [&]<class F, class M>() {
    RowView<F, M> x(row);
    const FlagWatch watch;
    const MeanAndM2<F> r = moments_of<F, M>(choice, x);
    // Volatile: the division must have happened before the flags are read.
    const volatile double variance = M::to_double(M::quotient(r.m2, M::from_count(row.size())));
    MomentsValue value;
    value.flags = watch.seen();
    value.mean = M::to_double(r.mean);
    value.m2 = M::to_double(r.m2);
    value.variance = variance;
    const F sample = M::quotient(r.m2, M::from_count(row.size() - 1));
    value.sample_variance = M::to_double(sample);
    value.sample_sd = M::to_double(M::sqrt(sample));
    return value;
  });
}

}  // namespace rowtune::stability
