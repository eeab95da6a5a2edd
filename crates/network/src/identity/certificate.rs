//! What a certificate says beside its key: its dates, and whether it speaks for itself.

use der::{
    AnyRef, Decode, Reader, SliceReader, Tag, Tagged,
    asn1::{GeneralizedTime, UtcTime},
};
use rustls::pki_types::CertificateDer;

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first second.
    pub from: u64,
    /// Its last second.
    pub until: u64,
}

/// The dates of RFC 5280, section 4.1, and whether issuer and subject are the same.
pub(super) fn read(certificate: &CertificateDer<'_>) -> Result<(Period, bool), der::Error> {
    SliceReader::new(certificate.as_ref())?.sequence(|outer| {
        let read = outer.sequence(|fields| {
            let first = AnyRef::decode(fields)?;
            // Version 1 has no field for its version: the serial number comes first.
            if first.tag() != Tag::Integer {
                AnyRef::decode(fields)?;
            }
            let _algorithm = AnyRef::decode(fields)?;
            let issuer = AnyRef::decode(fields)?;
            let period =
                fields.sequence(|dates| Ok::<_, der::Error>(Period { from: time(dates)?, until: time(dates)? }))?;
            let subject = AnyRef::decode(fields)?;
            fields.drain(fields.remaining_len())?;
            Ok::<_, der::Error>((period, issuer == subject))
        })?;
        outer.drain(outer.remaining_len())?;
        Ok(read)
    })
}

fn time<'a>(reader: &mut impl Reader<'a>) -> Result<u64, der::Error> {
    let time = AnyRef::decode(reader)?;
    if time.tag() == Tag::UtcTime {
        return Ok(time.decode_as::<UtcTime>()?.to_unix_duration().as_secs());
    }
    Ok(time.decode_as::<GeneralizedTime>()?.to_unix_duration().as_secs())
}
