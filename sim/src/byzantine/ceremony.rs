//! Lies in ceremonies: with signatures, which only a member can make.

use bytes::Bytes;
use rand_chacha::rand_core::Rng;
use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, rewrite};
use theta_wire::peer::{CUSTODY, Envelope};

use super::omission::leave_out;
use crate::scenario::below;

/// What comes before the statements in a custodian's message: format, tag, the ceremony's id.
const HEAD: usize = 34;
/// Bytes of nothing behind a true statement: more than the journal takes at once.
const SWOLLEN: u32 = 5 << 20;
/// The most contradictions in one message, and their bytes.
const MANIFOLD: u32 = 300;
const MESSAGE: usize = 200 << 10;
/// The tag of statements.
const ITEMS: u8 = 1;

const KINDS: [Kind; 17] = [
    Kind::Dealing,
    Kind::Dealing,
    Kind::Complaint,
    Kind::LateComplaint,
    Kind::Release,
    Kind::Proposal,
    Kind::Prevote,
    Kind::Precommit,
    Kind::Key,
    Kind::ProofOfPossession,
    Kind::Activation,
    Kind::Checked,
    Kind::Answer,
    Kind::EncryptionKey,
    Kind::Request,
    Kind::Accepted,
    Kind::Acceptances,
];
/// Of a list of masks: a helper and a digest.
const MASK_LEN: usize = 34;

/// What is said in the place of a true statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing.
    Withheld,
    /// One byte is another, that many from the end.
    Changed(u16),
    /// It ends too early.
    Cut(u16),
    /// An empty vote, proposal or list.
    Emptied,
    /// It is true, and behind it come megabytes that mean nothing.
    Swollen,
    /// It is contradicted by hundreds more, each signed.
    Manifold,
    /// To each another one: of a list of masks, as in an owner's request, another one is missing; else the first byte differs.
    Divided,
    /// Of a dealing: without a place for the member of this position, in a group of k of n.
    LeftOut { k: u16, n: u16, position: u16 },
}

/// What is said falsely, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeremonyLie {
    kind: Kind,
    form: Form,
    /// The others hear the truth.
    to_odd_nodes_only: bool,
}

impl CeremonyLie {
    /// An owner of a lost share that asks each helper for another list of masks.
    #[must_use]
    pub const fn divided_request() -> Self {
        Self { kind: Kind::Request, form: Form::Divided, to_odd_nodes_only: false }
    }

    /// A dealer in a group of k of n whose dealings have nothing for the member of this position, from 0.
    #[must_use]
    pub const fn left_out((k, n): (u16, u16), position: u16) -> Self {
        Self { kind: Kind::Dealing, form: Form::LeftOut { k, n, position }, to_odd_nodes_only: false }
    }

    /// A dealer that deals something else than it should to the last member.
    #[must_use]
    pub const fn false_dealing() -> Self {
        Self { kind: Kind::Dealing, form: Form::Changed(1), to_odd_nodes_only: false }
    }

    /// A dealer that shows its dealings to some nodes only.
    #[must_use]
    pub const fn withheld_dealing() -> Self {
        Self { kind: Kind::Dealing, form: Form::Withheld, to_odd_nodes_only: true }
    }

    pub(crate) fn draw(rng: &mut impl Rng, (k, n): (u16, u16)) -> Self {
        let number = 1 + u16::try_from(below(rng, 100)).unwrap_or(0);
        let kind = usize::try_from(below(rng, KINDS.len() as u64)).unwrap_or(0);
        let form = match below(rng, 10) {
            0 => Form::Withheld,
            1 => Form::Cut(number),
            2 => Form::Emptied,
            3 => Form::Swollen,
            4 => Form::Manifold,
            5 | 6 => Form::Divided,
            _ => Form::Changed(number),
        };
        let kind = KINDS.get(kind).copied().unwrap_or(Kind::Dealing);
        if kind == Kind::Dealing && form == Form::Divided {
            let position = u16::try_from(below(rng, u64::from(n))).unwrap_or(0);
            return Self::left_out((k, n), position);
        }
        Self { kind, form, to_odd_nodes_only: below(rng, 2) == 0 }
    }

    pub(super) fn tell(self, keys: &CeremonyKeys, to: u16, envelope: Envelope) -> Envelope {
        let spared = self.to_odd_nodes_only && to.is_multiple_of(2);
        let forged = if envelope.stream == CUSTODY && !spared { self.forge(keys, to, &envelope.payload) } else { None };
        Envelope { payload: forged.unwrap_or_else(|| envelope.payload.clone()), ..envelope }
    }

    /// The message with the lie in it; `None` if it is no message of statements.
    fn forge(self, keys: &CeremonyKeys, to: u16, payload: &Bytes) -> Option<Bytes> {
        let (head, items) = payload.split_at_checked(HEAD)?;
        let [_, ITEMS, id @ ..] = head else { return None };
        let id = CeremonyId::from_bytes(id.try_into().ok()?);
        let forged = rewrite(items, |statement| {
            if statement.author() != keys.member().party() || statement.slot().kind != self.kind {
                return vec![statement];
            }
            let mut body = statement.body().to_vec();
            match self.form {
                Form::Swollen => return vec![statement],
                Form::Manifold => return manifold(&id, keys, &statement),
                Form::Withheld => return Vec::new(),
                Form::Emptied => body.clear(),
                Form::Divided => divide(&mut body, to),
                Form::LeftOut { k, n, position } => {
                    body = leave_out(&body, (k, n), position).unwrap_or(body);
                }
                Form::Cut(by) => body.truncate(body.len().saturating_sub(usize::from(by))),
                Form::Changed(from_end) => {
                    if let Some(at) = usize::from(from_end).checked_rem(body.len())
                        && let Some(byte) = body.iter_mut().nth_back(at)
                    {
                        *byte ^= 1;
                    }
                }
            }
            vec![Statement::sign(&id, keys, statement.slot(), body)]
        })?;
        let padding = if self.form == Form::Swollen { value(SWOLLEN) } else { Vec::new() };
        Some([head, &forged, &padding].concat().into())
    }
}

/// A statement and what contradicts it, as much as honest parties send in one message.
fn manifold(id: &CeremonyId, keys: &CeremonyKeys, statement: &Statement) -> Vec<Statement> {
    let mut all = vec![statement.clone()];
    let mut bytes = 0;
    for number in 0..MANIFOLD {
        let mut body = statement.body().to_vec();
        bytes += body.len() + 100;
        if bytes > MESSAGE {
            break;
        }
        let end = body.len().saturating_sub(4);
        body.truncate(end);
        body.extend_from_slice(&number.to_be_bytes());
        all.push(Statement::sign(id, keys, statement.slot(), body));
    }
    all
}

/// An item that is a value of so many bytes, which nobody wants.
fn value(len: u32) -> Vec<u8> {
    let mut item = vec![3];
    item.extend_from_slice(&len.to_be_bytes());
    item.resize(item.len() + usize::try_from(len).unwrap_or(0), 0xee);
    item
}

/// What only one node is told.
fn divide(body: &mut Vec<u8>, to: u16) {
    let masks = body.len() / MASK_LEN;
    if masks > 1 && body.len().is_multiple_of(MASK_LEN) {
        let missing = usize::from(to).checked_rem(masks).unwrap_or(0);
        body.drain(missing * MASK_LEN..(missing + 1) * MASK_LEN);
    } else if let Some(first) = body.first_mut() {
        let [_, low] = to.to_be_bytes();
        *first ^= low;
    }
}
