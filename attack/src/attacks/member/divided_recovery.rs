//! The owner of a lost share asks each helper for another list of masks, so that the masks of all answers might cancel.

mod equations;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use theta_ceremonies::{CeremonyId, CeremonyKeys, Digest, Kind, Statement, StatementSlot, statements_of};
use theta_client::KeyChange;
use theta_groups::{Group as _, Ristretto255, RistrettoScalar, Scalar, Transcript};
use theta_schemes::keys::TypedPublicKey;
use tokio::time::Instant;

use self::equations::Equations;
use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who, random},
    custody::{FORMAT, ITEMS, about, identity, items},
    member::Member,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "divided-recovery",
    promise: "An owner of a lost share gets this share and nothing else, whatever it asks whom for",
    who: Who::Member,
    short: true,
    shape: Shape::FIVE,
    commit: |field| Box::pin(commit(field)),
};

/// A key on ristretto255, 2 of 5.
const KEY: &str = "files";
/// The malicious owner, and its helpers.
const OWNER: u16 = 5;
const HELPERS: [u16; 4] = [1, 2, 3, 4];
/// A rule that allows the recovery.
const RULE: &str = "[[rule]]\nname = \"recovery\"\neffect = \"allow\"\nclients = [\"client\"]\nkeys = [\"files\"]\n\
                    operations = [\"keys.recover\"]\n";
/// How long helpers have to deal their masks, and to answer a request.
const DEALT: Duration = Duration::from_secs(60);
const SAID: Duration = Duration::from_secs(1);
/// The pause before the owner repeats its messages.
const AGAIN: Duration = Duration::from_millis(300);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    field.group().begin_policies_with(RULE).await?;
    let client = field.group().client()?;
    let any = client.public_key(KEY).await?;
    let TypedPublicKey::Ristretto255(public) = any.typed() else {
        return Err(Trouble::new("the key is of another suite than it was"));
    };
    let member = Member::take_node(field.group_mut(), OWNER).await?;
    let keys = identity(field.group(), OWNER)?;
    let recover =
        KeyChange::Recover { key: KEY.parse().map_err(|_| Trouble::new("bug: no name"))?, version: None, node: OWNER };
    let held = tokio::spawn(async move { client.hold(recover, |_| {}).await });
    let mut owner = Owner::new(member, keys).await?;
    let (attempts, mut requests) = (field.size(24_u32, 2), 0);
    for attempt in 0..attempts {
        requests += owner.attempt(attempt).await?;
    }
    held.abort();
    let (answers, equations) = owner.answers()?;
    if answers.is_empty() {
        return Err(Trouble::new("no helper answered anything"));
    }
    let key = equations.key().filter(|key| Ristretto255::mul_base(key) == *public.public_key());
    let lists = answers.iter().map(|(_, digest)| *digest).collect::<BTreeSet<Digest>>().len();
    Ok(Happened {
        kept: key.is_none(),
        words: format!(
            "node {OWNER} asked for {requests} lists of masks in {attempts} attempts, of which two make a third; {} answers came, to \
             {lists} of the lists; the key {} from them",
            answers.len(),
            if key.is_some() { "FOLLOWS" } else { "does not follow" }
        ),
        effort: Effort { connections: HELPERS.len(), bytes: owner.member.sent },
    })
}

/// The statements seen so far, by author and slot.
type Said = BTreeMap<(u16, StatementSlot), Statement>;

/// The malicious owner in one recovery.
struct Owner {
    member: Member,
    keys: CeremonyKeys,
    ceremony: CeremonyId,
    /// The secret key to which answers are encrypted.
    decryption: RistrettoScalar,
    said: Said,
    /// The list of helpers in each request.
    lists: BTreeMap<Digest, Vec<u16>>,
}

impl Owner {
    /// Waits until the helpers send messages of the recovery.
    async fn new(mut member: Member, keys: CeremonyKeys) -> Result<Self, Trouble> {
        let deadline = Instant::now() + DEALT;
        let ceremony = loop {
            let heard = member.listen(AGAIN).await;
            if let Some((id, _)) = heard.iter().find_map(|heard| about(ITEMS, heard.custody()?)) {
                break CeremonyId::from_bytes(*id);
            }
            if Instant::now() > deadline {
                return Err(Trouble::new("the helpers do not begin the recovery"));
            }
        };
        let decryption = RistrettoScalar::from_uniform_bytes(&random::<64>()?);
        Ok(Self { member, keys, ceremony, decryption, said: Said::new(), lists: BTreeMap::new() })
    }

    /// Makes one attempt: a call, another request to each helper, and all acceptances. Returns the number of requests.
    async fn attempt(&mut self, attempt: u32) -> Result<usize, Trouble> {
        let key = Ristretto255::encode(&Ristretto255::mul_base(&self.decryption)).as_ref().to_vec();
        let call = [self.sign(Kind::EncryptionKey, attempt, key), self.sign(Kind::Checked, attempt, Vec::new())];
        let deadline = Instant::now() + DEALT;
        while HELPERS.iter().any(|helper| !self.has_said(*helper, Kind::Checked, attempt)) {
            if Instant::now() > deadline {
                return Err(Trouble::new(format!("in attempt {attempt}, not all helpers deal masks and check them")));
            }
            self.tell(None, &call);
            self.hear(AGAIN).await;
        }
        // The first two lists together are the third; each attempt begins with another helper.
        let [a, b, c, d] = core::array::from_fn(|place| {
            let turn = usize::try_from(attempt).unwrap_or_default();
            HELPERS.iter().copied().cycle().nth(place + turn).unwrap_or_default()
        });
        let asked = [(a, vec![a, c]), (b, vec![b, d]), (c, HELPERS.to_vec()), (d, vec![b, d])];
        let mut requests = BTreeMap::new();
        for (helper, list) in asked {
            let request = self.request(attempt, list)?;
            self.tell(Some(helper), core::slice::from_ref(&request));
            requests.insert(request.digest(), request);
        }
        self.hear(SAID).await;
        // Each helper gets the acceptances of its own request by all who accepted it, although more helpers are listed.
        for helper in HELPERS {
            if let Some(acceptances) = self.acceptances(helper, attempt) {
                self.tell(Some(helper), &[acceptances]);
            }
        }
        self.hear(SAID).await;
        // Then every helper gets everything.
        let all: Vec<_> = requests.into_values().collect();
        for helper in HELPERS {
            let acceptances = HELPERS.iter().filter_map(|other| self.acceptances(*other, attempt));
            let all: Vec<_> = all.iter().cloned().chain(acceptances).collect();
            self.tell(Some(helper), &all);
        }
        self.hear(SAID).await;
        Ok(all.len())
    }

