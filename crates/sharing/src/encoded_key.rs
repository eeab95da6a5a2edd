//! A shared key and its shares as bytes, for code that handles keys of all groups alike.

use core::fmt;

use theta_groups::Secret;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::{ShareIndex, Threshold};

/// All that is public about a shared key, in the canonical encodings of its group. This type checks neither that the parts are
/// elements nor that they belong together, because that needs the group and the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedKey {
    /// k and n.
    pub threshold: Threshold,
    /// The public key h.
    pub public_key: Vec<u8>,
    /// The verification keys h_1 to h_n, each as long as the public key.
    pub verification_keys: Vec<Vec<u8>>,
    /// The proof of possession, for schemes that have one.
    pub proof_of_possession: Option<Vec<u8>>,
}

impl EncodedKey {
    /// The verification key of a party; `None` if the index is above n.
    #[must_use]
    pub fn verification_key(&self, index: ShareIndex) -> Option<&[u8]> {
        self.verification_keys.get(index.position()).map(Vec::as_slice)
    }

    /// k (2), n (2), length of an element (2), public key, verification keys; then 0, or 1, the length (4) and the proof of
    /// possession.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let len = u16::try_from(self.public_key.len()).unwrap_or(u16::MAX);
        let writer = Writer::default().u16(self.threshold.k()).u16(self.threshold.n()).u16(len).raw(&self.public_key);
        let writer = self.verification_keys.iter().fold(writer, |writer, key| writer.raw(key));
        writer.option(self.proof_of_possession.as_deref(), Writer::bytes).finish()
    }

    /// Reads what [`EncodedKey::encode`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`] with what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (k, n, len) = (reader.u16()?, reader.u16()?, usize::from(reader.u16()?));
        let threshold = Threshold::new(k, n).map_err(|_| DecodeError::Field("a threshold"))?;
        if len == 0 {
            // With elements of no bytes, a short input would become n elements.
            return Err(DecodeError::Field("the length of an element"));
        }
        let public_key = reader.take(len)?.to_vec();
        let verification_keys = (0..n).map(|_| reader.take(len).map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
        let proof_of_possession = reader.option(|reader| reader.bytes().map(<[u8]>::to_vec))?;
        reader.end(Self { threshold, public_key, verification_keys, proof_of_possession })
    }
}

/// One party's share of a key, in the canonical encoding of its group's scalars.
pub struct EncodedShare {
    /// Whose share it is.
    pub index: ShareIndex,
    /// x_i.
    pub secret: Secret<Vec<u8>>,
}

impl fmt::Debug for EncodedShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedShare({}, <redacted>)", self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let mut key = EncodedKey {
            threshold: Threshold::new(2, 3).unwrap(),
            public_key: vec![7, 8],
            verification_keys: vec![vec![1, 2], vec![3, 4], vec![5, 6]],
            proof_of_possession: None,
        };
        assert_eq!(key.encode(), [0, 2, 0, 3, 0, 2, 7, 8, 1, 2, 3, 4, 5, 6, 0]);
        assert_eq!(EncodedKey::decode(&key.encode()), Ok(key.clone()));
        key.proof_of_possession = Some(vec![9]);
        assert_eq!(key.encode()[14..], [1, 0, 0, 0, 1, 9]);
        assert_eq!(EncodedKey::decode(&key.encode()), Ok(key.clone()));
        for len in 0..key.encode().len() {
            assert!(EncodedKey::decode(&key.encode()[..len]).is_err(), "{len}");
        }
        assert_eq!(EncodedKey::decode(&[&key.encode()[..], &[0]].concat()), Err(DecodeError::Trailing));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(EncodedKey::decode(&[0, 3, 0, 2, 0, 1, 1, 1, 1, 0]), Err(DecodeError::Field("a threshold")));
        let empty = [0, 1, 0xff, 0xff, 0, 0, 0];
        assert_eq!(EncodedKey::decode(&empty), Err(DecodeError::Field("the length of an element")));
        assert_eq!(EncodedKey::decode(&[0, 1, 0xff, 0xff, 0xff, 0xff, 1]), Err(DecodeError::Truncated));
    }
}
