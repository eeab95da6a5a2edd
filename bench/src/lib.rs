//! Benchmarks only: `cargo xtask bench`, or `cargo bench -p theta-bench -- FILTER`. Figures are kept in `RESULTS.md`.
