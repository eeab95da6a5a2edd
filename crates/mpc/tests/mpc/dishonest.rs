//! MASCOT, where all parties but one may lie: whatever one of them sends, the honest ones have right tuples or none, and no share of s leaves
//! after a false R.
//!
//! As in `cheating`, what a liar sends when it is honest is recorded first, and then each message is changed.

mod minus;
mod set_ups;

use bytes::Bytes;
use theta_groups::{Group, P256, Scalar, Secret};
use theta_mpc::ecdsa::{Request, bind, generate, prepare_nonces, sign};
use theta_mpc::{BlackBox, Mascot, Misbehaviour, SemiOt, Stop, both};
use theta_names::{Epoch, ShareIndex};
use theta_rounds::simulator::{Adversary, Report, SimRng, Tamper};
use theta_rounds::{Abort, Offence, Slot};

use crate::cheating::{TUPLES, instead, prepare, recorded};
use crate::ecdsa::{Material, request, sign_in};
use crate::group::{GroupOf, Made, Recorder, Sent, party, same};

type B = Mascot<P256>;
type S = <P256 as Group>::Scalar;
type Message = (u16, u16, Vec<u8>);

/// Some ways in which a message is changed: a bit at each of these places, in thousandths of its length; all of it; another message.
fn changes(message: &Message, all: &[Message], places: &[usize]) -> Vec<Vec<u8>> {
    let (to, round, payload) = message;
    let last = payload.len() - 1;
    let flip = |place: &usize| {
        let mut bytes = payload.clone();
        bytes[last * place / 1000] ^= 1;
        bytes
    };
    let mut changed: Vec<Vec<u8>> = places.iter().map(flip).collect();
    changed.push(vec![0; payload.len()]);
    changed.push(vec![0xff; payload.len()]);
    let alike = |(_, _, other): &&Message| other.len() == payload.len() && other != payload;
    changed.extend(all.iter().filter(|(_, r, _)| r < round).filter(alike).map(|(_, _, it)| it.clone()).next_back());
    changed.extend(all.iter().filter(|(t, r, _)| r == round && t != to).find(alike).map(|(_, _, it)| it.clone()));
    changed.retain(|bytes| bytes != payload);
    changed.sort();
    changed.dedup();
    changed
}

/// What is true after any lie. Returns whether somebody noticed.
fn check(n: u16, liar: u16, is_last: bool, report: Report<Material<B>, Misbehaviour>) -> bool {
    report.check_blame().unwrap();
    let mut materials: Vec<Material<B>> = Vec::new();
    let mut honest = 0;
    for (id, party) in report.parties {
        let has = party.result.and_then(Result::ok);
        honest += usize::from(id.get() != liar && has.is_some());
        materials.extend(has);
    }
    if honest < usize::from(n) - 1 {
        assert!(honest == 0 || is_last, "some honest parties have tuples and others have not");
        return true;
    }
    // The liar's own machine may have stopped; without it nobody signs.
    if materials.len() < usize::from(n) {
        return true;
    }
    let public_key = *materials[0].0.public_key();
    for _ in 0..TUPLES {
        let report = sign_in(GroupOf::new(n, n - 1), &mut materials, request(b"after a lie"));
        let signature = report.agreed(|signature| *signature).expect("a tuple is false");
        assert!(signature.vartime_verifies(&public_key, &request(b"after a lie").digest));
    }
    false
}

fn every_lie(n: u16, liar: u16, places: &[usize]) {
    let all = recorded::<B>(n, n - 1, liar);
    let last = all.iter().map(|(_, round, _)| *round).max().unwrap();
    let (mut runs, mut noticed) = (0, 0);
    for message in &all {
        let (to, round, _) = message;
        for bytes in changes(message, &all, places) {
            let group = GroupOf::new(n, n - 1).liar(liar, instead(*to, *round, bytes));
            noticed += usize::from(check(n, liar, *round == last, prepare::<B>(group)));
            runs += 1;
        }
    }
    // Not noticed is what depends on a bit that the liar guessed.
    assert!(runs > 100 && noticed * 10 > runs * 9, "{noticed} of {runs} lies noticed");
}

