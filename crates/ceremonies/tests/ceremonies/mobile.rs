//! The mobile adversary: in every epoch it steals t nodes completely, it records all messages, and it has unlimited
//! time.
//!
//! It opens all that it can. All that it knows is written as linear equations in the random values, and their rank says
//! what follows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use theta_ceremonies::Input;
use theta_ceremonies::{CeremonyId, Conclusion, ITEMS, Kind, Memory, Outcome, Statement, statements_of};
use theta_groups::{Group, Ristretto255, RistrettoScalar, Scalar, Transcript};
use theta_rounds::Machine;
use theta_rounds::{Channel, Effect, PartyId, Recipient, Slot};
use theta_schemes::coins::cks05::Cks05;
use theta_sharing::{ShareIndex, coefficients_at_zero};

use crate::support::{Held, Setting, parties, party, secret_of, test_rng, typed};

type Coin = Cks05<Ristretto255>;
const WORD: usize = 32;

/// What was said in a ceremony, and how it ended.
struct Recording {
    recorded: Vec<Statement>,
    key: Held<Ristretto255>,
}

/// Runs a ceremony of honest parties, and records every statement.
fn hold(setting: &Setting<Coin>, life: u8) -> Recording {
    let all: Vec<PartyId> = setting.plan.parties().collect();
    let mut machines: BTreeMap<_, _> = all.iter().map(|id| (*id, setting.machine(*id, Memory::Kept, life))).collect();
    let mut queue: VecDeque<(PartyId, PartyId, Slot, Bytes)> = VecDeque::new();
    let (mut recorded, mut outcomes) = (BTreeMap::new(), BTreeMap::<PartyId, Outcome>::new());
    let mut inputs: VecDeque<(PartyId, Input)> = all.iter().map(|id| (*id, Input::Start)).collect();
    while outcomes.len() < all.len() {
        let (to, input) = match (inputs.pop_front(), queue.pop_front()) {
            (Some(first), rest) => {
                rest.into_iter().for_each(|packet| queue.push_front(packet));
                first
            }
            (None, Some((from, to, slot, payload))) => {
                (to, Input::Message { from, slot, channel: Channel::Broadcast, payload })
            }
            (None, None) => {
                inputs.extend(all.iter().map(|id| (*id, Input::Tick)));
                continue;
            }
        };
        for effect in machines.get_mut(&to).unwrap().handle(input, &mut test_rng(0)) {
            match effect {
                Effect::Send { to: Recipient::Party(peer), slot, payload, .. } => {
                    queue.push_back((to, peer, slot, payload));
                }
                Effect::Send { slot, payload, .. } => {
                    if slot == ITEMS {
                        recorded.extend(statements_of(&payload).map(|said| ((said.author(), said.slot()), said)));
                    }
                    let others = all.iter().filter(|peer| **peer != to);
                    queue.extend(others.map(|peer| (to, *peer, slot, payload.clone())));
                }
                Effect::Finished(Ok(outcome)) => drop(outcomes.insert(to, outcome)),
                Effect::Ask(nothing) => match nothing {},
                Effect::Finished(Err(abort)) => panic!("{to} gives up: {abort}"),
                Effect::Blame(blame) => panic!("{to} accuses an honest party: {blame}"),
            }
        }
    }
    let mut shares = Vec::new();
    let mut public = None;
    for (id, outcome) in outcomes {
        let Conclusion::Activated(activated) = outcome.conclusion else { panic!() };
        let (key, share) = typed::<Coin>(&activated).unwrap();
        shares.extend(share.map(|share| (id, share)));
        public = Some(key);
    }
    Recording { recorded: recorded.into_values().collect(), key: (public.unwrap(), shares) }
}

/// What a recorded dealing has for a member: the encryption key, R, and the ciphertext.
struct SealedValue {
    dealer: PartyId,
    slot: theta_ceremonies::StatementSlot,
    recipient: PartyId,
    key: Vec<u8>,
    ephemeral: Vec<u8>,
    ciphertext: Vec<u8>,
}

