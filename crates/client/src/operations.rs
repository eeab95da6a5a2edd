//! The operations of the group. Each result is checked here before it is returned.

mod batch;

use std::{collections::BTreeSet, future::Future};

use bytes::Bytes;
use theta_names::{KeyRef, NodeId, Operation};
use theta_payload::{Header, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{
    Statement,
    groups::Secret,
    keys::AnyPublicKey,
    signatures::{
        ecdsa::vartime_recovery_id,
        frost::{check_seed, randomized_key, verify_with_key},
    },
};
use theta_statements::Ask;
use theta_wire::v1;
use tokio::time::Instant;
use tonic::{Request, Status};

use crate::{
    Answer, Client, ClientError, Connection, Problem,
    answer::{culprits, nodes, trimmed},
    credentials::Enclosed,
    fan_out::{self, Chosen, Question, incomplete},
    keys::renewal::Under,
};

pub use batch::Answers;

/// The value of a coin, with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coin {
    /// 32 uniform bytes.
    pub value: Bytes,
    /// k verified shares, checkable by anyone with the public key.
    pub proof: Bytes,
}

/// A signature under a re-randomised key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomizedSignature {
    /// The signature.
    pub signature: Bytes,
    /// The key that it verifies under, in its standard encoding.
    pub key: Bytes,
}

/// A node's answer before it is checked.
struct Unchecked {
    instance_id: Bytes,
    outcome: v1::Outcome,
}

/// An answer whose result is the right one.
struct Checked<T> {
    result: T,
    instance_id: [u8; 32],
    outcome: v1::Outcome,
}

impl Client {
    /// Unwraps the payload key of a ciphertext, given its header. Nodes see the header alone.
    ///
    /// The first key that makes the header an honest encryption is the right one, whichever node it came from. A client
    /// that has no public key of that id, and may not ask for it (the policies of k nodes deny it `keys.list`, and not for a rate), takes the first key
    /// that fits the header's commitment: then an encryptor and a node together can give it a key that other clients do not get. One that may ask, and is told
    /// of no such key, refuses the ciphertext.
    ///
    /// # Errors
    /// [`ClientError::NoSuchKey`] if the group has no key of the header's id by this name; [`ClientError`] if the request is wrong or too few nodes answered well; it names each with the reason.
    pub async fn decapsulate(&self, key: &str, header: Bytes) -> Result<Answer<PayloadKey>, ClientError> {
        let bytes = header.clone();
        let parsed = Header::parse(&bytes)?;
        let key: KeyRef = key.parse()?;
        let (enclosed, request) = self.decapsulate_request(&key, header, &parsed)?;
        let call = |connection: Connection, request| async move {
            let answer = connection.operations().decapsulate(request).await?.into_inner();
            unchecked(answer.instance_id, answer.outcome)
        };
        let public = self.key_of_ciphertext(&key, parsed.key_id()).await?;
        let check =
            |outcome: &v1::Outcome| unwrapped(public.as_ref(), &bytes, &parsed, outcome).map_err(Problem::FalseAnswer);
        let k = public.as_ref().map(|public| public.threshold().k());
        self.operate("decapsulate", (&enclosed, None, k), request, call, check).await
    }

    fn decapsulate_request(
        &self,
        key: &KeyRef,
        header: Bytes,
        parsed: &Header<'_>,
    ) -> Result<(Enclosed, v1::DecapsulateRequest), ClientError> {
        let parameters = key.parameters(&[]);
        let ask = Ask {
            label: parsed.label(),
            parameters: &parameters,
            ..self.ask_for(Operation::Decapsulate, Some(key.name.as_ref()), &header)
        };
        let enclosed = self.enclose(&ask)?;
        let request = v1::DecapsulateRequest {
            key: key.to_string(),
            wait: v1::Wait::Done.into(),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
            header,
        };
        Ok((enclosed, request))
    }

