//! An encryptor and a member together make headers that open with the member's false share and not with true ones.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::Client;
use theta_groups::{Group as _, Ristretto255, RistrettoScalar, Scalar, Transcript};
use theta_network::group::GroupNode;
use theta_payload::{Aead, Encrypt as _, PayloadKey, split_ciphertext};
use theta_schemes::{
    Suite, ThresholdCipher,
    ciphers::sg02::{CipherGroup as _, Sg02},
    keys::{AnyPublicKey, PublicKeySet},
};
use theta_sharing::{ShareIndex, coefficients_at_zero};
use theta_wire::v1::{self, Wait};
use tokio::time::Instant;
use tonic::{Code, Request};

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who, random},
    member::{Member, TAKEN},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "split-header",
    promise: "A ciphertext opens alike at all honest nodes, or at none, whatever its maker and a member have agreed on",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// A key on ristretto255.
const KEY: &str = "files";
const SUITE: Suite = Suite::Sg02Ristretto255;
/// The node whose true share goes with the false one.
const VICTIM: u16 = 1;
/// The kinds of messages with shares, and with requests for their proofs (protocols/one_round).
const SHARES: u32 = 1;
const PROOFS: u32 = 2;
/// How long the victim has to open what it can.
const OPENED: Duration = Duration::from_secs(2);
const LISTENING: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(10);

/// How the encryptor makes a header.
#[derive(Clone, Copy)]
enum Making {
    /// Correctly: the false share is found, and the header opens.
    Honest,
    /// With randomness of the encryptor's own choice.
    OwnRandomness,
    /// With the randomness that follows from the payload key, but wrapped for the false sum.
    FalseSum,
}

/// A node's answer to a header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Opened(Bytes),
    Refused,
    Undecided,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let client = field.group().client()?;
    let any = client.public_key(KEY).await?;
    let public = any.get::<Sg02<Ristretto255>>();
    let public = Arc::clone(public.ok_or_else(|| Trouble::new("the key is of another suite than it was"))?);
    let mut member = Member::take(field.group_mut()).await?;
    let honest: Vec<GroupNode> = field.group().nodes().iter().filter(|node| node.id.get() != TAKEN).cloned().collect();
    let rounds: usize = field.size(60, 5);
    let (mut split, mut undecided, mut alike, mut doubted) = (0, 0, 0, 0);
    for round in 0..rounds * 2 {
        let making = if round.is_multiple_of(2) { Making::OwnRandomness } else { Making::FalseSum };
        let (header, share) = header(&public, making)?;
        let (verdicts, _) = judge(&client, &mut member, &honest, (&header, &share)).await?;
        undecided += usize::from(verdicts.contains(&Verdict::Undecided));
        split += usize::from(verdicts.len() > 1);
        alike += usize::from(verdicts.len() == 1);
    }
    for _ in 0..field.size(10, 2) {
        let (header, share) = header(&public, Making::Honest)?;
        let (verdicts, doubts) = judge(&client, &mut member, &honest, (&header, &share)).await?;
        let opened = matches!(verdicts.first(), Some(Verdict::Opened(_))) && verdicts.len() == 1;
        split += usize::from(!opened);
        doubted += usize::from(doubts);
    }
    if doubted == 0 {
        return Err(Trouble::new("no node took the false shares into account"));
    }
    Ok(Happened {
        kept: split == 0 && undecided == 0,
        words: format!(
            "of {} headers made for a false share of node {TAKEN}, {alike} were judged alike by nodes 1 to 3; {split} headers opened at \
             some and not at others; {undecided} were left undecided; with honest headers the false share was doubted {doubted} times",
            rounds * 2
        ),
        effort: Effort { connections: honest.len(), bytes: member.sent },
    })
}

/// A header, and the false share that opens it together with the victim's.
fn header(public: &Arc<PublicKeySet<Ristretto255>>, making: Making) -> Result<(Bytes, Bytes), Trouble> {
    let bug = |what: &str| Trouble::new(format!("bug: {what}"));
    let any = AnyPublicKey::of::<Sg02<Ristretto255>>(Arc::clone(public));
    let mut rng = ChaCha20Rng::from_seed(random()?);
    let made = any.encrypt(b"for whom?", b"", Aead::default(), &mut rng).map_err(|error| bug(&error.to_string()))?;
    let (honest, _) = split_ciphertext(&made).map_err(|error| bug(&error.to_string()))?;
    let envelope = honest.len().checked_sub(Sg02::<Ristretto255>::CAPSULE_LEN);
    let (envelope, _) = honest.split_at(envelope.ok_or_else(|| bug("a header without a capsule"))?);
    let key = PayloadKey::random(&mut rng);
    let scalar = || random::<64>().map(|bytes| RistrettoScalar::from_uniform_bytes(&bytes));
    let image = Ristretto255::mul_base(&scalar()?);
    let share = Bytes::copy_from_slice(Ristretto255::encode(&image).as_ref());
    let [r, s] = match making {
        Making::Honest => {
            let header = Sg02::<Ristretto255>::encapsulate(public, envelope.to_vec(), &key);
            return Ok((header.into(), share));
        }
        Making::OwnRandomness => [scalar()?, scalar()?],
        Making::FalseSum => ["encryption", "proof"].map(|purpose| {
            Transcript::new("theta/cipher/coins/v1")
                .with("suite", SUITE.name().as_bytes())
                .with("key id", public.key_id().as_bytes())
                .with("envelope", envelope)
                .with("payload key", key.secret().expose())
                .with("purpose", purpose.as_bytes())
                .challenge()
        }),
    };
    // u x_1 is h_1 r, which the encryptor can compute from its r.
    let indices = [VICTIM, TAKEN].map(|node| ShareIndex::at(usize::from(node - 1)));
    let [Some(victim), Some(liar)] = indices else { return Err(bug("no share has index zero")) };
    let coefficients = coefficients_at_zero::<RistrettoScalar>(&[victim, liar]);
    let coefficients = coefficients.map_err(|error| bug(&error.to_string()))?;
    let [of_victim, of_liar] = coefficients[..] else { return Err(bug("two shares have two coefficients")) };
    let victims = public.verification_key(victim).ok_or_else(|| bug("no verification key"))?;
    let sum = *victims.element() * (r * of_victim) + image * of_liar;
    Ok((capsule(public, envelope, (&key, &sum), [r, s]).into(), share))
}