/// Messages of 24 kB for each triple, of which an instance keeps 2 MiB at a time.
#[test]
fn a_thousand_products_of_mascot_are_made_at_once() {
    const COUNT: u64 = 1_000;
    let report = GroupOf::new(2, 1).run(same(|party| async move {
        let black_box = B::new(&party).await?;
        let numbers: Vec<S> = (1..=COUNT).map(S::from_u64).collect();
        let values = black_box.constants(&numbers);
        let masks = black_box.random(numbers.len()).await?;
        let products = black_box.multiply(&(&values + &masks), &(&values + &masks)).await?;
        both(black_box.open(&products), black_box.open(&masks)).await
    }));
    let (products, masks) = report.agreed(Clone::clone).unwrap();
    assert_eq!(products.len(), masks.len());
    let sums = masks.iter().zip(1..=COUNT).map(|(mask, number)| *mask + S::from_u64(number));
    assert_eq!(products, sums.map(|sum| sum * sum).collect::<Vec<_>>());
}

#[test]
fn every_lie_in_mascot_of_two() {
    every_lie(2, 1, &[300, 1000]);
}

#[test]
fn every_lie_in_mascot_of_three() {
    every_lie(3, 2, &[500]);
}

/// Replaces the group elements of a message that opens some, before its commitment. `None` if it is another message.
fn other_elements(payload: &[u8]) -> Option<Vec<u8>> {
    let (elements, commitment) = payload.split_at_checked(payload.len().checked_sub(32)?)?;
    let decoded: Option<Vec<_>> = elements.chunks(33).map(|code| P256::decode(code).ok()).collect();
    let others = decoded.filter(|all| !all.is_empty())?.into_iter().map(|it| P256::encode(&(it + P256::generator())));
    Some(others.flatten().chain(commitment.iter().copied()).collect())
}

/// Key, tuple and signature in one program.
fn all_of_it(group: GroupOf) -> Report<bool, Misbehaviour> {
    group.run(same(|party| async move {
        let black_box = B::new(&party).await?;
        let key = generate(&black_box, Epoch::FIRST).await?;
        let nonces = prepare_nonces(&black_box, Epoch::FIRST, 1).await?;
        let mut tuples = bind(&black_box, nonces, &key).await?;
        let tuple = tuples.pop().ok_or(Stop::Lost)?;
        let request = Request { tuple: tuple.id(), ..request(b"message") };
        let signature = sign(&black_box, &key, tuple, request).await?;
        Ok(signature.vartime_verifies(key.public_key(), &request.digest))
    }))
}

/// With a false R, the one s that signing shows would be a signature of another message. An honest party sends nothing after the check
/// of R, whether the liar says the same to all or not.
#[test]
fn no_share_of_s_leaves_after_a_false_r() {
    for n in [2, 3] {
        let sent = Sent::default();
        let report = all_of_it(GroupOf::new(n, n - 1).liar(1, Recorder(sent.clone())));
        assert!(report.agreed(|valid| *valid).unwrap());
        let all = sent.lock().unwrap().clone();
        let signing = all.iter().map(|(_, round, _)| *round).max().unwrap();
        let opening: Vec<u16> = all
            .iter()
            .filter(|(_, _, payload)| other_elements(payload).is_some())
            .map(|(_, round, _)| *round)
            .collect();
        // Those of the public key, and of R.
        let of_r = *opening.iter().max().unwrap();
        assert!(opening.iter().any(|round| *round < of_r) && of_r + 4 < signing);
        for victim in [None, Some(2), Some(n)] {
            let lie = Tamper(move |_: &mut SimRng, to: theta_rounds::PartyId, slot: Slot, payload: Bytes| {
                let lies = slot.number == of_r && victim.is_none_or(|victim| victim == to.get());
                let other = if lies { other_elements(&payload) } else { None };
                vec![(slot, other.map_or(payload, Bytes::from))]
            });
            let sent = Sent::default();
            let report = all_of_it(GroupOf::new(n, n - 1).liar(1, lie).liar(2, Recorder(sent.clone())));
            assert!(report.honest().all(|(_, party)| !matches!(party.result, Some(Ok(_)))));
            let reached = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
            // Opening, coins, commitments to sigma, sigma: four rounds, and no more.
            assert!(reached <= of_r + 3, "round {reached} after a false R in round {of_r} of {signing}");
        }
    }
}

