//! Many requests in one call to each node.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use theta_names::{KeyRef, NodeId};
use theta_payload::{Header, PayloadKey};
use theta_schemes::{Statement, keys::AnyPublicKey};
use theta_wire::v1::{self, batch_answer::Answer as Told, batch_item::Request as Item};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tonic::{
    Code, Status,
    metadata::{Ascii, MetadataKey},
};

use super::{Coin, Unchecked, drawn_coin, unchecked, unwrapped, verified, verified_digest};
use crate::{
    Answer, Client, ClientError, Connection, Problem,
    connection::MOST_ANSWER,
    credentials::Enclosed,
    error::is_for_later,
    fan_out::{AGAIN, GRACE, Question, Reply, first_good},
    keys::renewal::Under,
};

/// The most requests in one call, as nodes have it.
const MOST_ITEMS: usize = 256;
/// The most bytes of an answer in a batch on an average.
const MOST_EACH: usize = 64 << 10;
/// What a request takes besides its statement and what is enclosed, at most, in bytes.
const FRAME: usize = 512;

/// The header of a ciphertext, and the key that it is for.
struct Capsule<'a> {
    place: usize,
    header: &'a Bytes,
    parsed: Header<'a>,
    /// `None` if the client may not ask for it.
    public: Option<AnyPublicKey>,
}

/// What came of the ciphertext at this place.
type Placed = (usize, Result<Answer<PayloadKey>, ClientError>);

/// The results of many requests, in their order. One that fails fails alone.
pub type Answers<T> = Vec<Result<Answer<T>, ClientError>>;

impl Client {
    /// [`sign`](Client::sign)s many messages, with one call to each node for up to 256 of them: nodes decide about each by itself, and
    /// spend less on each than on one that comes alone. Takes a certificate or a token. Unlike [`sign`](Client::sign) it does not look for new members if
    /// nodes cannot be reached.
    ///
    /// # Errors
    /// [`ClientError`] if nothing could be sent; inside, that of each message.
    pub async fn sign_all(&self, key: &str, messages: &[Bytes]) -> Result<Answers<Bytes>, ClientError> {
        self.public_key(key).await?;
        let key: KeyRef = key.parse()?;
        let item = |message: &Bytes| Ok(Item::Sign(self.sign_request(&key, message.clone(), &[], None)?.1));
        let items = messages.iter().map(item).collect::<Result<_, ClientError>>()?;
        let under = Under::new(self, &key);
        let check = |place: usize, outcome: &v1::Outcome| {
            verified(under, messages.get(place).map(AsRef::as_ref).unwrap_or_default(), outcome)
        };
        Ok(self.operate_all("sign", (|_| Some(under), None), items, check).await)
    }

