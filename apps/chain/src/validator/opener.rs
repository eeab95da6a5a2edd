//! Opens what has its place: the only code of an honest validator that asks its node of the group for anything.
//!
//! It asks for a ciphertext only if that is in a block that this validator has executed and keeps, so that the node's share leaves on the
//! word of a decided block. The block is final: CometBFT has two thirds of the voting power behind it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use theta_client::{Client, ClientError};
use theta_names::NodeId;
use theta_payload::{PayloadKey, split_ciphertext};
use theta_wire::v1;
use tokio::time::sleep;
use tonic::{Code, Request, Status};

use super::{Rpc, Validator, ValidatorFile, files::secret_of, trouble::Trouble};
use crate::market::{SealId, Terms, Trader, Transaction, VoidWord};

/// How many orders are opened at the same time.
const AT_ONCE: usize = 64;
/// How long a node may take; then it is asked again.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait after a refusal, and for news at most.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a word that an order cannot be opened has to get into a block, before it is said again.
const SAID: Duration = Duration::from_secs(5);

/// What a node says to an order.
pub(super) enum Answer {
    /// Its key, checked.
    Key([u8; 32]),
    /// That no shares open it.
    NoKey,
}

/// Opens orders for ever.
pub(super) async fn open_what_is_ordered(validator: Arc<Validator>, client: Client, file: ValidatorFile) {
    let asked: Arc<Mutex<BTreeSet<SealId>>> = Arc::default();
    let trouble: Arc<Trouble> = Arc::default();
    loop {
        for (id, ciphertext) in validator.unopened() {
            {
                let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                if asked.len() >= AT_ONCE || !asked.insert(id) {
                    continue;
                }
            }
            let (validator, client, file) = (Arc::clone(&validator), client.clone(), file.clone());
            let (asked, trouble) = (Arc::clone(&asked), Arc::clone(&trouble));
            tokio::spawn(async move {
                open(&validator, &client, &file, (id, &ciphertext), &trouble).await;
                asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            });
        }
        tokio::select! {
            () = validator.ordered.notified() => {}
            () = sleep(PAUSE) => {}
        }
    }
}

async fn open(
    validator: &Validator,
    client: &Client,
    file: &ValidatorFile,
    (id, ciphertext): (SealId, &Bytes),
    trouble: &Trouble,
) {
    let Some(market) = validator.market() else { return };
    match ask(client, file.node, market.terms(), ciphertext, PATIENCE).await {
        Ok(Answer::Key(key)) => validator.learn(id, key),
        Ok(Answer::NoKey) => {
            say_void(file, market.terms(), id, trouble).await;
            sleep(SAID).await;
        }
        Err(refusal) => {
            trouble.warn("an order is not opened yet", &refusal);
            sleep(PAUSE).await;
        }
    }
}

/// Asks one node for the key of an order, and checks it.
pub(super) async fn ask(
    client: &Client,
    node: u16,
    terms: &Terms,
    ciphertext: &Bytes,
    patience: Duration,
) -> Result<Answer, Status> {
    let internal = |error: &dyn core::fmt::Display| Status::internal(error.to_string());
    let node = NodeId::try_from(node).map_err(|error| internal(&error))?;
    let mut protocol = client.protocol(node).map_err(|error: ClientError| internal(&error))?;
    let header = split_ciphertext(ciphertext).map_err(|error| internal(&error))?.0;
    let mut request = Request::new(v1::DecapsulateRequest {
        key: terms.key_name().to_owned(),
        header: ciphertext.slice_ref(header),
        ..v1::DecapsulateRequest::default()
    });
    request.set_timeout(patience);
    let answer = match protocol.decapsulate(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) if is_no_key(&status) => return Ok(Answer::NoKey),
        Err(status) => return Err(status),
    };
    let result = answer.outcome.map(|outcome| outcome.result).unwrap_or_default();
    let key = PayloadKey::from_bytes(&result).map_err(|error| internal(&error))?;
    // One's own node may lie, too; a false key would only be refused by everybody.
    if !terms.key().encapsulates(header, &key) {
        return Err(Status::internal("the node answers with a key that is not the ciphertext's"));
    }
    Ok(Answer::Key(*key.secret().expose()))
}

/// Whether the node says that the ciphertext is at fault: more than a failure, and more than a key that is missing here.
fn is_no_key(status: &Status) -> bool {
    status.code() == Code::FailedPrecondition && status.metadata().contains_key("theta-at-fault")
}

/// Says to all validators that an order cannot be opened.
async fn say_void(file: &ValidatorFile, terms: &Terms, id: SealId, trouble: &Trouble) {
    let signer = secret_of(&file.secret).ok().and_then(|secret| Trader::from_seed(&secret));
    let Some(signer) = signer else { return };
    let signature = signer.sign(&VoidWord::signed(terms.chain(), &id, file.place));
    let word = Transaction::Void(VoidWord { id, validator: file.place, signature }).encode();
    if let Err(error) = Rpc::new(&file.rpc).broadcast(&word).await {
        trouble.warn("the word that an order cannot be opened was not taken", &Status::unavailable(error.to_string()));
    }
}
