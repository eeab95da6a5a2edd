//! ECDSA: presignatures made on demand and in advance, in groups in which some are silent, restart and lie.

mod choice;
mod dishonest;
mod echo;
mod honest;
mod hung;
mod liars;
mod passive;
mod queue;
mod seeds;
mod support;
mod views;
