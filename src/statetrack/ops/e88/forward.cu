// The forward pass: out, the kept states and the last one.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                const float* first, number* out, float* kept, float* last, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Staged staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float S[ROWS];
  load_state(S, first + at.state());
  const bool writes = at.real && at.part == 0;
  out += at.origin * V + at.column;  // walks with the steps
  const Feed feed(at, rows);
  auto fetch = [&](int buffer, int t0) {  // the warps share the copying
    if (at.warp == 0) {
      feed.copy<N, true>(staged.place(buffer, K_AT), k, t0);
      feed.copy_scalars(staged.decay[buffer], decay, t0);
    }
    if (at.warp == 1 % LANES) {
      feed.copy<N, true>(staged.place(buffer, Q_AT), q, t0);
      feed.copy_scalars(staged.beta[buffer], beta, t0);
    }
    if (at.warp == 2 % LANES) feed.copy<V, false>(staged.place(buffer, V_AT), v, t0);
  };
  fetch(0, 0);
  int buffer = 0;
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    arrive();
    fetch(buffer ^ 1, t0 + SUB);
    const Sequences& given = staged.ready<O_AT>(buffer);
    if (t0 % KEEP == 0 && at.real) store_state(S, kept + at.state((long long)at.row * chunks + t0 / KEEP));
    const int steps = min(SUB, T - t0);
    Reader from(given, staged, buffer, at.head, at.part * ROWS, at.slot);
#pragma unroll 1
    for (int i = 0; i < steps; i++, from.move(1)) {
      float key[ROWS], query[ROWS];
      read_some(from.key, key);
      const float e = error_of(S, key, from.value(), from.beta());
      step<false>(S, key, e, from.decay());
      read_some(from.key + Q_AT, query);
      const float o = dot(S, query);
      if (writes) *out = narrow(o);
      out += (long long)H * V;
    }
  }
  if (at.real) store_state(S, last + at.state());
}
