//! Evidence that a party lied in a ceremony, which anybody with the group file can check.

use bytes::Bytes;
use theta_rounds::{Evidence, Malformed, PartyId};

use super::certificate::QuorumCertificate;
use super::codec::{Reader, Writer};
use super::statement::Statement;

/// Signed statements that no honest party makes. The plan alone suffices to check them, offline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CeremonyEvidence {
    /// Two different statements in one slot.
    Equivocation(Statement, Statement),
    /// A statement that cannot be read.
    Malformed(Statement),
    /// A dealing that, as a complaint shows, is false for the complainer.
    FalseDealing {
        /// The dealing of the culprit.
        dealing: Statement,
        /// The complaint of any recipient.
        complaint: Statement,
    },
    /// A complaint about a dealing that is right.
    FalseComplaint {
        /// The dealing, whoever made it.
        dealing: Statement,
        /// The complaint of the culprit.
        complaint: Statement,
    },
    /// Released values that were not dealt to their author.
    FalseRelease {
        /// The dealing, whoever made it.
        dealing: Statement,
        /// The values that the culprit released.
        release: Statement,
    },
    /// A verification key that does not fit the decided dealings.
    FalseKey {
        /// The decision on the qualified dealings.
        decision: QuorumCertificate,
        /// Those dealings by rising dealer.
        dealings: Vec<Statement>,
        /// The key statement of the culprit.
        key: Statement,
    },
    /// A share of the proof of possession that does not fit the culprit's verification key.
    FalseProofOfPossession {
        /// The decision on the qualified dealings.
        decision: QuorumCertificate,
        /// Those dealings by rising dealer.
        dealings: Vec<Statement>,
        /// k true key statements, from which all keys follow.
        keys: Vec<Statement>,
        /// The share of the proof that the culprit gave.
        share: Statement,
    },
    /// A masked share that does not fit the request.
    FalseAnswer {
        /// The request of the owner of the lost share.
        request: Statement,
        /// The masks that it lists.
        masks: Vec<Statement>,
        /// The answer of the culprit.
        answer: Statement,
        /// The owner's disclosure, by which everybody can open the answer.
        disclosed: Vec<u8>,
    },
    /// A signature for another key than the certified one.
    FalseActivation {
        /// The certificate of the true key.
        certificate: QuorumCertificate,
        /// The signature of the culprit for another key.
        activation: Statement,
    },
}

impl CeremonyEvidence {
    /// The party that lied.
    #[must_use]
    pub const fn culprit(&self) -> PartyId {
        self.offending_statement().author()
    }

    /// The statement that offends: what the culprit signed.
    pub(super) const fn offending_statement(&self) -> &Statement {
        match self {
            Self::Equivocation(statement, _)
            | Self::Malformed(statement)
            | Self::FalseDealing { dealing: statement, .. }
            | Self::FalseComplaint { complaint: statement, .. }
            | Self::FalseRelease { release: statement, .. }
            | Self::FalseKey { key: statement, .. }
            | Self::FalseProofOfPossession { share: statement, .. }
            | Self::FalseAnswer { answer: statement, .. }
            | Self::FalseActivation { activation: statement, .. } => statement,
        }
    }

