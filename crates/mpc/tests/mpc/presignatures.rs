//! Presignatures: any of their signers' sets sign, and signers that believe different things show nothing.

use std::collections::BTreeSet;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use theta_groups::{FixedBase, Group, P256, Scalar as _, Secp256k1, Secret};
use theta_mpc::ecdsa::{
    Blinded, Curve, Message, Presignature, Presigned, Presigning, SetUps, Signature, presign, presign_dishonest,
    presign_passive, presign_semi_ot,
};
use theta_mpc::{Party, Stop};
use theta_names::{Epoch, ShareIndex};
use theta_rounds::Abort;
use theta_rounds::simulator::Report;
use theta_sharing::{Threshold, split};

use crate::group::GroupOf;

type Ran<G> = Report<Presigned<G>, theta_mpc::Misbehaviour>;

/// A key and its shares, t of which tell nothing.
struct Dealt<G: Group> {
    public_key: G::Element,
    shares: Vec<(ShareIndex, G::Scalar)>,
    t: u16,
}

/// The black box of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shamir,
    MaliciousShamir,
    SemiOt,
    Mascot,
}

fn deal<G: Group>(n: u16, t: u16) -> Dealt<G> {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let x = Secret::new(G::Scalar::random(&mut rng));
    let threshold = Threshold::new(t + 1, n).unwrap();
    let shares = threshold
        .indices()
        .zip(split(&x, threshold, &mut rng))
        .map(|(index, share)| (index, *share.expose()))
        .collect();
    Dealt { public_key: G::mul_base(x.expose()), shares, t }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn message(text: &[u8]) -> Message {
    Message { digest: digest(text), session: digest(b"session") }
}

impl<G: Curve> Dealt<G> {
    /// The signature that these shares are, if they are all.
    fn combined(
        &self,
        element: &G::Element,
        text: &[u8],
        shares: impl IntoIterator<Item = G::Scalar>,
    ) -> Option<Signature<G>> {
        let blinded = Blinded::vartime_of(&self.public_key, element, &message(text)).unwrap();
        blinded.vartime_combine(&FixedBase::new(self.public_key), shares)
    }

    /// What the program does among these of the holders, given by place.
    fn presign(&self, places: &[usize], count: usize, text: Option<&[u8]>) -> Ran<G> {
        self.presign_each(places, count, |_| text.map(digest))
    }

    /// The same where all holders but one may cheat; `share` says with what share each takes part.
    fn presign_dishonest(
        &self,
        places: &[usize],
        text: Option<&[u8]>,
        share: impl Fn(u16, G::Scalar) -> G::Scalar,
    ) -> Ran<G> {
        self.presign_dishonest_owned(places, text, share, |_| None)
    }

    /// The same, with whom each believes to be the owner of all.
    fn presign_dishonest_owned(
        &self,
        places: &[usize],
        text: Option<&[u8]>,
        share: impl Fn(u16, G::Scalar) -> G::Scalar,
        owner: impl Fn(u16) -> Option<ShareIndex>,
    ) -> Ran<G> {
        let holders: Vec<ShareIndex> = places.iter().map(|place| self.shares[*place].0).collect();
        let group = GroupOf::new(u16::try_from(places.len()).unwrap(), self.t);
        group.run(|number| {
            let (share, owner) = (share(number, self.shares[places[usize::from(number) - 1]].1), owner(number));
            let (holders, public_key, digest) = (holders.clone(), self.public_key, text.map(digest));
            Box::new(move |party: Party| async move {
                let share = Secret::new(share);
                let (epoch, session, count) = (Epoch::FIRST, [9; 32], 2);
                let setting =
                    Presigning { holders, epoch, public_key, share, points: Vec::new(), session, count, digest, owner };
                presign_dishonest::<G>(party, setting, &SetUps::default()).await
            })
        })
    }

    /// What holders do each of which believes in a kind of the program, and takes part with a share.
    fn presign_as(
        &self,
        places: &[usize],
        kind: impl Fn(u16) -> Kind,
        share: impl Fn(u16, G::Scalar) -> G::Scalar,
    ) -> Ran<G> {
        let holders: Vec<ShareIndex> = places.iter().map(|place| self.shares[*place].0).collect();
        let group = GroupOf::new(u16::try_from(places.len()).unwrap(), self.t);
        group.run(|number| {
            let share = share(number, self.shares[places[usize::from(number) - 1]].1);
            let (holders, public_key, kind) = (holders.clone(), self.public_key, kind(number));
            Box::new(move |party: Party| async move {
                let (epoch, session, count, digest) = (Epoch::FIRST, [9; 32], 4, Some(digest(b"now")));
                let share = Secret::new(share);
                let setting = Presigning {
                    holders,
                    epoch,
                    public_key,
                    share,
                    points: Vec::new(),
                    session,
                    count,
                    digest,
                    owner: None,
                };
                match kind {
                    Kind::Shamir => presign_passive::<G>(party, setting).await,
                    Kind::MaliciousShamir => presign::<G>(party, setting).await,
                    Kind::SemiOt => presign_semi_ot::<G>(party, setting, &SetUps::default()).await,
                    Kind::Mascot => presign_dishonest::<G>(party, setting, &SetUps::default()).await,
                }
            })
        })
    }

    fn presign_each(&self, places: &[usize], count: usize, text: impl Fn(u16) -> Option<[u8; 32]>) -> Ran<G> {
        self.presign_owned(places, count, text, |_| None)
    }

    /// The same, with whom each believes to be the owner of all.
    fn presign_owned(
        &self,
        places: &[usize],
        count: usize,
        text: impl Fn(u16) -> Option<[u8; 32]>,
        owner: impl Fn(u16) -> Option<ShareIndex>,
    ) -> Ran<G> {
        let holders: Vec<ShareIndex> = places.iter().map(|place| self.shares[*place].0).collect();
        let group = GroupOf::new(u16::try_from(places.len()).unwrap(), self.t);
        group.run(|number| {
            let share = self.shares[places[usize::from(number) - 1]].1;
            let (holders, public_key, digest) = (holders.clone(), self.public_key, text(number));
            let owner = owner(number);
            Box::new(move |party: Party| async move {
                let share = Secret::new(share);
                let (epoch, session) = (Epoch::FIRST, [9; 32]);
                let setting =
                    Presigning { holders, epoch, public_key, share, points: Vec::new(), session, count, digest, owner };
                presign::<G>(party, setting).await
            })
        })
    }
}

/// By party, in the order of the program's positions.
fn results<G: Curve>(ran: Ran<G>) -> Vec<Presigned<G>> {
    ran.parties.into_values().map(|party| party.result.unwrap().unwrap()).collect()
}

/// By presignature, what each holder has of it.
fn by_presignature<G: Curve>(ran: Ran<G>) -> Vec<Vec<Presignature<G>>> {
    let mut columns: Vec<Vec<Presignature<G>>> = Vec::new();
    for presigned in results(ran) {
        for (place, presignature) in presigned.presignatures.into_iter().enumerate() {
            if columns.len() == place {
                columns.push(Vec::new());
            }
            columns[place].push(presignature);
        }
    }
    columns
}

/// Checks that all parties have stopped at the comparison of what they mean to do.
fn all_refuse(ran: &Ran<P256>) {
    for (party, report) in &ran.parties {
        let error = report.result.as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.to_string().contains("the parties mean different keys"), "{party}: {error}");
    }
}

