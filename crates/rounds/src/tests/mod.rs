//! The driver and the simulator, exercised by a small protocol of three rounds.

mod driver;
mod simulator;
mod sum;
