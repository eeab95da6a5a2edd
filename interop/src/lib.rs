//! Tests only: what we make before judges whose dependencies are too large for the crates that make it.