fn signs<G: Curve>(n: u16, t: u16, places: &[usize], sets: usize) {
    let dealt = deal::<G>(n, t);
    let text = b"the message";
    let mut seen = BTreeSet::new();
    let mut owners = BTreeSet::new();
    for column in by_presignature(dealt.presign(places, 2 * sets, None)) {
        let (signers, element, id) = (column[0].signers().to_vec(), *column[0].element(), column[0].id());
        assert!(column.iter().all(|it| it.signers() == signers && it.id() == id && it.owner() == column[0].owner()));
        assert!(signers.contains(&column[0].owner()));
        owners.insert(column[0].owner());
        let shares: Vec<G::Scalar> =
            column.into_iter().filter_map(|it| it.share(&message(text))).map(|(share, _)| *share.expose()).collect();
        assert_eq!(shares.len(), usize::from(t) + 1, "nobody else has a share");
        let combined = |shares: &[G::Scalar], text: &[u8]| dealt.combined(&element, text, shares.iter().copied());
        let signature = combined(&shares, text).unwrap();
        assert!(signature.vartime_verifies(&dealt.public_key, &digest(text)));
        assert!(combined(&shares, b"another").is_none() && combined(&shares[1..], text).is_none());
        seen.insert(signers);
    }
    assert_eq!(seen.len(), sets, "every set of t + 1 holders has its turn");
    assert!(owners.len() > usize::from(t), "and all say what is signed");
}

