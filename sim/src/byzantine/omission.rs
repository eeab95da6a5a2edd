//! A dealer that leaves a member out of its dealing.
//!
//! A missing place proves nothing, since the member's key may have come late. The most that such a dealer can achieve is
//! that a member ends without its share.

/// For the groups of keys: the bytes of an element and of a scalar.
const GROUPS: [(usize, usize); 7] = [(32, 32), (33, 32), (48, 32), (64, 32), (96, 32), (57, 57), (128, 32)];
/// The bytes of a place: a member's key in the ceremony, and its signature.
const PLACE: usize = 96;
/// The bytes between places and ciphertexts: R and a proof.
const SEAL: usize = 96;

/// The layout of a dealing's body.
struct Layout {
    /// The offset of each member's flag, and whether a place follows.
    flags: Vec<(usize, bool)>,
    /// The offset of the ciphertexts, and the length of each.
    sealed: usize,
    each: usize,
}

/// Reads `body` as a dealing for n members; `head` is the length of its commitments, `each` that of a ciphertext.
fn layout(body: &[u8], n: u16, head: usize, each: usize) -> Option<Layout> {
    let (mut at, mut flags) = (head, Vec::new());
    for _ in 0..n {
        let there = match body.get(at)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        flags.push((at, there));
        at += 1 + if there { PLACE } else { 0 };
    }
    let sealed = at.checked_add(SEAL)?;
    let places = flags.iter().filter(|(_, there)| *there).count();
    (sealed.checked_add(places.checked_mul(each)?)? == body.len()).then_some(Layout { flags, sealed, each })
}

/// The dealing without a place for the member at this position (from 0); `None` if there is none, or the body cannot be
/// read.
pub(super) fn leave_out(body: &[u8], (k, n): (u16, u16), position: u16) -> Option<Vec<u8>> {
    let k = usize::from(k);
    let layouts = GROUPS.into_iter().flat_map(|(element, scalar)| {
        // A dealing of a new key has k commitments and pairs; one of new shares has one commitment less, and single values.
        [(k * element, 2 * scalar), (k.saturating_sub(1) * element, scalar)]
    });
    let Layout { flags, sealed, each } = layouts.into_iter().find_map(|(head, each)| layout(body, n, head, each))?;
    let (at, there) = *flags.get(usize::from(position))?;
    if !there {
        return None;
    }
    let before = flags.iter().take(usize::from(position)).filter(|(_, there)| *there).count();
    let ciphertext = sealed + before * each;
    let mut left = body.get(..at)?.to_vec();
    left.push(0);
    left.extend_from_slice(body.get(at + 1 + PLACE..ciphertext)?);
    left.extend_from_slice(body.get(ciphertext + each..)?);
    Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_and_its_ciphertext_go() {
        // Three members, the second without a place; two commitments, pairs of 32 bytes.
        let mut body = vec![9; 64];
        body.extend([&[1][..], &[7; PLACE], &[0], &[1], &[8; PLACE], &[5; SEAL], &[3; 64], &[4; 64]].concat());
        let left = leave_out(&body, (2, 3), 2).unwrap();
        let expected = [&[9; 64][..], &[1], &[7; PLACE], &[0, 0], &[5; SEAL], &[3; 64]].concat();
        assert_eq!(left, expected);
        assert_eq!(leave_out(&body, (2, 3), 1), None);
        assert_eq!(leave_out(&body, (2, 3), 3), None);
        assert_eq!(leave_out(&body[1..], (2, 3), 0), None);
    }
}
