//! Signatures as most other software has them: `SEQUENCE { r INTEGER, s INTEGER }` in DER (RFC 3279, section 2.2.3).

use der::asn1::UintRef;
use der::{Encode as _, Reader as _, SliceReader, SliceWriter};

use super::SIGNATURE_LEN;

/// The longest encoding in bytes: two numbers of 33 bytes, as a leading one bit would be a sign.
const LONGEST: usize = 72;

/// A signature of r and s in DER: 8 to 72 bytes. `None` if it is not as long as one.
#[must_use]
pub fn to_der(signature: &[u8]) -> Option<Vec<u8>> {
    let signature: &[u8; SIGNATURE_LEN] = signature.try_into().ok()?;
    let (r, s) = signature.split_at(SIGNATURE_LEN / 2);
    encode([r, s]).ok()
}

fn encode(numbers: [&[u8]; 2]) -> der::Result<Vec<u8>> {
    let [r, s] = [UintRef::new(numbers[0])?, UintRef::new(numbers[1])?];
    let len = (r.encoded_len()? + s.encoded_len()?)?;
    let mut buffer = [0; LONGEST];
    let mut writer = SliceWriter::new(&mut buffer);
    writer.sequence(len, |writer| r.encode(writer).and_then(|()| s.encode(writer)))?;
    Ok(writer.finish()?.to_vec())
}

/// r and s of a signature in DER, which must be the only encoding of them: no BER, no leading zeros, nothing behind. `None` if it is
/// not, or if a number has more than 32 bytes. Whether r and s are in their range is not looked at; verification does.
#[must_use]
pub fn from_der(encoded: &[u8]) -> Option<[u8; SIGNATURE_LEN]> {
    let numbers = || -> der::Result<[&[u8]; 2]> {
        let mut reader = SliceReader::new(encoded)?;
        let numbers = reader.sequence(|reader| {
            Ok::<_, der::Error>([
                reader.decode::<UintRef<'_>>()?.as_bytes(),
                reader.decode::<UintRef<'_>>()?.as_bytes(),
            ])
        })?;
        reader.finish()?;
        Ok(numbers)
    };
    let mut signature = [0; SIGNATURE_LEN];
    for (place, number) in signature.chunks_exact_mut(SIGNATURE_LEN / 2).zip(numbers().ok()?) {
        let zeros = place.len().checked_sub(number.len())?;
        place.get_mut(zeros..)?.copy_from_slice(number);
    }
    Some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(r: &[u8], s: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature[32 - r.len()..32].copy_from_slice(r);
        signature[64 - s.len()..].copy_from_slice(s);
        signature
    }

    #[test]
    fn encodings_are_minimal_and_the_only_ones() {
        for (signature, der) in [
            (raw(&[1], &[0x80]), vec![0x30, 7, 2, 1, 1, 2, 2, 0, 0x80]),
            (raw(&[0x7f, 0], &[0]), vec![0x30, 7, 2, 2, 0x7f, 0, 2, 1, 0]),
            (raw(&[0xff; 32], &[0x7f; 32]), [&[0x30, 69, 2, 33, 0][..], &[0xff; 32], &[2, 32], &[0x7f; 32]].concat()),
        ] {
            assert_eq!(to_der(&signature), Some(der.clone()));
            assert_eq!(from_der(&der), Some(signature));
        }
        assert_eq!(to_der(&raw(&[0xff; 32], &[0xff; 32])).unwrap().len(), LONGEST);
        assert_eq!((to_der(&[0; 63]), to_der(&[0; 65]), to_der(&[])), (None, None, None));
    }

    #[test]
    fn other_encodings_are_refused() {
        for bad in [
            &[0x30, 8, 2, 2, 0, 1, 2, 2, 0, 0x80][..], // a leading zero
            &[0x30, 6, 2, 1, 1, 2, 1, 0x80],           // a negative number
            &[0x30, 0x81, 6, 2, 1, 1, 2, 1, 1],        // a length in more bytes than it takes
            &[0x30, 0x80, 2, 1, 1, 2, 1, 1, 0, 0],     // BER's indefinite length
            &[0x30, 6, 2, 1, 1, 2, 1, 1, 0],           // something behind
            &[0x30, 9, 2, 1, 1, 2, 1, 1, 2, 1, 1],     // a third number
            &[0x30, 3, 2, 1, 1],                       // one number
            &[0x30, 5, 2, 0, 2, 1, 1],                 // an empty number
            &[0x31, 6, 2, 1, 1, 2, 1, 1],              // a set
            &[],
        ] {
            assert_eq!(from_der(bad), None, "{bad:02x?}");
        }
        let long = [&[0x30, 38, 2, 33, 1][..], &[0; 32], &[2, 1, 1]].concat();
        assert_eq!(from_der(&long), None, "a number of 33 bytes");
    }
}