    /// Decrypts a ciphertext that fits in memory: the nodes unwrap its payload key, and this client opens the payload.
    ///
    /// # Errors
    /// As [`Client::decapsulate`]; [`ClientError::Payload`] if the payload was changed after it was sealed.
    pub async fn decrypt(&self, key: &str, ciphertext: Bytes) -> Result<Answer<Secret<Vec<u8>>>, ClientError> {
        let (header, _) = split_ciphertext(&ciphertext)?;
        let answer = self.decapsulate(key, ciphertext.slice_ref(header)).await?;
        let plaintext =
            open_bytes(&answer.result, &ciphertext).map_err(|error| ClientError::Payload(error.to_string()))?;
        Ok(answer.map(|_| plaintext))
    }

    /// Signs a message.
    ///
    /// # Errors
    /// As [`Client::decapsulate`].
    pub async fn sign(&self, key: &str, message: Bytes) -> Result<Answer<Bytes>, ClientError> {
        self.sign_plainly(key, message, None).await
    }

    /// Signs the message of a slot, where a signing rule of the nodes' policies allows one message for each slot.
    ///
    /// # Errors
    /// As [`Client::decapsulate`]; [`ClientError::Denied`] if the slot belongs to another message.
    pub async fn sign_for_slot(&self, key: &str, message: Bytes, slot: u64) -> Result<Answer<Bytes>, ClientError> {
        self.sign_plainly(key, message, Some(slot)).await
    }

    /// Signs the message with this digest, of which the nodes see the digest alone: for keys whose scheme begins by hashing the
    /// message ([`AnyPublicKey::message_digest`]), so that the signature is the message's own.
    ///
    /// # Errors
    /// As [`Client::decapsulate`]; [`ClientError::Request`] for keys that sign no digests, or others.
    pub async fn sign_digest(&self, key: &str, digest: Bytes, slot: Option<u64>) -> Result<Answer<Bytes>, ClientError> {
        let public = self.public_key(key).await?;
        public.check_request(Statement::SignDigest(&digest))?;
        let key: KeyRef = key.parse()?;
        let (enclosed, request) = self.digest_request(&key, digest.clone(), slot)?;
        let under = Under::new(self, &key);
        let check = |outcome: &v1::Outcome| verified_digest(under, &digest, outcome);
        self.operate("sign a digest", (&enclosed, Some(under), under.threshold()), request, ask_to_sign, check).await
    }

    fn digest_request(
        &self,
        key: &KeyRef,
        digest: Bytes,
        slot: Option<u64>,
    ) -> Result<(Enclosed, v1::SignRequest), ClientError> {
        let parameters = key.parameters(&[]);
        let ask = self.ask_for(Operation::SignDigest, Some(key.name.as_ref()), &digest);
        let enclosed = self.enclose(&Ask { parameters: &parameters, slot, ..ask })?;
        let request = v1::SignRequest {
            key: key.to_string(),
            digest,
            wait: v1::Wait::Done.into(),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
            slot,
            ..v1::SignRequest::default()
        };
        Ok((enclosed, request))
    }

    /// Which of the up to four keys that fit a signature of ECDSA (r || s) of this digest the key of this name is, from 0 to 3, as Ethereum's
    /// `ecrecover` takes it: see [`vartime_recovery_id`]. Computed here from what this client knows of the key; `None` if that fits none of its
    /// versions, and for keys of other schemes.
    #[must_use]
    pub fn recovery_id(&self, key: &str, digest: &[u8], signature: &[u8]) -> Option<u8> {
        let key: KeyRef = key.parse().ok()?;
        let known = self.known().recent(&key);
        known.iter().find_map(|candidate| vartime_recovery_id(&candidate.public, digest, signature))
    }

    async fn sign_plainly(&self, key: &str, message: Bytes, slot: Option<u64>) -> Result<Answer<Bytes>, ClientError> {
        self.public_key(key).await?;
        let signed = message.clone();
        let key: KeyRef = key.parse()?;
        let (enclosed, request) = self.sign_request(&key, message, &[], slot)?;
        let under = Under::new(self, &key);
        let check = |outcome: &v1::Outcome| verified(under, &signed, outcome);
        self.operate("sign", (&enclosed, Some(under), under.threshold()), request, ask_to_sign, check).await
    }

