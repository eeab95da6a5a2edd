//! Groups on real keys, and lies that need knowledge of the schemes.

use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::{Group, Ristretto255, Scalar, Secret, bls12_381, modular::Integer};
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_protocols::one_round::{PROOF_REQUEST, PROVEN_SHARE, SHARE};
use theta_protocols::{Misbehaviour, Outcome, start};
use theta_rounds::simulator::{Adversary, Conditions, Forgery, HonestSend, Report, SimRng, Simulator, Tamper};
use theta_rounds::{Channel, Effect, Input, PartyId, Slot};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any, deal_rsa_primes};
use theta_schemes::signatures::sh00::RsaPrimes;
use theta_schemes::{Purpose, StatementBytes, Suite};
use theta_sharing::{ShareIndex, Threshold};

use crate::supplied::{SuppliedMachine, alone};

/// The moment by which everything that is not held back has arrived.
pub(crate) const HELD_BACK: u64 = 10_000;

pub(crate) fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// A dealt key, a statement, and its result.
pub(crate) struct Setting {
    pub(crate) suite: Suite,
    pub(crate) n: u16,
    pub(crate) public: AnyPublicKey,
    pub(crate) shares: Vec<Arc<AnyKeyShare>>,
    pub(crate) statement: StatementBytes,
    pub(crate) other_statement: StatementBytes,
    pub(crate) result: Vec<u8>,
}

impl Setting {
    pub(crate) fn new(suite: Suite, k: u16, n: u16) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(k) << 16 | u64::from(n));
        let threshold = Threshold::new(k, n).unwrap();
        let (public, shares) = deal(suite, threshold, &mut rng);
        let statement = statement_about(&public, b"one", &mut rng);
        let other_statement = statement_about(&public, b"another", &mut rng);
        let shares = shares.into_iter().map(Arc::new).collect();
        let mut setting = Self { suite, n, public, shares, statement, other_statement, result: Vec::new() };
        setting.result = setting.run(0, Vec::new()).agreed(result_of).unwrap();
        setting
    }

    pub(crate) fn machine(&self, number: u16) -> SuppliedMachine {
        alone(start(&self.public, &self.shares[usize::from(number) - 1], &self.statement).unwrap())
    }

    /// What party `number` sends in the instance of the other statement.
    pub(crate) fn share_of_other_instance(&self, number: u16) -> HonestSend {
        let machine = start(&self.public, &self.shares[usize::from(number) - 1], &self.other_statement).unwrap();
        own_share(&mut alone(machine))
    }

    /// Runs all parties, those in `corrupted` corrupted. Messages of corrupted parties arrive before those of honest
    /// ones, and messages of honest parties reach them early.
    pub(crate) fn run(&self, seed: u64, corrupted: Vec<(u16, Box<dyn Adversary>)>) -> Report<Outcome, Misbehaviour> {
        let mut simulator = Simulator::new(seed, Conditions::default());
        let culprits: Vec<u16> = corrupted.iter().map(|(number, _)| *number).collect();
        let honest: Vec<u16> = (1..=self.n).filter(|number| !culprits.contains(number)).collect();
        for number in &honest {
            simulator.honest(id(*number), self.machine(*number));
            for other in honest.iter().filter(|_| !culprits.is_empty()) {
                simulator.hold_back(id(*number), id(*other), HELD_BACK);
            }
        }
        for (number, adversary) in corrupted {
            simulator.byzantine(id(number), self.machine(number), adversary);
        }
        simulator.run()
    }

    /// Runs with these parties corrupted. Checks that every honest party gets the result, that all of them name each
    /// corrupted party with one of `offences`, and that nobody names an honest party.
    pub(crate) fn expect_named(&self, seed: u64, corrupted: Vec<(u16, Box<dyn Adversary>)>, offences: &[&str]) {
        let culprits: Vec<u16> = corrupted.iter().map(|(number, _)| *number).collect();
        let report = self.run(seed, corrupted);
        self.expect_result(&report);
        for culprit in culprits {
            let blames: Vec<_> = report.blames_of(id(culprit)).collect();
            for (by, _) in report.honest() {
                let said = blames.iter().filter(|(party, _)| *party == by).count();
                assert_eq!(said, 1, "{}: party {by} names {culprit} once, seed {seed}", self.suite);
            }
            for (by, blame) in blames {
                let name = blame.offence.name();
                assert!(offences.contains(&name), "{}: party {by} takes it for {name}, seed {seed}", self.suite);
            }
        }
    }

    pub(crate) fn expect_result(&self, report: &Report<Outcome, Misbehaviour>) {
        report.check_blame().unwrap();
        let result = report.agreed(result_of).unwrap();
        assert_eq!(result, self.result, "{}: the result is the one of an honest run", self.suite);
    }
}

