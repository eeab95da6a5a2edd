//! What the papers state about transfers and products holds, and cheating is seen.

mod base;
mod extension;
mod fixture;
mod products;
