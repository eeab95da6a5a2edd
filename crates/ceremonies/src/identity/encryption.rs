//! Keys that last for one ceremony, certified in it by their owners' identities.

use std::sync::Arc;

use theta_groups::{Group, Ristretto255};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::Encoded;

use crate::codec::{Reader, Writer};
use crate::plan::CeremonyPlan;
use crate::schnorr::{self, SIGNATURE_LEN, Signature};
use crate::sealed::Recipient;
use crate::statement::{Kind, Statement, StatementSlot, signed_message};

/// The slot in which a member announces its encryption key.
pub(crate) const ENCRYPTION_KEY: StatementSlot = StatementSlot::new(Kind::EncryptionKey, 0);

/// The encryption key that a party has announced, with its signature. A party that seals something repeats both, so
/// that the sealed values can be judged by the plan alone.
///
/// There is no proof of possession: a party that announces a key whose logarithm it does not know can neither open what
/// is sealed to it nor complain, and keystreams are bound to their recipient, so nothing for others is sealed under
/// that key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncryptionKey(Arc<Announcement>);

/// All dealings that repeat it share it.
#[derive(Debug, PartialEq, Eq)]
struct Announcement {
    party: PartyId,
    number: u32,
    key: Encoded<Ristretto255>,
    signature: Signature,
}

impl EncryptionKey {
    pub(crate) const ENCODED_LEN: usize = 32 + SIGNATURE_LEN;

    /// The key in a statement that is signed.
    pub(crate) fn of(statement: &Statement) -> Result<Self, Malformed> {
        let key = read_key(statement.body())?;
        let (party, number) = (statement.author(), statement.slot().number);
        Ok(Self(Arc::new(Announcement { party, number, key, signature: *statement.signature() })))
    }

    pub(crate) fn recipient(&self) -> Recipient<'_> {
        Recipient { party: self.0.party, key: &self.0.key }
    }

    /// Key and signature.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        Writer::onto(out).raw(self.0.key.bytes()).raw(&self.0.signature).finish();
    }

    /// Reads what [`EncryptionKey::encode_into`] wrote, for this key number of a party, and says whether it is the key
    /// `known`, whose signature was checked before. The signature of another key is not checked here.
    pub(crate) fn read(
        (party, number): (PartyId, u32),
        known: Option<&Self>,
        reader: &mut Reader<'_>,
    ) -> Result<(Self, bool), Malformed> {
        let (key, signature) = (reader.take(Ristretto255::ENCODED_LEN)?, reader.array::<SIGNATURE_LEN>()?);
        if let Some(Self(same)) = known
            && (same.party, same.number, same.key.bytes(), same.signature) == (party, number, key, signature)
        {
            return Ok((Self(Arc::clone(same)), true));
        }
        Ok((Self(Arc::new(Announcement { party, number, key: read_key(key)?, signature })), false))
    }

    /// Whether the party signed it in this ceremony.
    pub(crate) fn is_signed(&self, plan: &CeremonyPlan) -> bool {
        let Announcement { party, number, key, signature } = &*self.0;
        let slot = StatementSlot::new(Kind::EncryptionKey, *number);
        let message = signed_message(plan.id(), *party, slot, key.bytes());
        plan.member(*party).is_some_and(|member| schnorr::vartime_verify(member.verifying_key(), &message, signature))
    }
}

/// The body of the statement: one key that is not the neutral element.
pub(crate) fn read_key(body: &[u8]) -> Result<Encoded<Ristretto255>, Malformed> {
    Encoded::decode(body).map_err(|_| Malformed("not an encryption key"))
}
