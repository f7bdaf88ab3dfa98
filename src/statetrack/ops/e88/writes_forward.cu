// The forward pass of several writes a step: out, the kept states and the last one.

struct Room {
  Staged staged;
#if !WHOLE
  number q[SUB * HEADS * N];
#endif
};

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_writes_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                       const float* first, shown* out, float* kept, float* last, const unsigned* words, double size,
                       int per_step, int replica, int n_true, int width, int T, int H, int rows) {
  __shared__ __align__(16) Room rooms[2];  // one is read while the other is filled
  const Place at(T, H, H, rows);
  const Noise noise{words, (float)size, per_step, replica, n_true, width};
  const Signs signs(noise, at.row, T);
  const Feed feed(k, v, decay, beta, noise, at, rows);
#if !WHOLE
  const Stream<number, N, 1> queries(q, at, rows);
#endif
  auto fetch = [&](int buffer, int t0) {
    feed.fetch(rooms[buffer].staged, t0);
#if !WHOLE
    queries.fetch(rooms[buffer].q, t0);
#endif
  };
  float S[ROWS];
  load_column(S, first + at.state());
  // `out` walks with the steps.
  out += ((long long)(at.row / H) * T * SHOWN * H + at.row % H) * V + at.column;
  if (WHOLE) out += (long long)at.part * ROWS * H * V;
  int buffer = 0;
  fetch(buffer, 0);
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    arrive();
    if (t0 + SUB < T) fetch(buffer ^ 1, t0 + SUB);
    const Room& room = rooms[buffer];
    const int steps = min(SUB, T - t0);
#pragma unroll 2
    for (int i = 0; i < steps; i++) {
      const int t = t0 + i;
      const Given x(room.staged, at, i);
#if !WHOLE
      if (t % KEEP == 0 && t > 0 && at.real) store_column(S, kept + kept_at(at, t / KEEP));
#endif
      move(S, room.staged, noise, signs, at, t, i);
      step(S, x);
#if WHOLE
#pragma unroll
      for (int n = 0; n < ROWS; n++) {
        if (at.real) out[(long long)n * H * V] = S[n];
      }
#else
      float query[ROWS];
      read_row(room.q + (i * HEADS + at.head) * N + at.part * ROWS, query);
      const float o = dot(S, query);
      if (at.real && at.part == 0) *out = show(o);
#endif
      out += (long long)SHOWN * H * V;
    }
  }
  add_noise(S, noise, at, T);
  if (at.real) store_column(S, last + at.state());
}
