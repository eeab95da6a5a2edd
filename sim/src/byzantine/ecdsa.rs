//! Lies in programs of ECDSA, and about presignatures (`spec/ecdsa.md`).
//!
//! What a round of a program is about depends on its number and its length alone, and is the same at all holders, so a liar needs nothing else to
//! find its place.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand_chacha::rand_core::Rng;
use theta_wire::peer::{Envelope, INSTANCES};

use crate::chance::below;

/// The kinds of messages, as in `spec/ecdsa.md`.
const SHARE: u32 = 1;
const PROGRAM: u32 = 6;
/// Those above are no slots of instances.
const LAST_KIND: u32 = u16::MAX as u32;
/// The bytes before what a program sends: attempt, and round.
const HEAD: usize = 4;
const SCALAR: usize = 32;
const ELEMENT: usize = 33;
/// The length of a hash or commitment, which goes before or after values.
const HASH: usize = 32;
/// The corrections of one masked product take so many bytes with MASCOT, and of a product with Semi-OT.
const CORRECTIONS: usize = 512 * SCALAR;
const CORRECTIONS_OF_SEMI_OT: usize = 256 * SCALAR;
/// The round before the first coin, in which all say that they are here.
const HERE: u16 = 8;
/// The first round that may come again.
const MEETING: u16 = 4;
/// The most messages of one program that a liar remembers.
const MEMORY: usize = 512;

/// How a holder of a key lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EcdsaLie {
    /// Its part of R is another element. All get the same.
    OtherElement,
    /// Its part of a masked product is zero. (That the product is zero takes what the others show, and k - 1 liars, or the hash of what all have sent: tests
    /// of `crates/mpc` have that.)
    ZeroProduct,
    /// What it has sent in an earlier round comes again in a later one: the opening of another commitment.
    Replay,
    /// One holder gets another dealing than the others, or other corrections.
    Divided,
    /// One correction of one transfer is changed: whoever has the other choice there notices nothing.
    OneCorrection,
    /// Its shares of what is opened lie on no polynomial of the others'.
    WrongDegree,
    /// It names a presignature for one request to some holders, and for all that come after it to all.
    NamedTwice,
    /// Its shares of signatures are false, with presignatures and in programs that sign at once.
    FalseShare,
}

impl EcdsaLie {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::OtherElement,
        Self::ZeroProduct,
        Self::Replay,
        Self::Divided,
        Self::OneCorrection,
        Self::WrongDegree,
        Self::NamedTwice,
        Self::FalseShare,
    ];

    /// What it is called in counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherElement => "another part of R",
            Self::ZeroProduct => "a masked product of zero",
            Self::Replay => "a round again",
            Self::Divided => "another dealing to one",
            Self::OneCorrection => "a false correction",
            Self::WrongDegree => "shares of a wrong degree",
            Self::NamedTwice => "a presignature for two requests",
            Self::FalseShare => "false shares of signatures",
        }
    }

    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let drawn = usize::try_from(below(rng, Self::ALL.len() as u64)).unwrap_or(0);
        Self::ALL.get(drawn).copied().unwrap_or(Self::FalseShare)
    }
}

/// A program that a liar takes part in: its instance, and the number of its attempt.
type Program = (Bytes, [u8; 2]);

/// What a liar has sent in a program.
#[derive(Default)]
struct Sent {
    /// How many programs it had taken part in before.
    earlier: u16,
    /// Whether exactly k holders compute it.
    by_k: bool,
    /// The rounds in which elements were shown; and corrections.
    elements: Vec<u16>,
    corrections: Vec<u16>,
    /// The length of what was sent in each round, which tells programs apart.
    lengths: BTreeMap<u16, usize>,
    /// What each holder was sent, by round.
    all: BTreeMap<(u16, u16), Bytes>,
    /// The first holder that was sent corrections or a dealing: the one that gets others.
    victim: Option<u16>,
}

/// What a round is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Dealing,
    Corrections,
    MaskedProduct,
    Nonce,
    Signature,
    Other,
}

/// A holder that lies.
pub(super) struct EcdsaLiar {
    lie: EcdsaLie,
    /// In so many programs it follows the protocol first.
    honest: u16,
    programs: BTreeMap<Program, Sent>,
    /// What it said for each slot to each holder: whoever is asked for that again says the same.
    told: BTreeMap<(Bytes, u32, u32, u16), Option<Bytes>>,
    /// Whether holders of a program that most of them must be honest in are here in its eighth round, as with active security: known after the first one.
    is_active: bool,
    /// The instance in which it named a presignature to some, and what it said of it.
    named: Option<(Bytes, Bytes)>,
}

