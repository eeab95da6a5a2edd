//! This crate has tests only: it checks our results with programs that are too large to be dependencies of other crates.
