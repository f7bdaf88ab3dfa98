// The forward pass: out, the kept states and the last one.

extern "C" __global__ void __launch_bounds__(32, FORWARD_RESIDENT)
    e88_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                const float* first, number* out, float* kept, float* last, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Staged staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float S[N];
  load_state(S, first + at.state());
  auto fetch = [&](int buffer, int t0) {
    stage<N, true>(at, staged.place(buffer, K_AT), k, t0, rows);
    stage<N, true>(at, staged.place(buffer, Q_AT), q, t0, rows);
    stage<V, false>(at, staged.place(buffer, V_AT), v, t0, rows);
    stage_scalars(at, staged.decay[buffer], decay, t0, rows);
    stage_scalars(at, staged.beta[buffer], beta, t0, rows);
    commit();
  };
  fetch(0, 0);
  int buffer = 0;
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    fetch(buffer ^ 1, t0 + SUB);
    arrive<1>();
    const Sequences& given = staged.ready(buffer, at.lane);
    if (t0 % KEEP == 0 && at.real) {
      store_state(S, kept + ((long long)at.row * chunks + t0 / KEEP) * N * V + at.column);
    }
    const int steps = min(SUB, T - t0);
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
      const int mine = i * HEADS + at.head;
      const float* key = given.k + mine * N;
      float r;
      const float e = error_of(S, key, given.v[i * 32 + at.lane], staged.beta[buffer][mine], r);
      step<false>(S, key, e, staged.decay[buffer][mine]);
      const float o = dot(S, given.q + mine * N);
      if (at.real) out[at.token(t0 + i) * V + at.column] = narrow(o);
    }
    __syncwarp();
  }
  if (at.real) store_state(S, last + at.state());
}
