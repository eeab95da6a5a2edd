//! How a program's message travels: the program's number, the slot, the payload. Whom it is from says the connection.

use bytes::{Buf, Bytes};
use theta_rounds::Slot;

/// The length of what precedes a payload.
const HEADER: usize = 8;

/// Puts a payload into one message.
pub(super) fn seal(program: u32, slot: Slot, payload: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&program.to_be_bytes());
    bytes.extend_from_slice(&slot.kind.to_be_bytes());
    bytes.extend_from_slice(&slot.number.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes.into()
}

/// The program's number, the slot and the payload; `None` if it is too short.
pub(super) fn open(mut bytes: Bytes) -> Option<(u32, Slot, Bytes)> {
    let program = bytes.try_get_u32().ok()?;
    let slot = Slot { kind: bytes.try_get_u16().ok()?, number: bytes.try_get_u16().ok()? };
    Some((program, slot, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened() {
        let slot = Slot { kind: 1, number: 513 };
        let sealed = seal(70_000, slot, b"share");
        assert_eq!(sealed.len(), HEADER + 5);
        assert_eq!(open(sealed.clone()), Some((70_000, slot, Bytes::from_static(b"share"))));
        assert_eq!(open(sealed.slice(..7)), None);
        assert_eq!(open(seal(0, slot, b"")), Some((0, slot, Bytes::new())));
    }
}
