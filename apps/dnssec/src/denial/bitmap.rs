//! Maps of types, as NSEC and NSEC3 have them (RFC 4034, section 4.1.2; RFC 5155, section 3.2.1).

use std::collections::{BTreeMap, BTreeSet};

use domain::base::iana::Rtype;

/// The map of types; none are an empty one.
pub(crate) fn write(types: &BTreeSet<u16>) -> Vec<u8> {
    let mut windows: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for kind in types {
        let [window, low] = kind.to_be_bytes();
        let (map, place) = (windows.entry(window).or_default(), usize::from(low / 8));
        map.resize(map.len().max(place.saturating_add(1)), 0);
        map.iter_mut().skip(place).take(1).for_each(|byte| *byte |= 0x80 >> (low % 8));
    }
    windows
        .iter()
        .flat_map(|(window, map)| [&[*window, u8::try_from(map.len()).unwrap_or(32)], &map[..]].concat())
        .collect()
}

/// The types of a map as it has to be written: each window once and in order, and no zeros after its last type (RFC 4034, section 4.1.2). Resolvers that meet
/// another one may stop at the first window with its number, and so find that a type is not there which is.
pub(crate) fn read(mut bytes: &[u8]) -> Option<BTreeSet<u16>> {
    let mut types = BTreeSet::new();
    let mut last = None;
    while let Some((head, rest)) = bytes.split_first_chunk::<2>() {
        let [window, length] = *head;
        let (map, rest) = rest.split_at_checked(usize::from(length)).filter(|_| (1..=32).contains(&length))?;
        if map.last() == Some(&0) || last.is_some_and(|last| window <= last) {
            return None;
        }
        last = Some(window);
        for (place, byte) in (0_u16..).zip(map) {
            let set = (0_u16..8).filter(|bit| byte & (0x80 >> bit) != 0);
            types.extend(set.map(|bit| u16::from(window) * 256 + place * 8 + bit));
        }
        bytes = rest;
    }
    bytes.is_empty().then_some(types)
}

/// So many types are shown.
const MOST_SHOWN: usize = 10;

/// As zone files write it, with a space before each type. There may be tens of thousands: then it is those that another one has not, and how many
/// others there are.
pub(crate) fn shown(types: &BTreeSet<u16>, other: &BTreeSet<u16>) -> String {
    let differs = |kind: &&u16| types.len() <= MOST_SHOWN || !other.contains(kind);
    let shown: Vec<String> =
        types.iter().filter(differs).take(MOST_SHOWN).map(|kind| format!(" {}", Rtype::from_int(*kind))).collect();
    let more = types.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} other types") } else { String::new() };
    shown.concat() + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 4034, section 4.3: A, MX, RRSIG, NSEC and TYPE1234.
    #[test]
    fn the_map_of_rfc_4034_is_written_and_read() {
        let types = BTreeSet::from([1, 15, 46, 47, 1_234]);
        let map = hex::decode("0006400100000003041b000000000000000000000000000000000000000000000000000020").unwrap();
        assert_eq!(write(&types), map);
        assert_eq!(read(&map), Some(types));
        assert_eq!((write(&BTreeSet::new()), read(&[])), (Vec::new(), Some(BTreeSet::new())));
        let twice = [0, 1, 0x40, 0, 1, 0x01];
        for bytes in [&[0][..], &[0, 0], &[0, 2, 1], &[0, 33], &[0, 1, 0], &[0, 2, 1, 0], &[1, 1, 1, 0, 1, 1], &twice] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }
}