#[test]
fn every_set_of_holders_signs() {
    signs::<P256>(3, 1, &[0, 1, 2], 3);
    signs::<Secp256k1>(5, 2, &[0, 1, 2, 3, 4], 10);
    // Some of more holders, whose shares are not at 1, 2, 3.
    signs::<P256>(5, 1, &[0, 2, 4], 3);
    signs::<P256>(9, 2, &[1, 3, 4, 6, 8], 10);
}

/// Who has used up its own gets all of a program, with each of the others in turn.
#[test]
fn one_holder_may_own_all() {
    let dealt = deal::<P256>(5, 2);
    let places: Vec<usize> = (0..5).collect();
    for (owner, _) in &dealt.shares {
        let made = by_presignature(dealt.presign_owned(&places, 12, |_| None, |_| Some(*owner)));
        let sets: BTreeSet<Vec<ShareIndex>> = made.iter().map(|column| column[0].signers().to_vec()).collect();
        assert_eq!((made.len(), sets.len()), (12, 6), "each of its sets has its turn");
        assert!(sets.iter().all(|signers| signers.contains(owner)));
        assert!(made.iter().flatten().all(|it| it.owner() == *owner));
    }
    // All have to mean the same, and it has to be one of them.
    all_refuse(&dealt.presign_owned(&places, 2, |_| None, |number| Some(dealt.shares[usize::from(number == 3)].0)));
    let stranger = deal::<P256>(7, 3).shares[6].0;
    let ran = dealt.presign_owned(&places, 2, |_| None, |_| Some(stranger));
    let errors = ran.parties.values().map(|report| report.result.as_ref().unwrap().as_ref().unwrap_err().to_string());
    errors.for_each(|error| assert!(error.contains("the owner is no holder of the program"), "{error}"));
}

/// So may one where all but one may cheat.
#[test]
fn one_of_all_holders_may_own_all() {
    let dealt = deal::<P256>(3, 2);
    let presign = |owner: &dyn Fn(u16) -> Option<ShareIndex>| {
        dealt.presign_dishonest_owned(&[0, 1, 2], Some(b"now"), |_, share| share, owner)
    };
    for (owner, _) in &dealt.shares {
        let made = by_presignature(presign(&|_| Some(*owner)));
        assert!(made.len() == 2 && made.iter().flatten().all(|it| it.owner() == *owner));
    }
    all_refuse(&presign(&|number| Some(dealt.shares[usize::from(number == 3)].0)));
    let stranger = deal::<P256>(7, 3).shares[6].0;
    let ran = presign(&|_| Some(stranger));
    let errors = ran.parties.values().map(|report| report.result.as_ref().unwrap().as_ref().unwrap_err().to_string());
    errors.for_each(|error| assert!(error.contains("the owner is no holder of the program"), "{error}"));
}

/// A few of very many sets: no holder is a signer of all, so that one that is down stops none but its own.
#[test]
fn no_holder_is_needed_for_all_of_a_large_group() {
    let dealt = deal::<P256>(15, 7);
    let places: Vec<usize> = (0..15).collect();
    let made = by_presignature(dealt.presign(&places, 12, None));
    for (holder, _) in &dealt.shares {
        let without = made.iter().filter(|column| !column[0].signers().contains(holder)).count();
        assert!(without > 2, "{without} of 12 without holder {holder}");
    }
}

#[test]
fn the_first_message_is_signed_at_once() {
    let dealt = deal::<P256>(5, 1);
    for presigned in results(dealt.presign(&[1, 2, 4], 4, Some(b"now"))) {
        assert_eq!(presigned.presignatures.len(), 4);
        assert!(presigned.signature.unwrap().vartime_verifies(&dealt.public_key, &digest(b"now")));
    }
}