/// A header for a payload key and the sum of shares that opens it (spec/sg02.md).
fn capsule(
    public: &PublicKeySet<Ristretto255>,
    envelope: &[u8],
    (key, sum): (&PayloadKey, &<Ristretto255 as theta_groups::Group>::Element),
    [r, s]: [RistrettoScalar; 2],
) -> Vec<u8> {
    let second = Ristretto255::second_base();
    let elements = [Ristretto255::mul_base(&r), second.mul(&r), Ristretto255::mul_base(&s), second.mul(&s)];
    let [u, ..] = elements.map(|element| Ristretto255::encode(&element));
    let mask = Transcript::new("theta/sg02/wrap/v1")
        .with("suite", SUITE.name().as_bytes())
        .with("key id", public.key_id().as_bytes())
        .with("u", u.as_ref())
        .with("shared", Ristretto255::encode(sum).as_ref())
        .finish32();
    let mut header = envelope.to_vec();
    header.extend(key.secret().expose().iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    header.extend_from_slice(&key.commitment(SUITE, public.key_id()));
    elements.iter().for_each(|element| header.extend_from_slice(Ristretto255::encode(element).as_ref()));
    let statement = Transcript::new("theta/sg02/validity/v1").with("suite", SUITE.name().as_bytes());
    let challenge = RistrettoScalar::from_uniform_bytes(&statement.with("header", &header).finish());
    header.extend_from_slice((s + r * challenge).encode().as_ref());
    header
}

/// Sends the false share to the victim before any node is asked; then asks all nodes. Returns their answers, and whether
/// the victim asked for proofs.
async fn judge(
    client: &Client,
    member: &mut Member,
    nodes: &[GroupNode],
    (header, share): (&Bytes, &Bytes),
) -> Result<(BTreeSet<Verdict>, bool), Trouble> {
    let victim = nodes.iter().find(|node| node.id.get() == VICTIM).ok_or_else(|| Trouble::new("bug: no victim"))?;
    let mut protocol = client.protocol(victim.id)?;
    let begun = protocol.decapsulate(request(header, Wait::Started)).await;
    let id =
        begun.map_err(|status| Trouble::new(format!("a header was not taken: {status}")))?.into_inner().instance_id;
    member.tell_instance(None, &id, SHARES, 1, share.clone());
    let (deadline, mut doubted) = (Instant::now() + OPENED, false);
    while !doubted && Instant::now() < deadline {
        let heard = member.listen(LISTENING).await;
        doubted = heard.iter().any(|heard| heard.instance() == Some(&id) && heard.envelope.kind == PROOFS);
        let asked = protocol.get_result(v1::GetResultRequest { instance_id: id.clone() }).await;
        if asked.is_ok_and(|status| status.into_inner().state() != v1::InstanceState::Running) {
            break;
        }
    }
    // All nodes are asked at once, because an answer may need shares of all of them.
    let mut verdicts = tokio::task::JoinSet::new();
    for node in nodes {
        let mut protocol = client.protocol(node.id)?;
        let request = request(header, Wait::Done);
        verdicts.spawn(async move {
            match protocol.decapsulate(request).await {
                Ok(answer) => Verdict::Opened(answer.into_inner().outcome.unwrap_or_default().result),
                Err(status) if matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition) => {
                    Verdict::Refused
                }
                Err(_) => Verdict::Undecided,
            }
        });
    }
    Ok((verdicts.join_all().await.into_iter().collect(), doubted))
}

fn request(header: &Bytes, wait: Wait) -> Request<v1::DecapsulateRequest> {
    let mut request = Request::new(v1::DecapsulateRequest {
        key: KEY.to_owned(),
        header: header.clone(),
        wait: wait.into(),
        ..Default::default()
    });
    request.set_timeout(PATIENCE);
    request
}