impl EcdsaLiar {
    pub(super) const fn new(lie: EcdsaLie, honest: u16) -> Self {
        Self { lie, honest, programs: BTreeMap::new(), told: BTreeMap::new(), is_active: true, named: None }
    }

    /// What it sends in place of a message; nothing, if it keeps that back.
    pub(super) fn tell(&mut self, to: u16, envelope: Envelope, rng: &mut impl Rng) -> Option<Envelope> {
        if envelope.stream != INSTANCES {
            return Some(envelope);
        }
        let slot = (envelope.instance_id.clone(), envelope.kind, envelope.number, to);
        let payload = match self.told.get(&slot) {
            Some(told) => told.clone(),
            None => {
                let told = self.payload(to, &envelope, rng);
                self.told.insert(slot, told.clone());
                told
            }
        };
        payload.map(|payload| Envelope { payload, ..envelope })
    }

    fn payload(&mut self, to: u16, envelope: &Envelope, rng: &mut impl Rng) -> Option<Bytes> {
        let honest = &envelope.payload;
        match (envelope.kind, self.lie) {
            (SHARE, EcdsaLie::FalseShare) => Some(other(honest, honest.len().saturating_sub(SCALAR))),
            (SHARE, EcdsaLie::NamedTwice) => self.name_twice(to, envelope),
            (PROGRAM..=LAST_KIND, _) => Some(self.round(to, envelope, rng).unwrap_or_else(|| honest.clone())),
            _ => Some(honest.clone()),
        }
    }

    /// Nodes of odd number hear nothing of a presignature when it is named first, and all are told that it signs whatever is asked for next.
    fn name_twice(&mut self, to: u16, envelope: &Envelope) -> Option<Bytes> {
        let (first, said) =
            self.named.get_or_insert_with(|| (envelope.instance_id.clone(), envelope.payload.clone())).clone();
        if first == envelope.instance_id {
            return to.is_multiple_of(2).then_some(said);
        }
        Some(said)
    }

    /// A round of a program with the lie in it; `None` if there is no place for it.
    fn round(&mut self, to: u16, envelope: &Envelope, rng: &mut impl Rng) -> Option<Bytes> {
        let (head, said) = envelope.payload.split_at_checked(HEAD)?;
        let [a, b, c, d] = head.try_into().ok()?;
        let round = u16::from_be_bytes([c, d]);
        let earlier = u16::try_from(self.programs.len()).unwrap_or(u16::MAX);
        let begun = || Sent { earlier, ..Sent::default() };
        let sent = self.programs.entry((envelope.instance_id.clone(), [a, b])).or_insert_with(begun);
        let part = sent.note(round, said, self.is_active);
        if round == HERE {
            self.is_active = said.len() == 1;
        }
        if sent.earlier < self.honest {
            return None;
        }
        let is_victim = matches!(part, Part::Dealing | Part::Corrections) && *sent.victim.get_or_insert(to) == to;
        let told: Bytes = match (self.lie, part) {
            (EcdsaLie::OtherElement, Part::Nonce) => other_elements(said),
            (EcdsaLie::ZeroProduct, Part::MaskedProduct) => {
                let mut told = said.to_vec();
                told.get_mut(sent.before_products()..)?.fill(0);
                told.into()
            }
            (EcdsaLie::WrongDegree, Part::MaskedProduct) => others(said, sent.before_products()),
            (EcdsaLie::Divided, _) if is_victim => others(said, sent.before_dealt()),
            (EcdsaLie::OneCorrection, Part::Corrections) if is_victim => {
                let place = usize::try_from(below(rng, 256)).unwrap_or(0);
                other(said, sent.before_dealt() + SCALAR * place)
            }
            (EcdsaLie::FalseShare, Part::Signature) => others(said, 0),
            (EcdsaLie::Replay, _) => sent.alike(to, round, said)?,
            _ => return None,
        };
        Some([head, &told].concat().into())
    }
}

