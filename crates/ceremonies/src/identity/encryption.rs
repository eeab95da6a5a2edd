//! Keys that last for one ceremony, certified in it by their owners' identities.

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
pub(crate) struct EncryptionKey {
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
        Ok(Self { party, number, key, signature: *statement.signature() })
    }

    pub(crate) const fn recipient(&self) -> Recipient<'_> {
        Recipient { party: self.party, key: &self.key }
    }

    /// Key and signature.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        Writer::onto(out).raw(self.key.bytes()).raw(&self.signature).finish();
    }

    /// Reads what [`EncryptionKey::encode_into`] wrote, for this key number of a party. The signature is not checked.
    pub(crate) fn read(party: PartyId, number: u32, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key = read_key(reader.take(Ristretto255::ENCODED_LEN)?)?;
        Ok(Self { party, number, key, signature: reader.array::<SIGNATURE_LEN>()? })
    }

    /// Whether the party signed it in this ceremony.
    pub(crate) fn is_signed(&self, plan: &CeremonyPlan) -> bool {
        let slot = StatementSlot::new(Kind::EncryptionKey, self.number);
        let message = signed_message(plan.id(), self.party, slot, self.key.bytes());
        plan.member(self.party)
            .is_some_and(|member| schnorr::vartime_verify(member.verifying_key(), &message, &self.signature))
    }
}

/// The body of the statement: one key that is not the neutral element.
pub(crate) fn read_key(body: &[u8]) -> Result<Encoded<Ristretto255>, Malformed> {
    Encoded::decode(body).map_err(|_| Malformed("not an encryption key"))
}
