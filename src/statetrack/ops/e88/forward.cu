// The forward pass: out, the kept states and the last one.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                const float* first, number* out, float* kept, float* last, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Staged staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float S[ROWS];
  load_state(S, first + at.state());
  auto fetch = [&](int buffer, int t0) {
    stage<N, true>(0, at, staged.place(buffer, K_AT), k, t0, rows);
    stage<N, true>(1, at, staged.place(buffer, Q_AT), q, t0, rows);
    stage<V, false>(2, at, staged.place(buffer, V_AT), v, t0, rows);
    stage_scalars(0, at, staged.decay[buffer], decay, t0, rows);
    stage_scalars(1, at, staged.beta[buffer], beta, t0, rows);
  };
  fetch(0, 0);
  int buffer = 0;
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    arrive();
    fetch(buffer ^ 1, t0 + SUB);
    const Sequences& given = staged.ready<O_AT>(buffer);
    if (t0 % KEEP == 0 && at.real) store_state(S, kept + at.state((long long)at.row * chunks + t0 / KEEP));
    const int steps = min(SUB, T - t0);
    Reader from(given, staged, buffer, at);
#pragma unroll 1
    for (int i = 0; i < steps; i++, from.move(1)) {
      float r;
      const float e = error_of(S, from.key, from.value(), from.beta(), r);
      step<false>(S, from.key, e, from.decay());
      const float o = dot(S, from.key + Q_AT);
      if (at.real && at.part == 0) out[at.token(t0 + i) * V + at.column] = narrow(o);
    }
  }
  if (at.real) store_state(S, last + at.state());
}