    fn sign_request(
        &self,
        key: &KeyRef,
        message: Bytes,
        seed: &[u8],
        slot: Option<u64>,
    ) -> Result<(Enclosed, v1::SignRequest), ClientError> {
        let parameters = key.parameters(seed);
        let ask = self.ask_for(Operation::Sign, Some(key.name.as_ref()), &message);
        let enclosed = self.enclose(&Ask { parameters: &parameters, slot, ..ask })?;
        let request = v1::SignRequest {
            key: key.to_string(),
            message,
            wait: v1::Wait::Done.into(),
            digest: Bytes::new(),
            randomizer: Bytes::copy_from_slice(seed),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
            slot,
        };
        Ok((enclosed, request))
    }

    /// Signs a message under a key that is re-randomised with a secret of this client, 32 to 64 random bytes, which the nodes
    /// learn. Nobody else can tell that the signature is the group's. Only for FROST keys.
    ///
    /// The signature is checked under the key that follows from the group's key, the randomizer and the signers'
    /// commitments; the key that the nodes name is not used.
    ///
    /// # Errors
    /// As [`Client::decapsulate`]; [`ClientError::Randomizer`] if the key is not one of FROST.
    pub async fn sign_randomized(
        &self,
        key: &str,
        message: Bytes,
        randomizer: &Secret<Vec<u8>>,
    ) -> Result<Answer<RandomizedSignature>, ClientError> {
        let public = self.public_key(key).await?;
        check_seed(public.suite(), randomizer.expose().len())?;
        let signed = message.clone();
        let key: KeyRef = key.parse()?;
        let (enclosed, request) = self.sign_request(&key, message, randomizer.expose(), None)?;
        let under = Under::new(self, &key);
        let check = |outcome: &v1::Outcome| {
            under.check(|public| {
                let key =
                    randomized_key(public, randomizer, &outcome.proof).ok_or("no key follows from the randomizer")?;
                verify_with_key(public, &key, &signed, &outcome.result).map_err(|error| error.to_string())?;
                Ok(RandomizedSignature { signature: outcome.result.clone(), key: key.into() })
            })
        };
        self.operate("sign", (&enclosed, Some(under), under.threshold()), request, ask_to_sign, check).await
    }

    /// Draws the coin of a name. The value depends on the key and the name alone.
    ///
    /// # Errors
    /// As [`Client::decapsulate`].
    pub async fn flip_coin(&self, key: &str, name: Bytes) -> Result<Answer<Coin>, ClientError> {
        self.public_key(key).await?;
        let drawn = name.clone();
        let key: KeyRef = key.parse()?;
        let (enclosed, request) = self.coin_request(&key, name)?;
        let call = move |connection: Connection, request| async move {
            let answer = connection.operations().flip_coin(request).await?.into_inner();
            unchecked(answer.instance_id, answer.outcome)
        };
        let under = Under::new(self, &key);
        let check = |outcome: &v1::Outcome| drawn_coin(under, &drawn, outcome);
        self.operate("flip coin", (&enclosed, Some(under), under.threshold()), request, call, check).await
    }

    fn coin_request(&self, key: &KeyRef, name: Bytes) -> Result<(Enclosed, v1::FlipCoinRequest), ClientError> {
        let parameters = key.parameters(&[]);
        let ask = self.ask_for(Operation::FlipCoin, Some(key.name.as_ref()), &name);
        let enclosed = self.enclose(&Ask { parameters: &parameters, ..ask })?;
        let request = v1::FlipCoinRequest {
            key: key.to_string(),
            wait: v1::Wait::Done.into(),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
            slot: None,
            name,
        };
        Ok((enclosed, request))
    }

    /// The present members.
    fn members(&self) -> BTreeSet<NodeId> {
        self.group().nodes().iter().map(|node| node.id).collect()
    }

