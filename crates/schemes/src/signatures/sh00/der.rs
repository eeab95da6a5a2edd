//! The public key as other software reads it.

use theta_groups::modular::Integer;

/// DER of a `SubjectPublicKeyInfo` (RFC 5280, section 4.1) with an `RSAPublicKey` (RFC 8017, appendix A.1.1).
pub(super) fn public_key_info(modulus: &Integer, exponent: u64) -> Vec<u8> {
    /// `rsaEncryption` with its NULL parameters.
    const ALGORITHM: [u8; 15] =
        [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    let key = element(0x30, &[integer(modulus), integer(&Integer::from_u64(exponent))].concat());
    // A bit string begins with the number of unused bits.
    let key = element(0x03, &[&[0], &key[..]].concat());
    element(0x30, &[&ALGORITHM[..], &key].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len().to_be_bytes();
    let significant: Vec<u8> = len.into_iter().skip_while(|byte| *byte == 0).collect();
    let header = match (significant.as_slice(), u8::try_from(significant.len())) {
        ([], _) => vec![tag, 0],
        ([short], _) if *short < 0x80 => vec![tag, *short],
        // A length has at most eight bytes.
        (bytes, count) => [&[tag, 0x80 | count.unwrap_or(8)], bytes].concat(),
    };
    [header, content.to_vec()].concat()
}

/// Positive, so the first bit is zero.
fn integer(value: &Integer) -> Vec<u8> {
    let len = usize::try_from(value.bits() / 8 + 1).unwrap_or(0);
    element(0x02, &value.to_be_bytes(len).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        assert_eq!(element(4, &[]), [4, 0]);
        assert_eq!(element(4, &[9; 127])[..2], [4, 127]);
        assert_eq!(element(4, &[9; 128])[..3], [4, 0x81, 128]);
        assert_eq!(element(4, &[9; 256])[..4], [4, 0x82, 1, 0]);
        assert_eq!(integer(&Integer::from_u64(128)), [2, 2, 0, 128]);
        assert_eq!(integer(&Integer::from_u64(127)), [2, 1, 127]);
        assert_eq!(integer(&Integer::from_u64(65_537)), [2, 3, 1, 0, 1]);
    }
}