/// Nonces and nothing else: a batch of masked products, then the elements.
fn nonces(group: GroupOf) -> Report<usize, Misbehaviour> {
    group.run(same(|party| async move {
        let black_box = B::new(&party).await?;
        Ok(prepare_nonces(&black_box, Epoch::FIRST, 1).await?.len())
    }))
}

/// After five rounds of set-up: the corrections of products, and the elements.
const CORRECTIONS: u16 = 5 + 2;
const ELEMENTS: u16 = 5 + 9 + 1;

/// A liar that uses another b for one bit of the other's a, in either of the two that are combined, has guessed that it is zero. If it is not, R is not a^-1 G, and
/// nothing is sent after the check.
#[test]
fn who_guesses_bits_of_a_nonce_loses_it_if_it_was_wrong() {
    for bit in [9, 300] {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..12 {
            let lie = || {
                Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
                    let mut bytes = payload.to_vec();
                    if slot.number == CORRECTIONS {
                        let place = &mut bytes[32 + 32 * bit..][..32];
                        let other = <S as Scalar>::decode(place).unwrap() + S::ONE;
                        place.copy_from_slice(&other.encode());
                    }
                    vec![(slot, bytes.into())]
                })
            };
            let sent = Sent::default();
            nonces(GroupOf::new(2, 1).seed(seed).liar(1, lie()).liar(2, Recorder(sent.clone())));
            let reached = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
            let report = nonces(GroupOf::new(2, 1).seed(seed).liar(1, lie()));
            if report.honest().all(|(_, party)| matches!(party.result, Some(Ok(1)))) {
                right += 1;
            } else {
                assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))));
                // Elements, coins, commitments to sigma, sigma.
                assert_eq!(reached, ELEMENTS + 3);
                wrong += 1;
            }
        }
        assert!(right > 1 && wrong > 1, "bit {bit}: {right} right, {wrong} wrong");
    }
}

/// Two parts of a program that need what makes random values get it one after the other.
#[test]
fn parts_that_run_at_once_share_what_makes_values() {
    let report = GroupOf::new(2, 1).run(same(|party| async move {
        let black_box = B::new(&party).await?;
        let x = black_box.random(1).await?;
        let (products, values) = both(black_box.multiply_by(&x, &x), black_box.random(9)).await?;
        // Here the first part has to wait until the second one has ended, and sends nothing meanwhile.
        let waits = async {
            let opened = black_box.open(&x).await?;
            Ok((opened, black_box.random(9).await?))
        };
        let ((_, others), again) = both(waits, black_box.random(9)).await?;
        black_box.open(&products.then(&values).then(&again).then(&others)).await
    }));
    let opened = report.agreed(Clone::clone).unwrap();
    assert_eq!(opened.len(), 28);
}

/// Changes a scalar of the message of a round.
fn adds_one(in_round: u16) -> impl Adversary + 'static {
    Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
        let mut bytes = payload.to_vec();
        if slot.number == in_round
            && let Some((first, _)) = bytes.split_at_mut_checked(32)
        {
            let scalar = S::decode(first).map_or(S::ONE, |scalar| scalar + S::ONE);
            first.copy_from_slice(&scalar.encode());
        }
        vec![(slot, bytes.into())]
    })
}

/// A false share of an opened value; after it the black box does nothing more, whatever its program tries.
#[test]
fn nothing_is_left_after_a_failed_check() {
    for n in [2, 3] {
        // Set-up and a batch of random values come before.
        let report = GroupOf::new(n, n - 1).liar(1, adds_one(5 + 9 + 1)).run(same(|party| async move {
            let black_box = B::new(&party).await?;
            let values = black_box.random(2).await?;
            let opened = black_box.open(&values).await;
            // The liar's machine is an honest one that sees nothing false.
            if opened.is_ok() {
                return Ok(false);
            }
            assert!(matches!(opened, Err(Stop::Cheated(_))));
            assert!(matches!(black_box.random(1).await, Err(Stop::Cheated(_))));
            assert!(matches!(black_box.multiply(&values, &values).await, Err(Stop::Cheated(_))));
            assert!(matches!(black_box.open_points(&values.part(0..1).convert()).await, Err(Stop::Cheated(_))));
            assert!(matches!(black_box.open(&values).await, Err(Stop::Cheated(_))));
            Ok(true)
        }));
        assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Ok(true)))), "{n} parties");
    }
}