    /// [`sign_all`](Client::sign_all) where each message is under a key of its own, whose name is before it. What is wrong with one key, such as that nobody knows it,
    /// is the answer to its messages alone.
    ///
    /// # Errors
    /// As [`sign_all`](Client::sign_all).
    pub async fn sign_each(&self, asks: &[(&str, Bytes)]) -> Result<Answers<Bytes>, ClientError> {
        let (mut known, mut answers) = (Vec::with_capacity(asks.len()), Vec::new());
        for (place, (key, message)) in asks.iter().enumerate() {
            let found = self.public_key(key).await.and_then(|_| Ok(key.parse::<KeyRef>()?));
            match found {
                Ok(key) => known.push((place, key, message)),
                Err(error) => answers.push((place, Err(error))),
            }
        }
        let item = |(_, key, message): &(usize, KeyRef, &Bytes)| {
            Ok(Item::Sign(self.sign_request(key, Bytes::clone(message), &[], None)?.1))
        };
        let items = known.iter().map(item).collect::<Result<_, ClientError>>()?;
        let under = |place: usize| known.get(place).map(|(_, key, _)| Under::new(self, key));
        let check = |place: usize, outcome: &v1::Outcome| match (under(place), known.get(place)) {
            (Some(under), Some((_, _, message))) => verified(under, message, outcome),
            _ => Err(Problem::FalseAnswer("an answer to nothing that was asked".to_owned())),
        };
        let signed = self.operate_all("sign", (under, None), items, check).await;
        answers.extend(known.iter().map(|(place, ..)| *place).zip(signed));
        answers.sort_by_key(|(place, _)| *place);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// [`sign_digest`](Client::sign_digest) for many digests, without slots, as [`sign_all`](Client::sign_all).
    ///
    /// # Errors
    /// As [`sign_all`](Client::sign_all); [`ClientError::Request`] if one of the digests is none that this key signs.
    pub async fn sign_digests(&self, key: &str, digests: &[Bytes]) -> Result<Answers<Bytes>, ClientError> {
        let public = self.public_key(key).await?;
        let key: KeyRef = key.parse()?;
        let mut items = Vec::with_capacity(digests.len());
        for digest in digests {
            public.check_request(Statement::SignDigest(digest))?;
            items.push(Item::Sign(self.digest_request(&key, digest.clone(), None)?.1));
        }
        let under = Under::new(self, &key);
        let check = |place: usize, outcome: &v1::Outcome| {
            verified_digest(under, digests.get(place).map(AsRef::as_ref).unwrap_or_default(), outcome)
        };
        Ok(self.operate_all("sign a digest", (|_| Some(under), None), items, check).await)
    }

    /// [`flip_coin`](Client::flip_coin) for many names, as [`sign_all`](Client::sign_all).
    ///
    /// # Errors
    /// As [`sign_all`](Client::sign_all).
    pub async fn flip_coins(&self, key: &str, names: &[Bytes]) -> Result<Answers<Coin>, ClientError> {
        self.public_key(key).await?;
        let key: KeyRef = key.parse()?;
        let item = |name: &Bytes| Ok(Item::FlipCoin(self.coin_request(&key, name.clone())?.1));
        let items = names.iter().map(item).collect::<Result<_, ClientError>>()?;
        let under = Under::new(self, &key);
        let check = |place: usize, outcome: &v1::Outcome| {
            drawn_coin(under, names.get(place).map(AsRef::as_ref).unwrap_or_default(), outcome)
        };
        Ok(self.operate_all("flip coin", (|_| Some(under), None), items, check).await)
    }

    /// [`decapsulate`](Client::decapsulate) for the headers of many ciphertexts of one key, as [`sign_all`](Client::sign_all). Those whose keys this
    /// client knows are asked for at once, whatever the others name: their keys are looked for together.
    ///
    /// # Errors
    /// As [`sign_all`](Client::sign_all).
    pub async fn decapsulate_all(&self, key: &str, headers: &[Bytes]) -> Result<Answers<PayloadKey>, ClientError> {
        let key: KeyRef = key.parse()?;
        let (mut ready, mut waiting) = (Vec::new(), Vec::new());
        let (mut unasked, mut unknown) = (Vec::new(), BTreeSet::new());
        for (place, header) in headers.iter().enumerate() {
            let parsed = Header::parse(header)?;
            let id = *parsed.key_id();
            match self.key_at_hand(&key, &id) {
                Some(Ok(public)) => ready.push(Capsule { place, header, parsed, public }),
                Some(Err(error)) => unasked.push((place, Err(error))),
                None => {
                    unknown.insert(id);
                    waiting.push((place, header, parsed));
                }
            }
        }
        let others = async {
            let sought = self.keys_of_ciphertexts(&key, unknown).await;
            let (mut found, mut failed) = (Vec::new(), Vec::new());
            for (place, header, parsed) in waiting {
                let nothing =
                    || Err(ClientError::NoSuchKey { name: key.to_string(), id: parsed.key_id().abbreviated() });
                match sought.get(parsed.key_id()).cloned().unwrap_or_else(nothing) {
                    Ok(public) => found.push(Capsule { place, header, parsed, public }),
                    Err(error) => failed.push((place, Err(error))),
                }
            }
            failed.extend(self.decapsulate_capsules(&key, found).await?);
            Ok::<_, ClientError>(failed)
        };
        let (known, others) = tokio::join!(self.decapsulate_capsules(&key, ready), others);
        unasked.extend(known?);
        unasked.extend(others?);
        unasked.sort_by_key(|(place, _)| *place);
        Ok(unasked.into_iter().map(|(_, answer)| answer).collect())
    }

    /// What the nodes answer to these, each with its place.
    async fn decapsulate_capsules(&self, key: &KeyRef, capsules: Vec<Capsule<'_>>) -> Result<Vec<Placed>, ClientError> {
        let item =
            |it: &Capsule<'_>| Ok(Item::Decapsulate(self.decapsulate_request(key, it.header.clone(), &it.parsed)?.1));
        let items = capsules.iter().map(item).collect::<Result<_, ClientError>>()?;
        let k = capsules.iter().filter_map(|it| Some(it.public.as_ref()?.threshold().k())).min();
        let check = |place: usize, outcome: &v1::Outcome| {
            let Some(Capsule { header, parsed, public, .. }) = capsules.get(place) else {
                return Err(Problem::FalseAnswer("an answer to nothing that was asked".to_owned()));
            };
            unwrapped(public.as_ref(), header, parsed, outcome).map_err(Problem::FalseAnswer)
        };
        let answers = self.operate_all("decapsulate", (|_| None, k), items, check).await;
        Ok(capsules.iter().map(|it| it.place).zip(answers).collect())
    }

    /// Asks for all of these. `under`: the key that an item is under, if it is known before its answer; `k`: how many holders it takes, where no key says so.
    async fn operate_all<'a, T>(
        &self,
        operation: &'static str,
        (under, k): (impl Fn(usize) -> Option<Under<'a>>, Option<u16>),
        items: Vec<Item>,
        check: impl Fn(usize, &v1::Outcome) -> Result<T, Problem>,
    ) -> Answers<T> {
        let mut answers = Vec::with_capacity(items.len());
        for call in calls(items, self.options().max_message_bytes) {
            let first = answers.len();
            let asked = Instant::now();
            let connections = self.connections();
            for (place, replies) in (first..).zip(self.ask_all_at_once(&connections, call)) {
                let (connections, quorum) = (connections.as_slice(), self.quorum());
                let under = under(place);
                let k = under.and_then(|under| under.threshold()).or(k);
                let least = k.map_or(quorum, |k| quorum.min(k.into()));
                let question = Question { operation, connections, quorum, least, asked, under };
                let check = |answer: &Unchecked| answer.checked(|outcome| check(place, outcome));
                let chosen = first_good(question, replies, check).await;
                answers.push(chosen.map(|chosen| Answer::of(chosen, &self.members())));
            }
        }
        answers
    }

    /// Sends these requests to all nodes, each in one call; returns where the replies to each request come.
    fn ask_all_at_once(&self, connections: &[Connection], items: Vec<Item>) -> Vec<mpsc::Receiver<Reply<Unchecked>>> {
        let room = connections.len().max(1);
        let (senders, receivers): (Vec<_>, Vec<_>) = items.iter().map(|_| mpsc::channel(room)).unzip();
        let (items, patience): (Arc<[Item]>, _) = (items.into(), self.shared.options.timeout);
        for connection in connections {
            let questions =
                Questions { connection: connection.clone(), items: Arc::clone(&items), replies: senders.clone() };
            tokio::spawn(questions.put(self.enclose_token(), patience));
        }
        receivers
    }
}

/// The requests in calls that nodes take.
fn calls(items: Vec<Item>, most_bytes: usize) -> Vec<Vec<Item>> {
    let mut calls: Vec<(Vec<Item>, usize)> = Vec::new();
    for item in items {
        let len = len(&item);
        match calls.last_mut() {
            Some((call, bytes)) if call.len() < MOST_ITEMS && bytes.saturating_add(len) <= most_bytes => {
                call.push(item);
                *bytes = bytes.saturating_add(len);
            }
            _ => calls.push((vec![item], len)),
        }
    }
    calls.into_iter().map(|(call, _)| call).collect()
}

/// The most bytes that a request takes in its call.
fn len(item: &Item) -> usize {
    let (statement, signed, approvals) = match item {
        Item::Decapsulate(request) => (request.header.len(), &request.signed_request, &request.approvals),
        Item::Sign(request) => {
            let statement = request.message.len().saturating_add(request.digest.len());
            (statement, &request.signed_request, &request.approvals)
        }
        Item::FlipCoin(request) => (request.name.len(), &request.signed_request, &request.approvals),
    };
    let enclosed =
        approvals.iter().map(|approval| approval.len().saturating_add(8)).fold(signed.len(), usize::saturating_add);
    statement.saturating_add(enclosed).saturating_add(FRAME)
}

/// Requests to one node, and where its replies go.
struct Questions {
    connection: Connection,
    items: Arc<[Item]>,
    replies: Vec<mpsc::Sender<Reply<Unchecked>>>,
}

impl Questions {
    /// Puts them, as long as somebody wants the answers and a moment longer: the call must still reach its node.
    async fn put(self, token: Enclosed, patience: Duration) {
        let node = self.connection.node;
        let mut open: Vec<usize> = (0..self.items.len()).collect();
        let unwanted = async {
            for replies in &self.replies {
                replies.closed().await;
            }
            time::sleep(GRACE).await;
        };
        let ended = tokio::select! {
            ended = time::timeout(patience, self.until_ready(&token, patience, &mut open)) => ended,
            () = unwanted => return,
        };
        let problem = match ended {
            Ok(Ok(())) => Problem::FalseAnswer("no answer to this request of a batch".to_owned()),
            Ok(Err(status)) => self.connection.problem(&status, patience).await,
            Err(_) => Problem::Silent(patience),
        };
        for place in open {
            self.reply(place, (node, Err(problem.clone())));
        }
    }

