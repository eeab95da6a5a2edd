//! One validator: the application that CometBFT asks, and what it does beside.

mod application;
mod behaviour;
mod files;
mod host;
mod opener;
mod records;
mod rpc;
mod spy;
mod trouble;

use std::{path::Path, sync::Arc, time::Duration};

use theta::exit::Failure;
use theta_client::{Client, ClientOptions};

pub(crate) use self::files::write_secret;
pub use self::{
    application::Validator,
    behaviour::Behaviour,
    files::ValidatorFile,
    records::{AccountView, OutcomeView, Rejection, View},
    rpc::{ChainStatus, Rpc, RpcError},
    spy::Attempt,
};
use crate::abci;

/// The name of a validator's configuration in its directory.
pub const FILE: &str = "validator.json";
/// The name of the socket.
pub const SOCKET: &str = "abci.sock";

/// Runs the application of the validator whose directory this is, until the process ends.
///
/// # Errors
/// [`Failure`]: its files are wrong, or the socket cannot be made.
pub async fn run(dir: &Path) -> Result<(), Failure> {
    let file = ValidatorFile::load(&dir.join(FILE))?;
    // A request that no other node answers is given up early, and made again.
    let options = ClientOptions { timeout: Duration::from_secs(10), ..ClientOptions::default() };
    let client = Client::open_with(&dir.join("client"), options)?;
    let validator = Validator::open(dir, &file)?;
    tokio::spawn(opener::open_what_is_ordered(Arc::clone(&validator), client.clone(), file.clone()));
    if file.order {
        tokio::spawn(host::bring_the_order(Arc::clone(&validator), client.clone(), file.clone()));
        tokio::spawn(host::collect_for_the_order(Arc::clone(&validator), client.clone(), file.clone()));
    }
    if file.behaviour == Behaviour::FrontRuns {
        tokio::spawn(spy::look(Arc::clone(&validator), client, file));
    }
    let socket = dir.join(SOCKET);
    // Of an earlier run, which has ended: its process had the directory to itself.
    let _ = std::fs::remove_file(&socket);
    abci::serve(&socket, validator).await.map_err(|error| Failure::writing(&socket, &error))
}
