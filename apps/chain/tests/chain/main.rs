//! The chain with real processes: CometBFT, applications, nodes. Where there is no CometBFT the tests fail, unless `THETA_CHAIN_REFUSED` is
//! set: then whoever runs them has said so (`cargo xtask test` does).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "the helpers of tests are test code, too"
)]

mod lies;
mod order;
mod story;

use std::{
    env,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use theta_chain::net::{Network, Wishes, find};

const EXE: &str = env!("CARGO_BIN_EXE_theta-chain");

/// CometBFT; `None` if it is not there and that has been said.
fn cometbft() -> Option<PathBuf> {
    match find(None) {
        Ok(program) => Some(program),
        Err(failure) if env::var_os("THETA_CHAIN_REFUSED").is_some() => {
            eprintln!("NOT TESTED: {failure}");
            None
        }
        Err(failure) => panic!("a chain cannot be tested here; THETA_CHAIN_REFUSED=1 leaves it out: {failure}"),
    }
}

/// One network at a time: each has a dozen processes.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running network; its directory goes with the second.
async fn network(cometbft: PathBuf, wishes: &Wishes) -> (Network, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut network = Network::create(EXE.into(), cometbft, &dir.path().join("net"), wishes).await.unwrap();
    network.start_validators().await.unwrap();
    network.reach(1, std::time::Duration::from_secs(60)).await.unwrap();
    (network, dir)
}