    /// Asks again what the node was not ready for, or had no room for, while there is time. What is still open then has the status that is returned, or no answer.
    async fn until_ready(&self, token: &Enclosed, patience: Duration, open: &mut Vec<usize>) -> Result<(), Status> {
        let began = Instant::now();
        loop {
            match self.ask(token, patience.saturating_sub(began.elapsed()), open).await {
                Err(status) if is_for_later(&status) && began.elapsed() + AGAIN + AGAIN < patience => {
                    time::sleep(AGAIN).await;
                }
                ended => return ended,
            }
        }
    }

    /// Asks what is open, and passes on the answers. The error is about all that is open then.
    async fn ask(&self, token: &Enclosed, patience: Duration, open: &mut Vec<usize>) -> Result<(), Status> {
        let sent = open.clone();
        let items = sent.iter().filter_map(|place| self.items.get(*place)).cloned();
        let items = items.map(|request| v1::BatchItem { request: Some(request) }).collect();
        let request = token.request(&self.connection, v1::BatchRequest { items }, patience);
        let mut answers = self.connection.operations().batch(request).await?.into_inner();
        let mut later = None;
        let mut room = MOST_ANSWER.saturating_add(sent.len().saturating_mul(MOST_EACH));
        // One more than were asked for, which is the end of the stream; a node that sends on is not heard.
        for _ in 0..=sent.len() {
            let Some(message) = answers.message().await? else { break };
            // Each reply is kept until somebody asks for it.
            let left = room.checked_sub(message.encoded_len());
            room = left.ok_or_else(|| Status::internal("the answers to a batch are longer than there can be"))?;
            let v1::BatchAnswer { item, answer } = message;
            let place = usize::try_from(item).ok().and_then(|item| sent.get(item)).copied();
            // Whoever answers twice is heard once.
            let Some(place) = place.filter(|place| open.contains(place)) else { continue };
            let told = told(answer);
            match told {
                Err(status) if is_for_later(&status) => later = Some(status),
                told => {
                    open.retain(|open| *open != place);
                    let reply = match told {
                        Ok(answer) => Ok(answer),
                        Err(status) => Err(Problem::from_status(&status, patience)),
                    };
                    self.reply(place, (self.connection.node, reply));
                }
            }
        }
        later.map_or(Ok(()), Err)
    }

