//! What a liar does to its messages: the input says which message is changed and how, and the rest are honest, so that a change in a late round is met by
//! a party that has come so far.

use std::collections::BTreeMap;

/// How many kinds of changes there are.
const KINDS: u8 = 7;

/// The changes of one run, and what was sent in it.
pub struct Script<'a> {
    changes: Vec<Change<'a>>,
    sent: BTreeMap<(u16, u16), Vec<u8>>,
}

struct Change<'a> {
    round: u16,
    kind: u8,
    at: usize,
    bytes: &'a [u8],
}

impl<'a> Script<'a> {
    /// Each change has five bytes: its round, its kind, how many bytes of its own follow, and a place in the message in two. What is left over is ignored.
    pub fn read(mut input: &'a [u8]) -> Self {
        let mut changes = Vec::new();
        while let Some(([round, kind, len, high, low], rest)) = input.split_first_chunk() {
            let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*len)));
            let (round, at) = (u16::from(*round), usize::from(u16::from_be_bytes([*high, *low])));
            changes.push(Change { round, kind: *kind, at, bytes });
            input = rest;
        }
        Self { changes, sent: BTreeMap::new() }
    }

    /// Nothing is changed.
    pub fn honest() -> Self {
        Self::read(&[])
    }

    /// What the liar sends for what its machine sends to a party in a round; nothing, if the message is kept back.
    pub fn sent(&mut self, to: u16, round: u16, honest: &[u8]) -> Option<Vec<u8>> {
        self.sent.insert((to, round), honest.to_vec());
        let mut message = honest.to_vec();
        for change in self.changes.iter().filter(|change| change.round == round) {
            let (at, len) = (change.at % (message.len() + 1), message.len());
            match change.kind % KINDS {
                0 => message = change.bytes.to_vec(),
                1 => message.iter_mut().skip(at).zip(change.bytes).for_each(|(byte, other)| *byte = *other),
                2 => message.iter_mut().skip(at).zip(change.bytes).for_each(|(byte, other)| *byte ^= *other),
                3 => message.truncate(at),
                4 => message.extend_from_slice(change.bytes),
                // Another message that it has sent: an earlier one, or one to somebody else.
                5 => {
                    let others = self.sent.iter().filter(|((other, sent), _)| *sent < round || *other != to);
                    let others: Vec<&Vec<u8>> = others.map(|(_, bytes)| bytes).filter(|it| it.len() == len).collect();
                    if let Some(other) = others.get(change.at % others.len().max(1)) {
                        message.clone_from(other);
                    }
                }
                _ => return None,
            }
        }
        Some(message)
    }
}

/// One script for each of these rounds, the kinds of changes taking turns, after what the target reads first.
pub fn seeds(first: &[u8], rounds: impl IntoIterator<Item = u8>) -> Vec<Vec<u8>> {
    let own = [&[7; 32][..], &[0; 33], &[1], &[], &[9; 4], &[], &[]];
    let script = |(round, (kind, bytes)): (u8, (u8, &[u8]))| {
        let len = u8::try_from(bytes.len()).expect("short");
        [first, &[round, kind, len, 0, 40 * kind], bytes].concat()
    };
    let scripts = rounds.into_iter().zip((0..KINDS).zip(own).cycle()).map(script);
    [first.to_vec()].into_iter().chain(scripts).collect()
}
