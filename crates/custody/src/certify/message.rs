//! The messages of certifiers: the promises that a node knows for a slot.

use theta_rounds::Malformed;

use super::promise::{Promise, Subject};
use crate::codec::{Reader, Writer};

const FORMAT: u8 = 1;

/// The promises for one slot that a node knows, its own among them if it has made one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether the receiver is to answer with what it knows.
    pub(super) asks: bool,
    pub(super) subject: Subject,
    pub(super) promises: Vec<Promise>,
}

impl Known {
    pub(super) fn encode(&self) -> Vec<u8> {
        let writer = self.subject.write(Writer::new(FORMAT).flag(self.asks));
        let writer = writer.u16(u16::try_from(self.promises.len()).unwrap_or(u16::MAX));
        self.promises.iter().take(usize::from(u16::MAX)).fold(writer, |writer, promise| promise.write(writer)).finish()
    }

    /// Reads a message with at most `most` promises.
    pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("promises in another format"));
        }
        let asks = reader.flag()?;
        let subject = Subject::read(&mut reader)?;
        let count = usize::from(reader.u16()?);
        // Checked before anything is allocated for the promises.
        if count > most {
            return Err(Malformed("too many promises for one slot"));
        }
        let promises = (0..count).map(|_| Promise::read(&mut reader)).collect::<Result<_, _>>()?;
        Ok(reader.end(Self { asks, subject, promises })?)
    }
}

#[cfg(test)]
mod tests {
    use theta_names::NodeId;
    use theta_statements::Digest;

    use super::*;

    const PROMISE_LEN: usize = 2 + 32 + 64;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let subject = Subject { key: "chain".to_owned(), slot: 7, rule: "heights".to_owned() };
        let promise =
            |node| Promise { node: NodeId::try_from(node).unwrap(), digest: Digest([3; 32]), signature: [9; 64] };
        let known = Known { asks: true, subject, promises: vec![promise(1), promise(2)] };
        let bytes = known.encode();
        assert_eq!(bytes.len(), 2 + 6 + 8 + 8 + 2 + 2 * PROMISE_LEN);
        assert_eq!(Known::decode(&bytes, 2), Ok(known));
        assert!(Known::decode(&bytes, 1).is_err(), "too many");
        for cut in 0..bytes.len() {
            assert!(Known::decode(&bytes[..cut], 2).is_err(), "cut to {cut}");
        }
        for (at, value) in [(0, 2), (1, 2), (2, 200), (24, 9), (26, 0)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let read = Known::decode(&bytes, 2);
            // Byte 26 is the high byte of a node's number, which is 1.
            assert!(read.is_err() || at == 26, "{at}");
        }
        assert!(Known::decode(&[bytes.as_slice(), &[0]].concat(), 2).is_err(), "something behind it");
    }
}
