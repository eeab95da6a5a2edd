//! Holders that lie, one lie at a time.

use bytes::Bytes;
use theta_protocols::ecdsa::{PREPARE, PROGRAM, SHARE, SIGNATURE};
use theta_rounds::Slot;
use theta_schemes::Suite;

use super::support::{Group, flip, tamper};

/// A false share makes no signature. It is not known whose it is, but the next presignatures are others', and the liar's come last from then on.
#[test]
fn a_false_share_is_left_behind() {
    for liar in 1..=3 {
        let group = Group::warm(Suite::EcdsaP256, 2, 3);
        for turn in 0..3_u8 {
            let report = group.run(&[turn], turn.into(), vec![(liar, flip(SHARE))]);
            group.check(&[turn], &report).unwrap_or_else(|error| panic!("liar {liar}, message {turn}: {error}"));
        }
    }
}

/// The share of another request: what a signer would send that was told something else. It fits nothing.
#[test]
fn a_share_of_another_message_is_of_no_use() {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    let first = group.coordinator(b"m");
    // The coordinator names a presignature twice, in one instance and with another share.
    let twice = tamper(|slot, payload| {
        let mut other = payload.to_vec();
        if slot.kind == SHARE
            && let Some(last) = other.last_mut()
        {
            *last ^= 1;
            let next = Slot { number: slot.number.wrapping_add(1), ..slot };
            return vec![(slot, payload), (next, other.into())];
        }
        vec![(slot, payload)]
    });
    let report = group.run(b"m", 3, vec![(first, twice)]);
    group.check(b"m", &report).unwrap();
}

#[test]
fn a_false_signature_names_its_sender() {
    let group = Group::new(Suite::EcdsaP256, 2, 5);
    let first = group.coordinator(b"m");
    // The coordinator of the program tells those who have no part in it.
    let report = group.run(b"m", 1, vec![(first, flip(SIGNATURE))]);
    group.check_safe(b"m", &report).unwrap();
    // The last byte is one of the list of signers, in this encoding: what is not malformed is no signature.
    let lie = tamper(|slot, payload: Bytes| {
        let mut payload = payload.to_vec();
        if slot.kind == SIGNATURE {
            payload[40] ^= 1;
        }
        vec![(slot, payload.into())]
    });
    let report = group.run(b"n", 1, vec![(group.coordinator(b"n"), lie)]);
    group.check_safe(b"n", &report).unwrap();
    assert_eq!(Group::offences(&report, group.coordinator(b"n")), ["invalid_signature"]);
}

/// A program out of turn, one of too few holders, and one without the coordinator itself.
#[test]
fn an_impossible_program_names_its_coordinator() {
    let group = Group::new(Suite::EcdsaP256, 2, 5);
    let first = group.coordinator(b"m");
    let lies: [fn(&mut Vec<u8>); 3] = [
        |payload| payload[1] = 1,
        |payload| {
            payload.truncate(payload.len() - 2);
            payload[3] -= 1;
        },
        |payload| {
            payload.truncate(4);
            payload.extend([0, 4, 0, 5, 0, 9]);
        },
    ];
    for lie in lies {
        let lie = tamper(move |slot, payload| {
            let mut payload = payload.to_vec();
            if slot.kind == PREPARE {
                lie(&mut payload);
            }
            vec![(slot, payload.into())]
        });
        let report = group.run(b"m", 1, vec![(first, lie)]);
        group.check(b"m", &report).unwrap();
        assert_eq!(Group::offences(&report, first), ["invalid_program"]);
    }
}

/// Every message of the program, falsified: nobody honest is blamed, and with 3t + 1 holders the others make a signature without the liar.
#[test]
fn a_liar_in_the_program_is_left_behind() {
    for turn in 0..3_u8 {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 4);
        group.ticks = 40;
        let liar = group.coordinator(&[turn]) % 4 + 1;
        let report = group.run(&[turn], turn.into(), vec![(liar, flip(PROGRAM))]);
        group.check(&[turn], &report).unwrap();
    }
}

/// Messages of no program, of far attempts and of no round.
#[test]
fn messages_of_no_program_cost_nothing() {
    let mut group = Group::cold(Suite::EcdsaP256, 2, 4);
    group.ticks = 40;
    let noise = tamper(|slot, payload| {
        if slot.kind < PROGRAM {
            return vec![(slot, payload)];
        }
        let mut all = vec![(slot, payload.clone())];
        for (number, attempt) in (0..200_u16).map(|i| (slot.number.wrapping_add(5_000 + i), i)) {
            let mut other = payload.to_vec();
            other[..2].copy_from_slice(&(attempt + 1).to_be_bytes());
            all.push((Slot { number, ..slot }, other.into()));
        }
        all
    });
    let liar = group.coordinator(b"m");
    group.check(b"m", &group.run(b"m", 1, vec![(liar, noise)])).unwrap();
}
