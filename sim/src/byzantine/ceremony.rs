//! Lies in ceremonies. They are signed, as only a member can sign them.

use bytes::Bytes;
use rand_chacha::rand_core::Rng;
use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, rewrite};
use theta_wire::peer::{CUSTODY, Envelope};

use super::omission::leave_out;
use crate::chance::below;

/// The bytes before the statements in a custodian's message: format, tag, the ceremony's id.
const HEAD: usize = 34;
/// The meaningless bytes behind a true statement: more than the journal takes at once.
const SWOLLEN: u32 = 5 << 20;
/// The most contradictions in one message, and their bytes.
const MANIFOLD: u32 = 300;
const MESSAGE: usize = 200 << 10;
/// The tag of statements in a custodian's message.
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
/// The bytes of an entry in a list of masks: a helper and a digest.
const MASK_LEN: usize = 34;

/// What the liar sends in place of a true statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It is not sent.
    Withheld,
    /// One byte is changed, counted from the end.
    Changed(u16),
    /// It ends too early.
    Cut(u16),
    /// It is an empty vote, proposal or list.
    Emptied,
    /// It is true, and megabytes follow that mean nothing.
    Swollen,
    /// Hundreds of signed statements contradict it.
    Manifold,
    /// Each node gets another one: a list of masks, as in an owner's request, lacks another entry; otherwise the first byte
    /// differs.
    Divided,
    /// It is a dealing without a place for the member at this position, in a group of k of n.
    LeftOut { k: u16, n: u16, position: u16 },
}

/// A kind of lie, and the nodes that receive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeremonyLie {
    kind: Kind,
    form: Form,
    /// The other nodes receive the true statement.
    to_odd_nodes_only: bool,
}

impl CeremonyLie {
    /// The owner of a lost share asks each helper for another list of masks.
    #[must_use]
    pub const fn divided_request() -> Self {
        Self { kind: Kind::Request, form: Form::Divided, to_odd_nodes_only: false }
    }

    /// A dealer in a group of k of n whose dealings have no place for the member at this position, from 0.
    #[must_use]
    pub const fn left_out((k, n): (u16, u16), position: u16) -> Self {
        Self { kind: Kind::Dealing, form: Form::LeftOut { k, n, position }, to_odd_nodes_only: false }
    }

    /// A dealer that deals false values to the last member.
    #[must_use]
    pub const fn false_dealing() -> Self {
        Self { kind: Kind::Dealing, form: Form::Changed(1), to_odd_nodes_only: false }
    }

    /// A dealer that sends its dealings to some nodes only.
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

    /// The message with the lie in it; `None` if it is not a message of statements.
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

/// A statement and others that contradict it, at most as many as honest parties send in one message.
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

/// An item of this length that has a value which no node needs.
fn value(len: u32) -> Vec<u8> {
    let mut item = vec![3];
    item.extend_from_slice(&len.to_be_bytes());
    item.resize(item.len() + usize::try_from(len).unwrap_or(0), 0xee);
    item
}

/// Changes a body so that each receiver gets another one.
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
