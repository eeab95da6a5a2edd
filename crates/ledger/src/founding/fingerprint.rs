//! The name of a founding, to be read aloud.

use core::{fmt, str::FromStr};

/// The digits, of five bits each: no I, L and O, which are read as 1, 1 and 0, and no U, which is taken for V and refused.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 256 bits take so many; four bits of the last one are 0.
const LEN: usize = 52;
/// Digits that are read in one breath.
const BREATH: usize = 4;

/// The hash of a founding: whoever has it can check the founding, and all that follows from it.
///
/// Text form: thirteen groups of four digits in the alphabet of Crockford's base32. All 256 bits of it: a member that puts a group
/// together chooses its own card, and could look for two foundings with one short fingerprint to show to two others; of n bits that
/// takes it 2^(n/2) tries. It is read aloud once in a group's life. Digits, and not words: they are the same in every language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(LEN + LEN / BREATH);
        let (mut held, mut bits) = (0_u16, 0_u32);
        let mut written = 0_usize;
        // Four bits of nothing fill the last digit.
        for byte in self.0.iter().copied().chain([0]) {
            held = (held << 8) | u16::from(byte);
            bits += 8;
            while bits >= 5 && written < LEN {
                bits -= 5;
                let digit = usize::from((held >> bits) & 31);
                if written > 0 && written.is_multiple_of(BREATH) {
                    text.push('-');
                }
                text.push(DIGITS.get(digit).map_or('?', |digit| char::from(*digit)));
                written += 1;
            }
            held &= (1 << bits) - 1;
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// A character that is no digit.
    #[error("{0:?} is not in fingerprints: they have digits and letters, but for I, L, O and U")]
    Digit(char),
    /// Too many or too few digits.
    #[error("a fingerprint has {groups} groups of {BREATH}, which is {LEN} digits and letters, not {0}", groups = LEN / BREATH)]
    Length(usize),
    /// The last digit has bits that no fingerprint has.
    #[error("no fingerprint ends so: its last digit is 0 or G")]
    End,
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Capital or small; spaces and hyphens wherever they are, also where a line is broken; O is 0, and I and L are 1.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let mut hash = [0; 32];
        let mut bytes = hash.iter_mut();
        let (mut held, mut bits, mut len) = (0_u16, 0_u32, 0_usize);
        for character in text.chars().filter(|character| !character.is_whitespace() && *character != '-') {
            held = (held << 5) | value(character).ok_or(FingerprintError::Digit(character))?;
            bits += 5;
            len = len.saturating_add(1);
            if bits >= 8 {
                bits -= 8;
                let [_, byte] = (held >> bits).to_be_bytes();
                if let Some(place) = bytes.next() {
                    *place = byte;
                }
                held &= (1 << bits) - 1;
            }
        }
        match (len, held) {
            (LEN, 0) => Ok(Self(hash)),
            (LEN, _) => Err(FingerprintError::End),
            (len, _) => Err(FingerprintError::Length(len)),
        }
    }
}

fn value(character: char) -> Option<u16> {
    let digit = match character.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    let place = DIGITS.iter().position(|known| char::from(*known) == digit)?;
    u16::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_however_it_was_said() {
        let print = Fingerprint(core::array::from_fn(|at| u8::try_from(at * 7 + 3).unwrap()));
        let text = print.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse(), Ok(print));
        assert_eq!(text.to_lowercase().replace('-', " ").parse(), Ok(print));
        assert_eq!(text.replace('0', "o").replace('1', "L").replace('-', "").parse(), Ok(print));
        assert_eq!(Fingerprint([0xFF; 32]).to_string(), format!("{}ZZZG", "ZZZZ-".repeat(12)));
        assert_eq!(Fingerprint([0; 32]).to_string().parse(), Ok(Fingerprint([0; 32])));
    }

    #[test]
    fn every_bit_is_in_it() {
        let zero = Fingerprint([0; 32]).to_string();
        for bit in 0..256 {
            let mut hash = [0; 32];
            hash[bit / 8] = 1 << (bit % 8);
            let text = Fingerprint(hash).to_string();
            assert_ne!(text, zero);
            assert_eq!(text.parse(), Ok(Fingerprint(hash)));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let good = Fingerprint([7; 32]).to_string();
        assert_eq!("".parse::<Fingerprint>(), Err(FingerprintError::Length(0)));
        assert_eq!(good[1..].parse::<Fingerprint>(), Err(FingerprintError::Length(51)));
        assert_eq!(format!("{good}0").parse::<Fingerprint>(), Err(FingerprintError::Length(53)));
        assert_eq!("0".repeat(100_000).parse::<Fingerprint>(), Err(FingerprintError::Length(100_000)));
        assert_eq!(good.replacen('0', "u", 1).parse::<Fingerprint>(), Err(FingerprintError::Digit('u')));
        assert_eq!(format!("{}1", &good[..63]).parse::<Fingerprint>(), Err(FingerprintError::End));
    }
}