/// RSA keys with fixed primes: searching for primes takes too long.
fn deal(suite: Suite, threshold: Threshold, rng: &mut ChaCha8Rng) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    // Made with `openssl prime -generate -bits 512 -safe`.
    const PRIMES: [&str; 2] = [
        "c1c8e54a6989ddb78d093a60c9551145b88d01d09b9b213897987ad2b04283dd\
         f330f4dbd09c2a8f7f783c9fb677a720698a739c8ec57d7a77f63bf970cba647",
        "dc186f40363d6dc37a1694849c33e327f6bc6e718aa44984933e9991a6700fdc\
         886f39c9306cf38d62243c4adf266af0bf64924651a00ce6b9509f2abd76ff83",
    ];
    if suite.group() != "RSA" {
        return deal_any(suite, threshold, rng);
    }
    let [p, q] = PRIMES.map(|hex| {
        let byte = |place: usize| u8::from_str_radix(&hex[place..place + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        Secret::new(Integer::from_be_bytes(&bytes))
    });
    deal_rsa_primes(suite, &RsaPrimes::new(p, q).unwrap(), threshold, rng).unwrap()
}

/// A statement for the key: a ciphertext of `text`, or `text` itself, to be signed or to name a coin.
fn statement_about(public: &AnyPublicKey, text: &'static [u8], rng: &mut ChaCha8Rng) -> StatementBytes {
    match public.suite().purpose() {
        Purpose::Sign => StatementBytes::Sign(text.into()),
        Purpose::Coin => StatementBytes::FlipCoin(text.into()),
        Purpose::Decrypt => {
            let ciphertext = public.encrypt(text, b"label", Aead::default(), rng).unwrap();
            let (header, _) = split_ciphertext(&ciphertext).unwrap();
            StatementBytes::Decapsulate(Bytes::copy_from_slice(header))
        }
    }
}

pub(crate) fn result_of(outcome: &Outcome) -> Vec<u8> {
    outcome.result.expose().clone()
}

/// The share that a machine sends when it starts.
pub(crate) fn own_share(machine: &mut SuppliedMachine) -> HonestSend {
    own_share_with(machine, 99)
}

/// The same, with randomness from `seed`.
pub(crate) fn own_share_with(machine: &mut SuppliedMachine, seed: u64) -> HonestSend {
    let effects = machine.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(seed));
    let sent = effects.into_iter().find_map(|effect| match effect {
        Effect::Send { slot, channel, payload, .. } => Some(HonestSend { slot, channel, payload }),
        _ => None,
    });
    sent.unwrap()
}

/// The proven share that a machine sends when a peer asks, if it has been withheld.
pub(crate) fn own_proof(machine: &mut SuppliedMachine, asker: u16) -> Option<HonestSend> {
    let request =
        Input::Message { from: id(asker), slot: PROOF_REQUEST, channel: Channel::Broadcast, payload: Bytes::new() };
    let effects = machine.handle(request, &mut ChaCha8Rng::seed_from_u64(98));
    effects.into_iter().find_map(|effect| match effect {
        Effect::Send { slot: slot @ PROVEN_SHARE, channel, payload, .. } => Some(HonestSend { slot, channel, payload }),
        _ => None,
    })
}