/// Reads a dealing as `spec/ceremonies.md` has it.
fn sealed_values(setting: &Setting<Coin>, dealing: &Statement) -> Vec<SealedValue> {
    let generated = setting.old.is_empty();
    let threshold = setting.plan.threshold();
    let commitments = usize::from(if generated { threshold.k() } else { threshold.t() });
    let width = WORD * if generated { 2 } else { 1 };
    let (mut places, mut at) = (Vec::new(), commitments * WORD);
    let body = dealing.body();
    for member in setting.plan.members() {
        if body[at] == 1 {
            places.push((*member, body[at + 1..at + 1 + WORD].to_vec()));
            at += WORD + 64;
        }
        at += 1;
    }
    let ephemeral = body[at..at + WORD].to_vec();
    let ciphertexts = body[at + WORD + 64..].chunks(width);
    assert_eq!(ciphertexts.len(), places.len());
    let value = |((recipient, key), ciphertext): (_, &[u8])| SealedValue {
        dealer: dealing.author(),
        slot: dealing.slot(),
        recipient,
        key,
        ephemeral: ephemeral.clone(),
        ciphertext: ciphertext.to_vec(),
    };
    places.into_iter().zip(ciphertexts).map(value).collect()
}

/// Opens a value with a secret, if it was encrypted to it.
fn open(ceremony: &CeremonyId, value: &SealedValue, secret: &RistrettoScalar) -> Option<RistrettoScalar> {
    if Ristretto255::encode(&Ristretto255::mul_base(secret)).as_ref() != value.key.as_slice() {
        return None;
    }
    let shared = Ristretto255::decode(&value.ephemeral).unwrap() * *secret;
    let number = value.slot.number.to_be_bytes();
    let slot: Vec<u8> = core::iter::once(value.slot.kind as u8).chain(number).collect();
    let stream = Transcript::new("theta/ceremony/keystream/v1")
        .with("ceremony", ceremony.as_bytes())
        .with("dealer", &value.dealer.get().to_be_bytes())
        .with("slot", &slot)
        .with("recipient", &value.recipient.get().to_be_bytes())
        .with("r", &value.ephemeral)
        .with("shared", Ristretto255::encode(&shared).as_ref())
        .with("block", &0_u32.to_be_bytes())
        .finish();
    let plain: Vec<u8> = value.ciphertext.iter().zip(stream).map(|(byte, mask)| byte ^ mask).collect();
    Some(RistrettoScalar::decode(&plain[..WORD]).expect("what was sealed is a scalar"))
}

/// The decryption key of a party in one ceremony.
fn decryption_key(ceremony: &CeremonyId, seed: &[u8; 32]) -> RistrettoScalar {
    Transcript::new("theta/ceremony/decryption/v1").with("seed", seed).with("ceremony", ceremony.as_bytes()).challenge()
}

/// All secrets that follow from an identity, in this release and in the one before.
fn from_identity(party: PartyId) -> Vec<RistrettoScalar> {
    let master = crate::support::keys_of(party);
    let of = |purpose: &[u8]| {
        let transcript = Transcript::new("theta/ceremony/identity/v1").with("purpose", purpose);
        transcript.with("master", master.master().expose()).challenge::<RistrettoScalar>()
    };
    let raw = [*master.master().expose(), [0; 32]].concat();
    vec![of(b"sign"), of(b"decrypt"), RistrettoScalar::from_uniform_bytes(&raw)]
}

/// A linear form in all random values.
type Form = BTreeMap<usize, RistrettoScalar>;

fn add(to: &mut Form, factor: RistrettoScalar, other: &Form) {
    for (unknown, value) in other {
        let sum = to.get(unknown).copied().unwrap_or(RistrettoScalar::ZERO) + factor * *value;
        to.insert(*unknown, sum);
    }
    to.retain(|_, value| *value != RistrettoScalar::ZERO);
}

/// Equations in echelon form, by their first unknown.
#[derive(Default)]
struct Knowledge(BTreeMap<usize, Form>);

impl Knowledge {
    fn reduce(&self, mut form: Form) -> Form {
        let mut from = 0;
        while let Some((unknown, value)) = form.range(from..).next().map(|(unknown, value)| (*unknown, *value)) {
            if let Some(row) = self.0.get(&unknown) {
                add(&mut form, -value, row);
            }
            from = unknown + 1;
        }
        form
    }

