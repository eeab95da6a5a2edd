//! A backup of a node that runs. It is sealed by what that node's own configuration names: this client cannot read it.

use bytes::Bytes;
use theta_names::{NodeId, Operation};
use theta_wire::rpc::Incoming;
use theta_wire::v1;
use tokio::time;

use crate::{Client, ClientError, Connection, Problem};

const OPERATION: &str = "back up the node";

/// A backup on its way here.
#[derive(Debug)]
pub struct BackUp<'c> {
    client: &'c Client,
    connection: Connection,
    parts: Incoming<v1::BackUpPart>,
    about: Option<u64>,
    done: Option<v1::BackUpDone>,
}

impl Client {
    /// Asks a node for a backup of itself as it is now. It comes in parts.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] with what the node did instead; [`ClientError::Denied`]; [`ClientError::UnknownNode`].
    pub async fn back_up(&self, node: NodeId) -> Result<BackUp<'_>, ClientError> {
        let connection = self.connection(node)?;
        let enclosed = self.enclose(&self.ask_for(Operation::KeysBackup, None, &[]))?;
        let (signed_request, approvals) = (enclosed.signed_request.clone(), enclosed.approvals.clone());
        let message = v1::BackUpRequest { signed_request, approvals };
        let request = enclosed.request(&connection, message, self.shared.options.timeout);
        let mut keys = connection.keys();
        let opened = async { Ok(keys.back_up(request).await?.into_inner()) };
        let parts = self.within(OPERATION, &connection, opened).await?;
        Ok(BackUp { client: self, connection, parts, about: None, done: None })
    }
}

impl BackUp<'_> {
    /// The next bytes of it; `None` when all are here.
    ///
    /// # Errors
    /// As [`Client::back_up`]: what is here is not all of it, and is worth nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let (client, connection) = (self.client, &self.connection);
        let patience = client.shared.options.timeout;
        let failed = |problem| client.failed(OPERATION, connection, problem);
        let part = time::timeout(patience, self.parts.message()).await;
        let part = part.map_err(|_| failed(Problem::Silent(patience)))?;
        match client.answered(OPERATION, connection, part).await? {
            Some(part) => {
                self.about.get_or_insert(part.about);
                self.done = part.done.or(self.done);
                Ok(Some(part.data))
            }
            None if self.done.is_some() => Ok(None),
            None => Err(failed(Problem::FalseAnswer("the backup ends before its end".to_owned()))),
        }
    }

    /// How long it will be in bytes, about; known when its first bytes are here.
    #[must_use]
    pub const fn about(&self) -> Option<u64> {
        self.about
    }

    /// How many keys it has, and how many records its audit log has; known when all of it is here.
    #[must_use]
    pub fn contents(&self) -> (u32, u64) {
        self.done.as_ref().map_or((0, 0), |done| (done.keys, done.audit_records))
    }
}