/// Parties that were asked to sign different messages notice it before anything that depends on a secret leaves.
#[test]
fn different_requests_do_not_run_together() {
    let dealt = deal::<P256>(3, 1);
    all_refuse(&dealt.presign_each(&[0, 1, 2], 4, |number| Some(digest(&[u8::from(number == 2)]))));
}

/// The attack for which tuples need agreement: an adversary with t = 1 share lets two honest signers use one tuple for two messages. The shares that
/// come out are masked by what the two have in common, and say nothing: with any guess of the adversary's, no signature of either comes out, nor do
/// the two equations give the key.
#[test]
fn signers_that_believe_different_things_show_nothing() {
    let dealt = deal::<P256>(5, 2);
    for column in by_presignature(dealt.presign(&[0, 1, 2, 3, 4], 10, None)) {
        let element = *column[0].element();
        let shares: Vec<(ShareIndex, Presignature<P256>)> = column
            .into_iter()
            .enumerate()
            .map(|(place, it)| (dealt.shares[place].0, it))
            .filter(|(index, it)| it.signers().contains(index))
            .collect();
        // The first two signers are honest, and believe two things; the third is the adversary, which can make both of its shares.
        let [one, two, liar]: [_; 3] = shares.try_into().unwrap();
        let texts = [b"one", b"two"];
        let honest = [one.1.share(&message(texts[0])), two.1.share(&message(texts[1]))];
        let honest: Vec<_> = honest.into_iter().map(|share| *share.unwrap().0.expose()).collect();
        let own = *liar.1.share(&message(texts[0])).unwrap().0.expose();
        for text in texts {
            let all = [honest[0], honest[1], own];
            assert!(dealt.combined(&element, text, all).is_none());
        }
    }
}

/// A share of a signer that lies makes no signature, and nothing else comes of it.
#[test]
fn a_false_share_makes_no_signature() {
    let dealt = deal::<P256>(3, 1);
    for column in by_presignature(dealt.presign(&[0, 1, 2], 6, None)) {
        let element = *column[0].element();
        let mut shares: Vec<_> =
            column.into_iter().filter_map(|it| it.share(&message(b"m"))).map(|(share, _)| *share.expose()).collect();
        shares[0] += <P256 as Group>::Scalar::ONE;
        assert!(dealt.combined(&element, b"m", shares).is_none());
    }
}

/// With too few parties, or too many, there is no program.
#[test]
fn it_takes_two_t_plus_one() {
    let dealt = deal::<P256>(4, 1);
    let ran = dealt.presign(&[0, 1, 2, 3], 1, None);
    let errors = ran.parties.values().map(|party| party.result.as_ref().unwrap().as_ref().unwrap_err().to_string());
    assert!(
        errors
            .into_iter()
            .all(|error| error == Stop::Input("Shamir's black box with active security needs n = 2t + 1").to_string())
    );
}

/// Without an honest majority: any k of n holders sign at once, and later with what they have made.
#[test]
fn exactly_k_holders_sign_without_an_honest_majority() {
    for (n, t, places) in [(2, 1, vec![0, 1]), (3, 1, vec![0, 2]), (4, 2, vec![0, 1, 3])] {
        let dealt = deal::<P256>(n, t);
        let ran = dealt.presign_dishonest(&places, Some(b"now"), |_, share| share);
        let mut columns: Vec<Vec<Presignature<P256>>> = vec![Vec::new(), Vec::new()];
        for Presigned { presignatures, signature } in results(ran) {
            assert!(signature.unwrap().vartime_verifies(&dealt.public_key, &digest(b"now")));
            assert_eq!(presignatures.len(), 2);
            columns.iter_mut().zip(presignatures).for_each(|(column, it)| column.push(it));
        }
        for column in columns {
            let element = *column[0].element();
            assert!(column.iter().all(|it| it.id() == column[0].id() && it.owner() == column[0].owner()));
            let text = b"later";
            let shares: Vec<_> = column
                .into_iter()
                .filter_map(|it| it.share(&message(text)))
                .map(|(share, _)| *share.expose())
                .collect();
            let combined = |shares: &[_]| dealt.combined(&element, text, shares.iter().copied());
            assert!(combined(&shares).unwrap().vartime_verifies(&dealt.public_key, &digest(text)));
            assert!(combined(&shares[1..]).is_none());
        }
    }
}