    /// If nobody waits any more, nothing is lost.
    fn reply(&self, place: usize, reply: (NodeId, Result<Unchecked, Problem>)) {
        if let Some(replies) = self.replies.get(place) {
            drop(replies.try_send(reply));
        }
    }
}

/// What a node says about one request.
fn told(answer: Option<Told>) -> Result<Unchecked, Status> {
    match answer {
        Some(Told::Decapsulate(answer)) => unchecked(answer.instance_id, answer.outcome),
        Some(Told::Sign(answer)) => unchecked(answer.instance_id, answer.outcome),
        Some(Told::FlipCoin(answer)) => unchecked(answer.instance_id, answer.outcome),
        Some(Told::Refused(refused)) => Err(status(&refused)),
        None => Err(crate::fan_out::incomplete("answer")),
    }
}

/// The status that a request would have had by itself.
fn status(refused: &v1::Refused) -> Status {
    // A refusal is never a success.
    let code = Some(Code::from_i32(refused.code)).filter(|code| *code != Code::Ok).unwrap_or(Code::Unknown);
    let mut status = Status::new(code, refused.message.clone());
    for (name, value) in &refused.metadata {
        if let (Ok(name), Ok(value)) = (name.parse::<MetadataKey<Ascii>>(), value.parse()) {
            status.metadata_mut().insert(name, value);
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coin(len: usize) -> Item {
        Item::FlipCoin(v1::FlipCoinRequest { name: vec![0; len].into(), ..Default::default() })
    }

    #[test]
    fn calls_have_no_more_requests_and_bytes_than_nodes_take() {
        let counts = |items: Vec<Item>, most| calls(items, most).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(counts(Vec::new(), 10_000), [0; 0]);
        assert_eq!(counts(vec![coin(1); 600], 1 << 20), [256, 256, 88]);
        // Of 1,512 bytes with their frames.
        assert_eq!(counts(vec![coin(1_000); 5], 4_000), [2, 2, 1]);
        assert_eq!(counts(vec![coin(9_000), coin(1), coin(1)], 4_000), [1, 2], "the node says that it is too long");
    }

    #[test]
    fn a_refusal_means_what_it_would_mean_alone() {
        let noted = [("theta-reason", "no-rule"), ("theta-rule", "r"), ("b\u{e4}d", "x"), ("theta-bad", "\n")];
        let metadata = noted.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let refused = v1::Refused { code: 7, message: "no".to_owned(), metadata };
        let problem = Problem::from_status(&status(&refused), Duration::ZERO);
        let expected =
            Problem::Denied { rule: Some("r".to_owned()), reason: "no-rule".to_owned(), message: "no".to_owned() };
        assert_eq!(problem, expected);
        let success = v1::Refused { code: 0, ..Default::default() };
        assert_eq!(status(&success).code(), Code::Unknown);
    }
}
