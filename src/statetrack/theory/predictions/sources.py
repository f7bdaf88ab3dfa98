"""Where the predictions come from."""

from __future__ import annotations

SOURCES = {
    "barrington1989": "Barrington 1989, Bounded-width polynomial-size branching programs recognize exactly NC1",
    "cartan": "Cartan and Dieudonne: an orthogonal map that moves m dimensions is a product of m reflections",
    "grazzi2024": "Grazzi et al. 2024, State-Tracking in Linear RNNs Through Negative Eigenvalues, 2411.12537",
    "krasner": "Krasner and Kaloujnine 1951: a group of order 2^k is inside the k-fold wreath product of C2",
    "liu2023": "Liu et al. 2023, Transformers Learn Shortcuts to Automata, 2210.10749",
    "marcus1989": "Marcus and Westervelt 1989, Dynamics of iterated-map neural networks, Phys. Rev. A 40, 501",
    "merrill2023": "Merrill and Sabharwal 2023, The Parallelism Tradeoff, 2207.00729",
    "merrill2024": "Merrill, Petty and Sabharwal 2024, The Illusion of State in State-Space Models, 2404.08819",
    "minsky1967": "Minsky 1967, Computation: finite automata as networks of threshold units",
    "pdssm": "the PD-SSM / SLiCE table: 4 regular tasks, trained to 40, tested to 256, 5 seeds",
    "rnn2605": "2605.07755: tanh RNN trained to 60 by doubling lengths, tested to 1000",
    "sarrof2024": "Sarrof, Veitsman and Hahn 2024, The Expressive Capacity of State Space Models, 2405.17394",
    "siems2025": "Siems et al. 2025, DeltaProduct, 2502.10297",
    "weiss2018": "Weiss, Goldberg and Yahav 2018, Computational Power of Finite Precision RNNs, 1805.04908",
    "yang2024": "Yang, Chiang and Angluin 2024, Masked Hard-Attention Transformers, 2310.13897",
    "wilkie1996": "Wilkie 1996, and 1999 for erf: what is built from exp, roots and arithmetic ends up of one sign",
    "theorem-a": "theorem A of docs/theory.md: a contraction under bounded errors",
    "theorem-c": "theorem C of docs/theory.md: one symmetric step under tanh; the energy is Marcus and Westervelt's",
    "theorem-d": "theorem D of docs/theory.md: bounded linear steps under bounded errors",
    "here": "the argument in docs/theory.md",
    "measured": "measured for statetrack on one H200: 2 seeds x 2 rates, trained to 64 (parity) or 32 (groups)",
    "definition": "the definition of the model",
}