/// A holder that puts in another share makes another key. That is found before anything is computed from it.
#[test]
fn a_false_share_is_found_before_it_is_used() {
    for (n, t, liar) in [(2, 1, 1), (3, 2, 2)] {
        let dealt = deal::<P256>(n, t);
        let places: Vec<usize> = (0..usize::from(n)).collect();
        let one = <P256 as Group>::Scalar::from_u128(1);
        let ran = dealt.presign_dishonest(
            &places,
            Some(b"now"),
            |number, share| if number == liar { share + one } else { share },
        );
        for (_, party) in ran.parties {
            let error = party.result.unwrap().unwrap_err();
            assert_eq!(error, Abort::Cheated("the holders' shares are not those of the public key"));
        }
    }
}

/// With whatever black box holders sign at once, and later with what they have made, which says with which security it was.
#[test]
fn all_kinds_of_presignatures_sign_and_say_what_they_are() {
    for (kind, n, t, places) in [
        (Kind::Shamir, 3, 1, vec![0, 1, 2]),
        (Kind::Shamir, 7, 2, vec![0, 2, 3, 5, 6]),
        (Kind::MaliciousShamir, 4, 1, vec![0, 1, 3]),
        (Kind::SemiOt, 2, 1, vec![0, 1]),
        (Kind::SemiOt, 3, 1, vec![0, 2]),
        (Kind::SemiOt, 4, 2, vec![0, 1, 3]),
        (Kind::Mascot, 3, 1, vec![1, 2]),
    ] {
        let dealt = deal::<Secp256k1>(n, t);
        let mut columns: Vec<Vec<Presignature<Secp256k1>>> = (0..4).map(|_| Vec::new()).collect();
        for Presigned { presignatures, signature } in results(dealt.presign_as(&places, |_| kind, |_, share| share)) {
            assert!(signature.unwrap().vartime_verifies(&dealt.public_key, &digest(b"now")), "{kind:?}");
            assert_eq!(presignatures.len(), 4);
            columns.iter_mut().zip(presignatures).for_each(|(column, it)| column.push(it));
        }
        for column in columns {
            let is_active = matches!(kind, Kind::MaliciousShamir | Kind::Mascot);
            assert!(column.iter().all(|it| it.id() == column[0].id() && it.is_active() == is_active), "{kind:?}");
            let element = *column[0].element();
            let shares: Vec<_> = column
                .into_iter()
                .filter_map(|it| it.share(&message(b"m")))
                .map(|(share, _)| *share.expose())
                .collect();
            assert_eq!(shares.len(), usize::from(t) + 1, "its signers and nobody else");
            assert!(dealt.combined(&element, b"m", shares).is_some());
        }
    }
}

/// A holder that believes in another security than the others: all stop before anything leaves that depends on a secret.
#[test]
fn holders_of_different_security_do_not_run_together() {
    for (n, t, kind, other) in [
        (3, 1, Kind::MaliciousShamir, Kind::Shamir),
        (3, 1, Kind::Shamir, Kind::MaliciousShamir),
        (2, 1, Kind::Mascot, Kind::SemiOt),
        (3, 2, Kind::SemiOt, Kind::Mascot),
    ] {
        let dealt = deal::<P256>(n, t);
        let places: Vec<usize> = (0..usize::from(n)).collect();
        all_refuse(&dealt.presign_as(&places, |number| if number == 2 { other } else { kind }, |_, share| share));
    }
}

/// A share of another epoch, say, is found with Semi-OT, too.
#[test]
fn a_wrong_share_is_found_with_passive_security() {
    let dealt = deal::<P256>(2, 1);
    let one = <P256 as Group>::Scalar::from_u128(1);
    let ran =
        dealt.presign_as(&[0, 1], |_| Kind::SemiOt, |number, share| if number == 2 { share + one } else { share });
    for (_, party) in ran.parties {
        let error = party.result.unwrap().unwrap_err();
        assert_eq!(error, Abort::Cheated("the holders' shares are not those of the public key"));
    }
}