    fn sign(&self, kind: Kind, attempt: u32, body: Vec<u8>) -> Statement {
        Statement::sign(&self.ceremony, &self.keys, StatementSlot::new(kind, attempt), body)
    }

    fn has_said(&self, helper: u16, kind: Kind, attempt: u32) -> bool {
        self.said.contains_key(&(helper, StatementSlot::new(kind, attempt)))
    }

    /// A request for the masks of these helpers.
    fn request(&mut self, attempt: u32, mut list: Vec<u16>) -> Result<Statement, Trouble> {
        list.sort_unstable();
        let mut body = Vec::new();
        for helper in &list {
            let mask = self.said.get(&(*helper, StatementSlot::new(Kind::Dealing, attempt)));
            let mask = mask.ok_or_else(|| Trouble::new(format!("node {helper} checked masks and dealt none")))?;
            body.extend_from_slice(&helper.to_be_bytes());
            body.extend_from_slice(&mask.digest());
        }
        let request = self.sign(Kind::Request, attempt, body);
        self.lists.insert(request.digest(), list);
        Ok(request)
    }

    /// The acceptances of the request that this helper has accepted, by all who accepted it.
    fn acceptances(&self, helper: u16, attempt: u32) -> Option<Statement> {
        let slot = StatementSlot::new(Kind::Accepted, attempt);
        let digest = self.said.get(&(helper, slot))?.body();
        let mut body = [&[Kind::Accepted as u8][..], &attempt.to_be_bytes(), &32_u32.to_be_bytes(), digest].concat();
        for other in HELPERS {
            if let Some(accepted) = self.said.get(&(other, slot)).filter(|accepted| accepted.body() == digest) {
                body.extend_from_slice(&other.to_be_bytes());
                body.extend_from_slice(accepted.signature());
            }
        }
        Some(self.sign(Kind::Acceptances, attempt, body))
    }

    fn tell(&mut self, to: Option<u16>, statements: &[Statement]) {
        let head = [&[FORMAT, ITEMS][..], self.ceremony.as_bytes()].concat();
        self.member.tell_custodians(to, [head, items(statements)].concat().into());
    }

    async fn hear(&mut self, span: Duration) {
        for heard in self.member.listen(span).await {
            let Some((id, payload)) = heard.custody().and_then(|payload| about(ITEMS, payload)) else { continue };
            if id == self.ceremony.as_bytes() {
                let said = statements_of(payload).map(|said| ((said.author().get(), said.slot()), said));
                self.said.extend(said.filter(|((author, _), _)| *author != OWNER));
            }
        }
    }

    /// Who answered which request, and the equations of all answers.
    fn answers(&self) -> Result<(Vec<(u16, Digest)>, Equations), Trouble> {
        let (mut answers, mut equations) = (Vec::new(), Equations::new(OWNER));
        for ((helper, slot), answer) in self.said.iter().filter(|((_, slot), _)| slot.kind == Kind::Answer) {
            let (digest, value) =
                self.open(answer).ok_or_else(|| Trouble::new(format!("the answer of node {helper} does not open")))?;
            if let Some(list) = self.lists.get(&digest) {
                equations.learn(*helper, slot.number, list, value);
                answers.push((*helper, digest));
            }
        }
        Ok((answers, equations))
    }

    /// Opens an answer (spec/ceremonies.md): digest of the request, key and signature, R, proof, ciphertext.
    fn open(&self, answer: &Statement) -> Option<(Digest, RistrettoScalar)> {
        let (digest, rest) = answer.body().split_first_chunk::<32>()?;
        let (_, rest) = rest.split_at_checked(32 + 64)?;
        let (ephemeral, rest) = rest.split_first_chunk::<32>()?;
        let (_, ciphertext) = rest.split_at_checked(64)?;
        let shared = Ristretto255::decode(ephemeral).ok()? * self.decryption;
        let slot = [&[answer.slot().kind as u8][..], &answer.slot().number.to_be_bytes()].concat();
        let stream = Transcript::new("theta/ceremony/keystream/v1")
            .with("ceremony", self.ceremony.as_bytes())
            .with("dealer", &answer.author().get().to_be_bytes())
            .with("slot", &slot)
            .with("recipient", &OWNER.to_be_bytes())
            .with("r", ephemeral)
            .with("shared", Ristretto255::encode(&shared).as_ref())
            .with("block", &0_u32.to_be_bytes())
            .finish();
        let plain: Vec<u8> = ciphertext.iter().zip(stream).map(|(byte, mask)| byte ^ mask).collect();
        Some((*digest, RistrettoScalar::decode(&plain).ok()?))
    }
}
