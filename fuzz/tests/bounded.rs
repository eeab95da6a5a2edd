//! The bodies of the targets about ledgers, over some thousand damaged copies of their seeds: what can be run without libFuzzer.
//!
//! `cargo test --test bounded` in this folder runs it; `THETA_FUZZ_ROUNDS` says how many copies of each seed.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

use theta_fuzz::{group, rng};

fn below(rng: &mut ChaCha20Rng, bound: usize) -> usize {
    usize::try_from(rng.next_u64() % u64::try_from(bound.max(1)).expect("short")).expect("short")
}

/// A copy of a seed in which something is damaged, cut out, doubled, or taken from another seed.
fn damaged(seeds: &[Vec<u8>], rng: &mut ChaCha20Rng) -> Vec<u8> {
    let mut bytes = seeds[below(rng, seeds.len())].clone();
    for _ in 0..1 + below(rng, 4) {
        let (from, len) = (below(rng, bytes.len()), 1 + below(rng, 40));
        let to = (from + len).min(bytes.len());
        match below(rng, 6) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let part = bytes[from..to].to_vec();
                bytes.splice(from..from, part);
            }
            2 => {
                let other = &seeds[below(rng, seeds.len())];
                let at = below(rng, other.len());
                let part = other[at..(at + len).min(other.len())].to_vec();
                bytes.splice(from..to, part);
            }
            3 => bytes.truncate(from),
            _ if bytes.is_empty() => {}
            4 => bytes[from] = [0, 1, 0x7f, 0x80, 0xff][below(rng, 5)],
            _ => bytes[from] ^= 1 << below(rng, 8),
        }
    }
    bytes
}

fn rounds() -> usize {
    std::env::var("THETA_FUZZ_ROUNDS").ok().map_or(2_000, |rounds| rounds.parse().expect("a number"))
}

/// Runs a body over its seeds as they are, and then over damaged ones.
fn run(seeds: &[Vec<u8>], body: impl Fn(&[u8])) {
    seeds.iter().for_each(|seed| body(seed));
    let mut rng = rng();
    for _ in 0..rounds() {
        body(&damaged(seeds, &mut rng));
    }
}

fn as_text(body: impl Fn(&str)) -> impl Fn(&[u8]) {
    move |bytes| body(&String::from_utf8_lossy(bytes))
}

#[test]
fn client_files() {
    assert!(group::client_seeds().iter().all(|seed| {
        let text = core::str::from_utf8(seed).expect("text");
        theta_client::ClientFile::parse(text, "some.client".as_ref()).is_ok()
    }));
    run(&group::client_seeds(), as_text(group::client_file));
}

#[test]
fn histories() {
    let mut seeds: Vec<_> = group::GROUPS.iter().map(group::Group::kept).collect();
    for (group, kept) in group::GROUPS.iter().zip(&seeds) {
        let (state, end) = theta_client::read_kept_ledger(kept, &group.genesis);
        assert_eq!((state.height(), end), (group.state().height(), kept.len()));
    }
    seeds.extend(group::entry_seeds());
    run(&seeds, |bytes| {
        group::kept_ledger(bytes);
        group::entries(bytes);
    });
}

#[test]
fn warrants() {
    run(&group::warrant_seeds(), group::warrants);
}

#[test]
fn foundings() {
    run(&group::founding_seeds(), group::foundings);
}

#[test]
fn member_changes() {
    run(&group::member_seeds(), group::member_changes);
}

#[test]
fn replica_messages() {
    run(&group::replica_seeds(), group::replica_messages);
}