/// Lies about an input of party 2: by a party that tells the dealer a false share, and by the dealer, to one party only.
#[test]
fn a_false_input_is_seen() {
    let run = |group: GroupOf| {
        group.run(same(|party| async move {
            let black_box = B::new(&party).await?;
            let own = (party.position() == 1).then(|| Secret::new(vec![S::from_u64(7)]));
            let value = black_box.input(ShareIndex::try_from(2).unwrap(), 1, own.as_ref()).await?;
            black_box.open(&value).await
        }))
    };
    // Set-up and a batch of random values; then the dealer is told.
    const TOLD: u16 = 5 + 9 + 1;
    // Coins; the sum's opening; and the difference.
    const DIFFERENCE: u16 = TOLD + 2 + 4 + 1;
    assert_eq!(run(GroupOf::new(3, 2)).agreed(Clone::clone).unwrap(), vec![S::from_u64(7)]);
    let fails = |report: Report<Vec<S>, Misbehaviour>| {
        report.honest().all(|(_, party)| !matches!(party.result, Some(Ok(_))))
            && report.honest().any(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_)))))
    };
    assert!(fails(run(GroupOf::new(3, 2).liar(1, adds_one(TOLD)))));
    let to_one = Tamper(|_: &mut SimRng, to: theta_rounds::PartyId, slot: Slot, payload: Bytes| {
        let other = slot.number == DIFFERENCE && to.get() == 3;
        vec![(slot, if other { S::from_u64(9).encode().to_vec().into() } else { payload })]
    });
    assert!(fails(run(GroupOf::new(3, 2).liar(2, to_one))));
}

/// A false share of s: no signature, and nobody can be named.
#[test]
fn with_a_false_share_of_s_there_is_no_signature() {
    let mut materials = crate::ecdsa::material::<B>(3, 2, 1, 5);
    let report = sign_in(GroupOf::new(3, 2).liar(3, adds_one(1)), &mut materials, request(b"message"));
    report.check_blame().unwrap();
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))));
}

/// Shares of another run have MACs under another key.
#[test]
fn shares_of_another_run_fail_the_next_check() {
    let materials = crate::ecdsa::material::<B>(2, 1, 1, 5);
    let places: Vec<_> = materials.into_iter().map(|material| std::sync::Mutex::new(Some(material))).collect();
    let report = GroupOf::new(2, 1).run(|number| {
        let (key, _) = places[usize::from(number) - 1].lock().unwrap().take().unwrap();
        Box::new(move |party| async move {
            let black_box = B::new(&party).await?;
            let nonces = prepare_nonces(&black_box, Epoch::FIRST, 1).await?;
            bind(&black_box, nonces, &key).await.map(|_| ())
        })
    });
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))));
}

/// A liar that keeps the messages of a round back from one honest party: the other one does not come further than the next round.
#[test]
fn nobody_shows_a_secret_before_all_have_received() {
    let all = recorded::<B>(3, 2, 1);
    let last = all.iter().map(|(_, round, _)| *round).max().unwrap();
    for from in (1..=last).step_by(5) {
        let keep_back = Tamper(
            move |_: &mut SimRng, to: theta_rounds::PartyId, slot: Slot, payload: Bytes| {
                if to.get() == 2 && slot.number >= from { Vec::new() } else { vec![(slot, payload)] }
            },
        );
        let sent = Sent::default();
        let group = GroupOf::new(3, 2).liar(1, keep_back).liar(3, Recorder(sent.clone()));
        let report = prepare::<B>(group);
        assert!(report.honest().all(|(_, party)| party.result.is_none()), "party 2 waits");
        let reached = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
        assert!(reached <= from + 1, "round {reached} without round {from}");
    }
}