/// An adversary that sends `share` as its share, and is honest when it is asked for proofs.
pub(crate) fn substitute(share: HonestSend) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
        vec![(slot, if slot == SHARE { share.payload.clone() } else { payload })]
    }))
}

/// Sends the first share that it receives as its own, and is honest when it is asked for proofs.
#[derive(Default)]
pub(crate) struct Copyist {
    copied: bool,
}

impl Adversary for Copyist {
    fn on_send(&mut self, _: &mut SimRng, _: PartyId, honest: HonestSend) -> Vec<Forgery> {
        if honest.slot == SHARE { Vec::new() } else { vec![honest] }
    }

    fn on_receive(&mut self, _: &mut SimRng, _: PartyId, message: &HonestSend) -> Vec<Forgery> {
        let first = message.slot == SHARE && !core::mem::replace(&mut self.copied, true);
        if first { vec![message.clone()] } else { Vec::new() }
    }
}

/// Suites of one round whose shares [`shifted`] can falsify: each family, with and without pairings. The other suites
/// differ only inside their schemes, whose tests cover that.
const LIABLE: [Suite; 6] = [
    Suite::Sg02Ristretto255,
    Suite::Sg02Bls12381,
    Suite::Bls04MinPk,
    Suite::Bls04MinSig,
    Suite::Cks05Ristretto255,
    Suite::Cks05Bls12381,
];

/// Checks groups of k of n on keys of every kind of suite.
pub(crate) fn each_suite(k: u16, n: u16, check: impl Fn(&Setting)) {
    for suite in LIABLE {
        check(&Setting::new(suite, k, n));
    }
}

/// An adversary that changes every payload by `change`, which knows the recipient.
pub(crate) fn tamper(mut change: impl FnMut(PartyId, Bytes) -> Bytes + Send + 'static) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| vec![(slot, change(to, payload))]))
}

/// A well-formed share, bare or proven, whose group element is off by `delta` times the generator. Requests for proofs
/// are not changed.
pub(crate) fn shifted(suite: Suite, payload: &[u8], delta: &Delta) -> Bytes {
    match suite {
        _ if payload.is_empty() => Bytes::new(),
        Suite::Sg02Ristretto255 | Suite::Cks05Ristretto255 => shift::<Ristretto255>(payload, delta),
        Suite::Sg02Bls12381 | Suite::Cks05Bls12381 | Suite::Bls04MinSig => shift::<bls12_381::G1>(payload, delta),
        Suite::Bls04MinPk => shift::<bls12_381::G2>(payload, delta),
        other => panic!("no lies known about {other}"),
    }
}

/// A signed number, times a Lagrange coefficient if `lagrange` is set.
pub(crate) struct Delta {
    pub(crate) value: u64,
    pub(crate) negative: bool,
    /// `(set, of)`: the coefficient at zero of party `of` among `set`.
    pub(crate) lagrange: Option<(Vec<u16>, u16)>,
}

impl Delta {
    pub(crate) const fn plus(value: u64) -> Self {
        Self { value, negative: false, lagrange: None }
    }

    pub(crate) const fn minus(value: u64) -> Self {
        Self { value, negative: true, lagrange: None }
    }

    fn scalar<S: Scalar>(&self) -> S {
        let mut scalar = S::from_u64(self.value);
        if let Some((set, of)) = &self.lagrange {
            // Product of j / (j - of) over the others of the set, in the field.
            for j in set.iter().filter(|j| *j != of) {
                let (j, of) = (S::from_u64(u64::from(*j)), S::from_u64(u64::from(*of)));
                scalar = scalar * j * (j - of).invert();
            }
        }
        if self.negative { -scalar } else { scalar }
    }
}

fn shift<G: Group>(payload: &[u8], delta: &Delta) -> Bytes {
    let (element, rest) = payload.split_at(G::ENCODED_LEN);
    let element = G::decode(element).unwrap() + G::mul_base(&delta.scalar::<G::Scalar>());
    [G::encode(&element).as_ref(), rest].concat().into()
}