    fn learn(&mut self, form: Form) {
        let mut form = self.reduce(form);
        if let Some((unknown, value)) = form.first_key_value().map(|(unknown, value)| (*unknown, *value)) {
            let inverse = value.invert();
            form.values_mut().for_each(|value| *value = *value * inverse);
            self.0.insert(unknown, form);
        }
    }

    fn implies(&self, form: &Form) -> bool {
        self.reduce(form.clone()).is_empty()
    }
}

/// All random values, and what nobody should know of them.
#[derive(Default)]
struct World {
    unknowns: usize,
    known: Knowledge,
}

impl World {
    /// A polynomial with this constant, or a random one: its coefficients.
    fn polynomial(&mut self, constant: Option<Form>, k: u16) -> Vec<Form> {
        let fresh = k - u16::from(constant.is_some());
        let mut drawn = (0..fresh).map(|_| {
            self.unknowns += 1;
            Form::from([(self.unknowns, RistrettoScalar::ONE)])
        });
        constant.into_iter().chain(drawn.by_ref()).collect()
    }
}

fn at(polynomial: &[Form], index: ShareIndex) -> Form {
    let x = RistrettoScalar::from_u64(u64::from(index.get()));
    let (mut sum, mut power) = (Form::new(), RistrettoScalar::ONE);
    for coefficient in polynomial {
        add(&mut sum, power, coefficient);
        power = power * x;
    }
    sum
}

/// The dealers whose dealings were decided on: the only value that was proposed.
fn decided(recorded: &[Statement]) -> Vec<PartyId> {
    let values = recorded.iter().filter(|said| said.slot().kind == Kind::Proposal);
    let values: BTreeSet<Vec<u8>> = values.map(|said| said.body()[4..].to_vec()).collect();
    assert_eq!(values.len(), 1, "several proposals");
    let value = values.into_iter().next().unwrap();
    value.chunks(34).map(|entry| party(u16::from_be_bytes([entry[0], entry[1]]))).collect()
}

/// A group through its epochs: the nodes that are stolen at rest in each, and those stolen during the ceremony that
/// leads to the next.
struct History {
    at_rest: Vec<Vec<u16>>,
    meanwhile: Vec<Vec<u16>>,
}