    async fn operate<R, F, T>(
        &self,
        operation: &'static str,
        (enclosed, under, k): (&Enclosed, Option<Under<'_>>, Option<u16>),
        message: R,
        call: impl Fn(Connection, Request<R>) -> F + Send + Sync + 'static,
        check: impl Fn(&v1::Outcome) -> Result<T, Problem>,
    ) -> Result<Answer<T>, ClientError>
    where
        R: Clone + Send + Sync + 'static,
        F: Future<Output = Result<Unchecked, Status>> + Send + 'static,
    {
        let patience = self.shared.options.timeout;
        // Read before anything leaves: answers may arrive before this task runs again.
        let asked = Instant::now();
        let connections = self.connections();
        let to_all = enclosed.clone();
        let replies = fan_out::ask_all_members(self, &connections, patience, move |connection| {
            let request = to_all.request(&connection, message.clone(), patience);
            call(connection, request)
        });
        let (connections, quorum) = (connections.as_slice(), self.quorum());
        let least = k.map_or(quorum, |k| quorum.min(k.into()));
        let question = Question { operation, connections, quorum, least, asked, under };
        let chosen = fan_out::first_good(question, replies, |answer: &Unchecked| answer.checked(&check)).await?;
        Ok(Answer::of(chosen, &self.members()))
    }
}

impl Unchecked {
    fn checked<T>(&self, check: impl Fn(&v1::Outcome) -> Result<T, Problem>) -> Result<Checked<T>, Problem> {
        let instance_id = <[u8; 32]>::try_from(self.instance_id.as_ref())
            .map_err(|_| Problem::FalseAnswer("the instance id has not 32 bytes".to_owned()))?;
        Ok(Checked { result: check(&self.outcome)?, instance_id, outcome: self.outcome.clone() })
    }
}

impl<T> Answer<T> {
    /// The checked answer, with what it says of members of the group.
    fn of(chosen: Chosen<Checked<T>>, members: &BTreeSet<NodeId>) -> Self {
        let Checked { result, instance_id, outcome } = chosen.value;
        Self {
            result,
            node: chosen.node,
            instance_id,
            contributors: nodes(&outcome.contributors, members),
            culprits: culprits(outcome.culprits, members),
            bad_answers: chosen.false_answers,
            latency: chosen.latency,
        }
    }
}

async fn ask_to_sign(connection: Connection, request: Request<v1::SignRequest>) -> Result<Unchecked, Status> {
    let answer = connection.operations().sign(request).await?.into_inner();
    unchecked(answer.instance_id, answer.outcome)
}

/// The signature, if it is one of the message.
fn verified(under: Under<'_>, message: &[u8], outcome: &v1::Outcome) -> Result<Bytes, Problem> {
    under.check(|public| public.verify(message, &outcome.result, &[]).map_err(|error| error.to_string()))?;
    Ok(outcome.result.clone())
}

/// The signature, if it is one of the message with this digest.
fn verified_digest(under: Under<'_>, digest: &[u8], outcome: &v1::Outcome) -> Result<Bytes, Problem> {
    under.check(|public| public.verify_digest(digest, &outcome.result).map_err(|error| error.to_string()))?;
    Ok(outcome.result.clone())
}

/// The coin, if it is the one of the name.
fn drawn_coin(under: Under<'_>, name: &[u8], outcome: &v1::Outcome) -> Result<Coin, Problem> {
    let verify = |public: &AnyPublicKey| public.verify(name, &outcome.result, &outcome.proof);
    under.check(|public| verify(public).map_err(|error| error.to_string()))?;
    Ok(Coin { value: outcome.result.clone(), proof: outcome.proof.clone() })
}

/// The payload key, if the header is an honest encryption of it or, without a public key, if the header commits to it.
fn unwrapped(
    public: Option<&AnyPublicKey>,
    bytes: &[u8],
    header: &Header<'_>,
    outcome: &v1::Outcome,
) -> Result<PayloadKey, String> {
    let key = PayloadKey::from_bytes(&outcome.result).map_err(|error| error.to_string())?;
    if !header.is_for(&key) {
        return Err("the payload key is not the one that the header commits to".to_owned());
    }
    match public {
        Some(public) if !public.encapsulates(bytes, &key) => {
            Err("the ciphertext is no honest encryption of the payload key that the node gave".to_owned())
        }
        _ => Ok(key),
    }
}

fn unchecked(instance_id: Bytes, outcome: Option<v1::Outcome>) -> Result<Unchecked, Status> {
    Ok(Unchecked { instance_id, outcome: trimmed(outcome.ok_or_else(|| incomplete("outcome"))?) })
}
