//! CometBFT's JSON-RPC, as far as it is needed here: over HTTP/1.0, one request a connection, to one's own node on loopback.

use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::View;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer, in bytes.
const MOST_ANSWER: u64 = 16 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The node does not answer.
    #[error("CometBFT at {address}: {problem}")]
    Unreachable {
        /// Its address.
        address: String,
        /// What happened.
        problem: String,
    },
    /// It answers that something is wrong.
    #[error("CometBFT at {address} refuses {method}: {problem}")]
    Refused {
        /// Its address.
        address: String,
        /// What was asked.
        method: &'static str,
        /// What it says.
        problem: String,
    },
}

/// The RPC of one CometBFT node.
#[derive(Clone, Debug)]
pub struct Rpc {
    address: String,
}

/// What CometBFT says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainStatus {
    /// The last block's height.
    pub height: u64,
    /// The address that it signs under.
    pub validator: String,
}

impl Rpc {
    /// The RPC at this address.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Hands a transaction over and waits until the application has checked it: the code, 0 for none, and what the application says.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn broadcast(&self, tx: &[u8]) -> Result<(u64, String), RpcError> {
        let tx = Base64::encode_string(tx);
        let answer = self.call("broadcast_tx_sync", json!({ "tx": tx })).await?;
        let code = answer.get("code").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let log = answer.get("log").and_then(Value::as_str).unwrap_or_default();
        Ok((code, log.to_owned()))
    }

    /// How far its chain is.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn status(&self) -> Result<ChainStatus, RpcError> {
        let answer = self.call("status", json!({})).await?;
        let height = answer.pointer("/sync_info/latest_block_height").and_then(Value::as_str);
        let validator = answer.pointer("/validator_info/address").and_then(Value::as_str);
        match (height.and_then(|height| height.parse().ok()), validator) {
            (Some(height), Some(validator)) => Ok(ChainStatus { height, validator: validator.to_owned() }),
            _ => Err(self.refused("status", "no height")),
        }
    }

    /// What the validator beside it shows.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn view(&self) -> Result<View, RpcError> {
        let answer = self.call("abci_query", json!({ "path": "/view" })).await?;
        let value = answer.pointer("/response/value").and_then(Value::as_str).unwrap_or_default();
        let bytes = Base64::decode_vec(value).map_err(|_| self.refused("abci_query", "no Base64"))?;
        serde_json::from_slice(&bytes).map_err(|error| self.refused("abci_query", &error.to_string()))
    }

    /// The transactions of a block, in their order.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn block(&self, height: u64) -> Result<Vec<Vec<u8>>, RpcError> {
        let answer = self.call("block", json!({ "height": height.to_string() })).await?;
        let txs = answer.pointer("/block/data/txs").and_then(Value::as_array).cloned().unwrap_or_default();
        let decoded = txs.iter().map(|tx| Base64::decode_vec(tx.as_str().unwrap_or_default()));
        decoded.collect::<Result<_, _>>().map_err(|_| self.refused("block", "no Base64"))
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, RpcError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let asked = timeout(PATIENCE, post(&self.address, &body)).await;
        let unreachable = |problem: String| RpcError::Unreachable { address: self.address.clone(), problem };
        let answer = match asked {
            Err(_) => return Err(unreachable(format!("no answer within {PATIENCE:?}"))),
            Ok(answer) => answer.map_err(|error| unreachable(error.to_string()))?,
        };
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at.saturating_add(4));
        let body = end.and_then(|end| answer.get(end..)).unwrap_or_default();
        let mut answer: Value = serde_json::from_slice(body).map_err(|error| unreachable(error.to_string()))?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => {
                let problem = answer.pointer("/error/data").or_else(|| answer.pointer("/error/message"));
                Err(self.refused(method, problem.and_then(Value::as_str).unwrap_or("no result")))
            }
        }
    }

    fn refused(&self, method: &'static str, problem: &str) -> RpcError {
        RpcError::Refused { address: self.address.clone(), method, problem: problem.to_owned() }
    }
}

async fn post(address: &str, body: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST / HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}