/// Tries everything that was stolen before the end on everything that was ever sealed. Returns how many points of each
/// epoch's polynomial are known, and whether the key is.
fn attack(k: u16, n: u16, history: &History) -> (Vec<usize>, bool) {
    let all = parties(1..=n);
    let mut world = World::default();
    let mut setting = Setting::<Coin>::generate(k, n, 1);
    let mut shares: BTreeMap<PartyId, Form> = BTreeMap::new();
    let (mut key, mut epochs): (Option<Form>, Vec<Vec<Form>>) = (None, Vec::new());
    let mut candidates: Vec<RistrettoScalar> = all.iter().flat_map(|party| from_identity(*party)).collect();
    let mut sealed = Vec::new();
    for (ceremony, robbed) in history.meanwhile.iter().enumerate() {
        let life = u8::try_from(ceremony).unwrap();
        let held = hold(&setting, life);
        let id = *setting.plan.id();
        // The ceremony in terms of the unknowns.
        let (chosen, members) = (decided(&held.recorded), setting.plan.members().to_vec());
        let index = |party: &PartyId| setting.plan.index_of(*party).unwrap();
        let mut dealt = BTreeMap::new();
        let dealings = held.recorded.iter().filter(|said| said.slot().kind == Kind::Dealing);
        for dealing in dealings {
            let constant = shares.get(&dealing.author()).cloned();
            dealt.insert(dealing.author(), world.polynomial(constant, k));
            sealed.extend(sealed_values(&setting, dealing).into_iter().map(|value| {
                let form = at(&dealt[&dealing.author()], index(&value.recipient));
                (id, life, value, form)
            }));
        }
        let factors = if shares.is_empty() {
            vec![RistrettoScalar::ONE; chosen.len()]
        } else {
            coefficients_at_zero(&chosen.iter().map(index).collect::<Vec<_>>()).unwrap()
        };
        let new_share = |member: &PartyId| {
            let mut sum = Form::new();
            chosen.iter().zip(&factors).for_each(|(dealer, f)| add(&mut sum, *f, &at(&dealt[dealer], index(member))));
            sum
        };
        let fresh: BTreeMap<PartyId, Form> = members.iter().map(|member| (*member, new_share(member))).collect();
        let mut secret = Form::new();
        chosen.iter().zip(&factors).for_each(|(dealer, factor)| add(&mut secret, *factor, &dealt[dealer][0]));
        if let Some(before) = key.replace(secret.clone()) {
            assert_eq!(before, secret, "a refresh keeps the key");
        }
        // Nodes that were robbed while it ran gave all their random values, and both shares.
        for robbed in robbed.iter().copied().map(party) {
            candidates.push(decryption_key(&id, secret_of(robbed, life).expose()));
            dealt[&robbed].iter().for_each(|form| world.known.learn(form.clone()));
            shares.get(&robbed).into_iter().chain([&fresh[&robbed]]).for_each(|f| world.known.learn(f.clone()));
        }
        shares = fresh;
        // Nodes that were robbed later gave their shares.
        for robbed in history.at_rest[ceremony].iter().copied().map(party) {
            world.known.learn(shares[&robbed].clone());
            let (_, share) = held.key.1.iter().find(|(holder, _)| *holder == robbed).unwrap();
            candidates.push(*share.secret().expose());
        }
        epochs.push(members.iter().map(|member| shares[member].clone()).collect());
        let nonce = 10 + u64::from(life);
        setting = Setting::reshare(&held.key.0, held.key.1, all.clone(), (k, all.clone()), nonce);
    }
    for (id, life, value, form) in sealed {
        let opened = candidates.iter().any(|secret| open(&id, &value, secret).is_some());
        let robbed = history.meanwhile[usize::from(life)].contains(&value.recipient.get());
        assert_eq!(opened, robbed, "{} of ceremony {life} opens, or does not", value.recipient);
        if opened {
            world.known.learn(form);
        }
    }
    let points = |epoch: &Vec<Form>| epoch.iter().filter(|share| world.known.implies(share)).count();
    (epochs.iter().map(points).collect(), world.known.implies(&key.unwrap()))
}

/// Every node is stolen in turn, some while ceremonies run: t in each epoch, and only t points of each epoch's
/// polynomial are known.
#[test]
fn t_nodes_stolen_whole_in_every_epoch_tell_nothing() {
    // In each epoch: the one stolen at rest, and those stolen in the ceremonies before and after it.
    let history = History {
        at_rest: vec![vec![1], vec![2], vec![5], vec![3], vec![4], vec![1, 5]],
        meanwhile: vec![vec![2], vec![3], vec![], vec![4], vec![], vec![]],
    };
    let (points, key) = attack(4, 5, &history);
    assert!(!key);
    assert!(points.iter().all(|points| *points <= 3), "{points:?}");
    let (points, key) = attack(
        3,
        5,
        &History {
            at_rest: vec![vec![1], vec![1], vec![2, 3], vec![4], vec![5], vec![3]],
            meanwhile: vec![vec![], vec![2], vec![], vec![], vec![1], vec![]],
        },
    );
    assert!(!key);
    assert!(points.iter().all(|points| *points <= 2), "{points:?}");
}

/// With one more node than may be stolen in an epoch, the same equations give the key: the method can find it.
#[test]
fn one_node_more_in_one_epoch_and_all_is_known() {
    let (_, key) = attack(2, 4, &History { at_rest: vec![vec![1], vec![2], vec![3]], meanwhile: vec![vec![]; 3] });
    assert!(!key);
    let (points, key) =
        attack(2, 4, &History { at_rest: vec![vec![1], vec![2, 3], vec![3]], meanwhile: vec![vec![]; 3] });
    assert!(key && points[1] == 4);
    // One at rest, and another while the ceremony to the next epoch runs, which counts for both epochs.
    let stolen = History { at_rest: vec![vec![1], vec![2]], meanwhile: vec![vec![], vec![3]] };
    assert!(attack(2, 4, &stolen).1);
}