impl Sent {
    /// Notes what is sent in a round; returns what that is about.
    fn note(&mut self, round: u16, said: &[u8], is_active: bool) -> Part {
        self.lengths.insert(round, said.len());
        // Holders compare what they mean, and then, where all of them must compute, a session and what they have from before.
        self.by_k |= round == 2 && said.len() > SCALAR;
        if is_of_elements(said)
            || said.split_at_checked(said.len().saturating_sub(HASH)).is_some_and(|(it, _)| is_of_elements(it))
        {
            // Where all must compute, the key is opened before all nonces.
            let is_first = first(&mut self.elements, round);
            return if self.by_k && is_first { Part::Other } else { Part::Nonce };
        }
        if self.by_k {
            return self.of_transfers(round, said.len());
        }
        // With active security the last thing that a verification opens is three numbers, in a round that depends on how many products there are; the masked products
        // follow, and the signature nine rounds after these. (Dealings are longer, as programs here make several presignatures.)
        let verified = [14, 18].into_iter().find(|round| self.lengths.get(round) == Some(&(3 * SCALAR)));
        match (is_active, round) {
            (_, 5) => Part::Dealing,
            (false, 6) => Part::MaskedProduct,
            (false, 14) => Part::Signature,
            (true, round) if verified.is_some_and(|verified| verified + 1 == round) => Part::MaskedProduct,
            (true, round) if verified.is_some_and(|verified| verified + 10 == round) => Part::Signature,
            _ => Part::Other,
        }
    }

    /// The same of a program that rests on transfers: masked products are opened four rounds after their corrections, or at once with passive security.
    fn of_transfers(&mut self, round: u16, len: usize) -> Part {
        let is_mascot = len > HASH && len.checked_rem(CORRECTIONS) == Some(HASH);
        // Before the key is opened a message of this length is of the set-up.
        let is_semi_ot = !self.elements.is_empty() && len > 0 && len.checked_rem(CORRECTIONS_OF_SEMI_OT) == Some(0);
        if is_mascot || is_semi_ot {
            first(&mut self.corrections, round);
            return Part::Corrections;
        }
        let follows = |rounds| self.corrections.iter().any(|corrections| corrections + rounds == round);
        let is_product = if self.is_semi_ot() { follows(1) } else { follows(4) };
        if is_product { Part::MaskedProduct } else { Part::Other }
    }

    fn is_semi_ot(&self) -> bool {
        let lengths =
            |round: &u16| self.lengths.get(round).is_some_and(|len| len.is_multiple_of(CORRECTIONS_OF_SEMI_OT));
        self.corrections.iter().any(lengths)
    }

    /// What comes before the masked products of a message that opens some: a commitment and a combination, with MASCOT.
    fn before_products(&self) -> usize {
        if self.by_k && !self.is_semi_ot() { HASH + SCALAR } else { 0 }
    }

    /// What comes before dealt numbers, or corrections: a commitment, with MASCOT.
    fn before_dealt(&self) -> usize {
        if self.by_k && !self.is_semi_ot() { HASH } else { 0 }
    }

    /// What a holder was sent last in an earlier round, if it was as long.
    fn alike(&mut self, to: u16, round: u16, said: &[u8]) -> Option<Bytes> {
        if self.all.len() < MEMORY {
            self.all.entry((to, round)).or_insert_with(|| Bytes::copy_from_slice(said));
        }
        // In the first rounds holders only find that they mean the same.
        let mut earlier = self.all.range((to, MEETING)..(to, round.max(MEETING))).map(|(_, earlier)| earlier);
        let is_other = |earlier: &&Bytes| earlier.len() == said.len() && said.len() >= SCALAR && **earlier != said;
        earlier.rfind(is_other).cloned()
    }
}

/// Notes a round; returns whether it is the first of them.
fn first(rounds: &mut Vec<u16>, round: u16) -> bool {
    if !rounds.contains(&round) {
        rounds.push(round);
    }
    rounds.iter().min() == Some(&round)
}

/// Whether it is elements alone, in their compressed form.
fn is_of_elements(bytes: &[u8]) -> bool {
    let is_element = |element: &[u8]| matches!(element, [2 | 3, ..]);
    !bytes.is_empty() && bytes.len().is_multiple_of(ELEMENT) && bytes.chunks(ELEMENT).all(is_element)
}

/// The elements' inverses: other elements, whatever the curve.
fn other_elements(bytes: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    let end = bytes.len() - bytes.len() % ELEMENT;
    let signs = bytes.get_mut(..end).unwrap_or_default().iter_mut().step_by(ELEMENT);
    signs.for_each(|sign| *sign ^= 1);
    bytes.into()
}

/// Another number in the place of the scalar that begins here.
fn other(bytes: &[u8], start: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(end) = bytes.get_mut(start..).and_then(|scalar| scalar.get_mut(SCALAR - 1)) {
        *end ^= 1;
    }
    bytes.into()
}

/// Other numbers in the places of all scalars from here on.
fn others(bytes: &[u8], start: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    let scalars = bytes.get_mut(start..).unwrap_or_default().chunks_exact_mut(SCALAR);
    scalars.filter_map(<[u8]>::last_mut).for_each(|end| *end ^= 1);
    bytes.into()
}
