//! The driver and the simulator, exercised by a small protocol of three rounds and one that asks a stock.

mod driver;
mod driver_with_stock;
mod simulator;
mod sum;
