//! Elements that keep their encoding.

use theta_groups::{DecodeError, Group};

/// A group element with its canonical encoding, which is computed or read once and hashed or sent many times.
///
/// The two always belong together: the encoding is either computed from the element, or is what the element was decoded
/// from. Decoding refuses all but the one canonical encoding of an element, so both ways give the same bytes, and the bytes
/// that arrived can be hashed for the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<G: Group> {
    element: G::Element,
    encoding: G::Encoding,
}

impl<G: Group> Encoded<G> {
    /// Encodes an element.
    #[must_use]
    pub fn new(element: G::Element) -> Self {
        Self { element, encoding: G::encode(&element) }
    }

    /// Encodes many elements, sharing the field inversions.
    #[must_use]
    pub fn batch(elements: &[G::Element]) -> Vec<Self> {
        let encodings = G::encode_batch(elements);
        elements.iter().zip(encodings).map(|(&element, encoding)| Self { element, encoding }).collect()
    }

    /// Reads an element other than the identity, as [`Group::decode`] does.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G::decode)
    }

    /// Reads an element whose membership in the subgroup is checked later, as [`Group::decode_unchecked_subgroup`] does.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    pub fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G::decode_unchecked_subgroup)
    }

    fn read(bytes: &[u8], decode: fn(&[u8]) -> Result<G::Element, DecodeError>) -> Result<Self, DecodeError> {
        let element = decode(bytes)?;
        let wrong_length = |_| DecodeError::Length { expected: G::ENCODED_LEN, got: bytes.len() };
        Ok(Self { element, encoding: G::Encoding::try_from(bytes).map_err(wrong_length)? })
    }

    /// The element.
    #[must_use]
    pub const fn element(&self) -> &G::Element {
        &self.element
    }

    /// Its canonical encoding.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.encoding.as_ref()
    }
}
