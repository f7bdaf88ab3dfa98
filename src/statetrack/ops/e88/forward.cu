// The forward pass: out, the kept states and the last one.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                const float* first, number* out, float* kept, float* last, const unsigned* words, double size, int per_step,
                int replica, int n_true, int width, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Staged staged;
  const Place at(T, H, QH, rows);
  const Noise noise{words, (float)size, per_step, replica, n_true, width};
  float S[ROWS];
  load_column(S, first + at.state());
  const bool writes = at.real && at.part == 0;
  out += at.origin * V + at.column;  // walks with the steps
  Feed feed(staged, at, rows);
  auto fetch = [&](int buffer, int t0) {
    feed.fetch_keys(buffer, k, q, decay, true, t0);
    feed.fetch_values(buffer, v, nullptr, beta, false, t0);
  };
  fetch(0, 0);
  int buffer = 0;
  Bounds limits(true, noise);
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    feed.arrive(buffer);
    fetch(buffer ^ 1, t0 + SUB);
    if (t0 % KEEP == 0 && t0 > 0 && at.real) {
      float packed[ROWS / IN_ONE];
      pack(packed, S);
      store_column(packed, kept + kept_at(at, t0 / KEEP));
    }
    const int steps = min(SUB, T - t0);
    limits.look_at(staged.given[buffer].k, at.lane);
    Reader from(staged, buffer, at.head, at.part * ROWS, at.slot);
#pragma unroll 1
    for (int i = 0; i < steps; i++, from.move(1)) {
      float key[ROWS], query[ROWS];
      read_some(from.key, key);
      add_noise(S, noise, at, t0 + i);
      const float e = error_of(S, key, from.value(), from.beta());
      step(S, key, e, from.decay(), limits.small(e, from.decay()));
      read_some(from.key + Q_AT, query);
      const float o = dot(S, query);
      if (writes) *out = narrow(o);
      out += (long long)H * V;
    }
  }
  add_noise(S, noise, at, T);
  if (at.real) store_column(S, last + at.state());
}