/// What one party does to another in a message that is false by itself names it, at every honest party that receives it.
#[test]
fn who_sends_a_false_transfer_or_opening_is_named() {
    fn named<B: Made<Group = P256>>(in_round: u16, place: fn(&[u8]) -> usize, misbehaviour: Misbehaviour) {
        for n in [2, 3] {
            let lie = Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
                let mut bytes = payload.to_vec();
                if slot.number == in_round {
                    let place = place(&bytes);
                    bytes[place] ^= 1;
                }
                vec![(slot, bytes.into())]
            });
            let report = GroupOf::new(n, n - 1).liar(1, lie).run(same(|party| async move {
                let black_box = B::make(&party).await?;
                let values = black_box.random(2).await?;
                let product = black_box.multiply(&values, &values).await?;
                black_box.open(&product).await
            }));
            report.check_blame().unwrap();
            let blames = report.blames_of(party(1));
            let is_it = |offence: &Offence<Misbehaviour>| *offence == Offence::Protocol(misbehaviour);
            let count = blames.filter(|(_, blame)| is_it(&blame.offence)).count();
            assert_eq!(count, usize::from(n) - 1, "{}: round {in_round} of {n} parties", B::NAME);
        }
    }
    // The extension: after four and five rounds of set-up.
    named::<SemiOt<P256>>(5, |_| 40, Misbehaviour::FalseTransfer);
    named::<Mascot<P256>>(6, |_| 40, Misbehaviour::FalseTransfer);
    // Coins: of the random values, of the triples, and of the first opening; and its sigma.
    for in_round in [5 + 3, 5 + 9 + 3, 5 + 9 + 9 + 2, 5 + 9 + 9 + 4] {
        named::<Mascot<P256>>(in_round, |bytes| bytes.len() - 1, Misbehaviour::FalseOpening);
    }
}

/// A liar of two that changes what it sends in one round, counted from the one in which values are multiplied by the key's summands: it is named, and hears
/// nothing after `reached`, unless it has guessed digits of the honest summand. Both happen.
fn is_named_unless_it_guessed(lies: i16, reached: i16, change: fn(&mut Vec<u8>)) {
    /// Of COPEe's message for tuples and a mask: digits of three bits, the highest first.
    const LENGTH: usize = 86 * 32 * (TUPLES + 1);
    let all = recorded::<B>(2, 1, 1);
    let multiplies = all.iter().find(|(_, _, payload)| payload.len() == LENGTH).unwrap().1;
    let last = all.iter().map(|(_, round, _)| *round).max().unwrap();
    let (lies, until) = (multiplies.strict_add_signed(lies), multiplies.strict_add_signed(reached));
    let (mut right, mut named) = (0, 0);
    for seed in 0..12 {
        let lie = || {
            Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
                let mut bytes = payload.to_vec();
                if slot.number == lies {
                    change(&mut bytes);
                }
                vec![(slot, bytes.into())]
            })
        };
        let report = prepare::<B>(GroupOf::new(2, 1).seed(seed).liar(1, lie()));
        // The same once more, to see what the other one sends.
        let sent = Sent::default();
        prepare::<B>(GroupOf::new(2, 1).seed(seed).liar(1, lie()).liar(2, Recorder(sent.clone())));
        let is_it = |offence: &Offence<Misbehaviour>| *offence == Offence::Protocol(Misbehaviour::FalseTransfer);
        let blames = report.blames_of(party(1)).filter(|(_, blame)| is_it(&blame.offence)).count();
        let reached = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
        if blames == 0 {
            assert!(!check(2, 1, false, report) && reached == last);
            right += 1;
        } else {
            assert_eq!((blames, reached), (1, until));
            named += 1;
        }
    }
    assert!(right > 1 && named > 1, "{right} right, {named} named");
}

/// x of the key is a factor that holders have fixed, and lives on when a program has ended. A liar that multiplies another value by one digit of an honest
/// holder's summand guesses that digit, and is named *before* it sees anything of whether it was right: it cannot try for ever by falling silent.
#[test]
fn who_guesses_a_digit_of_the_key_is_named_before_it_knows() {
    // Multiplied; MACs; coins; what was multiplied: an honest holder says the same as ever until then, and nothing after it. The digit is the highest.
    is_named_unless_it_guessed(0, 3, |bytes| {
        let value = <S as Scalar>::decode(&bytes[..32]).unwrap() + <S as Scalar>::ONE;
        bytes[..32].copy_from_slice(value.encode().as_ref());
    });
}

/// The same of trees that are opened falsely over the bits of an honest summand: with a sum that the other one reads if its bits say so.
#[test]
fn who_opens_trees_falsely_is_named_before_anything_is_multiplied() {
    // The first of the two sums of the first tree's second level.
    is_named_unless_it_guessed(-1, -1, |bytes| bytes[0] ^= 1);
}