    /// A tag and the parts, each behind its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (tag, parts) = self.parts();
        parts.iter().fold(Writer::new(tag), |writer, part| writer.bytes(part)).finish()
    }

    /// The tag and the parts by themselves. Evidence of one ceremony has long parts in common, such as the dealings that were decided on.
    #[must_use]
    pub fn parts(&self) -> (u8, Vec<Vec<u8>>) {
        let statement = |statement: &Statement| {
            let mut bytes = Vec::new();
            statement.encode_into(&mut bytes);
            bytes
        };
        let list = |list: &[Statement]| {
            let mut bytes = Vec::new();
            list.iter().for_each(|statement| statement.encode_into(&mut bytes));
            bytes
        };
        match self {
            Self::Equivocation(first, second) => (1, vec![statement(first), statement(second)]),
            Self::Malformed(malformed) => (2, vec![statement(malformed)]),
            Self::FalseDealing { dealing, complaint } => (3, vec![statement(dealing), statement(complaint)]),
            Self::FalseComplaint { dealing, complaint } => (4, vec![statement(dealing), statement(complaint)]),
            Self::FalseRelease { dealing, release } => (5, vec![statement(dealing), statement(release)]),
            Self::FalseKey { decision, dealings, key } => (6, vec![decision.encode(), list(dealings), statement(key)]),
            Self::FalseProofOfPossession { decision, dealings, keys, share } => {
                (7, vec![decision.encode(), list(dealings), list(keys), statement(share)])
            }
            Self::FalseAnswer { request, masks, answer, disclosed } => {
                (9, vec![statement(request), list(masks), statement(answer), disclosed.clone()])
            }
            Self::FalseActivation { certificate, activation } => (8, vec![certificate.encode(), statement(activation)]),
        }
    }

    /// Reads what [`CeremonyEvidence::encode`] wrote. Whether it proves anything is for [`CeremonyEvidence::verify`].
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let parts = reader.all(Reader::bytes)?;
        Self::of_parts(tag, parts.into_iter().map(Bytes::copy_from_slice))
    }

    /// Evidence of these [parts](Self::parts), which it shares.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn of_parts(tag: u8, parts: impl IntoIterator<Item = Bytes>) -> Result<Self, Malformed> {
        let mut parts = parts.into_iter();
        let mut part = || parts.next().ok_or(Malformed("evidence lacks a part"));
        let certificate = |bytes: Bytes| QuorumCertificate::decode(&bytes);
        let evidence = match tag {
            1 => Self::Equivocation(statement(&part()?)?, statement(&part()?)?),
            2 => Self::Malformed(statement(&part()?)?),
            3 => Self::FalseDealing { dealing: statement(&part()?)?, complaint: statement(&part()?)? },
            4 => Self::FalseComplaint { dealing: statement(&part()?)?, complaint: statement(&part()?)? },
            5 => Self::FalseRelease { dealing: statement(&part()?)?, release: statement(&part()?)? },
            6 => Self::FalseKey {
                decision: certificate(part()?)?,
                dealings: statements(&part()?)?,
                key: statement(&part()?)?,
            },
            7 => Self::FalseProofOfPossession {
                decision: certificate(part()?)?,
                dealings: statements(&part()?)?,
                keys: statements(&part()?)?,
                share: statement(&part()?)?,
            },
            8 => Self::FalseActivation { certificate: certificate(part()?)?, activation: statement(&part()?)? },
            9 => Self::FalseAnswer {
                request: statement(&part()?)?,
                masks: statements(&part()?)?,
                answer: statement(&part()?)?,
                disclosed: part()?.to_vec(),
            },
            _ => return Err(Malformed("no such evidence")),
        };
        if parts.next().is_none() { Ok(evidence) } else { Err(Malformed("too many parts")) }
    }
}

fn statement(part: &Bytes) -> Result<Statement, Malformed> {
    let mut reader = Reader::new(part);
    let statement = Statement::read_in(part, &mut reader)?;
    Ok(reader.end(statement)?)
}

fn statements(part: &Bytes) -> Result<Vec<Statement>, Malformed> {
    Reader::new(part).all(|reader| Statement::read_in(part, reader))
}

impl core::fmt::Display for CeremonyEvidence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Equivocation(..) => "two different signed statements where one is due",
            Self::Malformed(_) => "a signed statement that cannot be read",
            Self::FalseDealing { .. } => "a dealing that is false for a recipient",
            Self::FalseComplaint { .. } => "a complaint about a dealing that is right",
            Self::FalseRelease { .. } => "values that were not dealt",
            Self::FalseKey { .. } => "a verification key that does not fit the dealings",
            Self::FalseProofOfPossession { .. } => "a false share of the proof of possession",
            Self::FalseAnswer { .. } => "a masked share that is not what was asked for",
            Self::FalseActivation { .. } => "a signature for another key than the certified one",
        })
    }
}

impl Evidence for CeremonyEvidence {
    fn name(&self) -> &'static str {
        match self {
            Self::Equivocation(..) => "equivocation",
            Self::Malformed(_) => "malformed_statement",
            Self::FalseDealing { .. } => "false_dealing",
            Self::FalseComplaint { .. } => "false_complaint",
            Self::FalseRelease { .. } => "false_release",
            Self::FalseKey { .. } => "false_key",
            Self::FalseProofOfPossession { .. } => "false_proof_of_possession",
            Self::FalseAnswer { .. } => "false_answer",
            Self::FalseActivation { .. } => "false_activation",
        }
    }
}
