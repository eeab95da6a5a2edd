//! Tuples for signers that need no agreement: Presignatures.
//!
//! [`sign`](super::sign) leaves to its caller that all signers agree which message a tuple signs; without that the key leaks.
//! A presignature needs none. It names its t + 1 signers when it is made, before anybody knows a message, and nobody else ever releases a share of
//! it. Each two of them have a secret in common, from which they mask their shares by (key, R, digest, session): masks cancel if, and
//! only if, all honest signers sign the same. `spec/ecdsa.md`, "Presignatures", has the argument.

use core::fmt;

use rand_core::Rng;
use theta_groups::{Group, Scalar as _, Secret, Transcript};
use theta_names::{Epoch, ShareIndex};

use super::{
    Request, Signature, Tuple, bind,
    curve::Curve,
    key::{KeyIdentity, KeyShare, Sharing},
    nonces::prepare_nonces,
    sign::{Blinded, sign},
    tuple::bind_confirmed,
};
use crate::{Active, BlackBox, Party, Passive, Security, Shamir, Shared, Stop, pairs, program::SEED, shamir::Subsets};

/// What is signed: the message's digest, and what distinguishes this signature from all others. All signers pass the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message's digest, 256 bits.
    pub digest: [u8; 32],
    /// The request.
    pub session: [u8; 32],
}

/// What a batch is made for and among whom: the same at all parties, but for the share.
pub struct Presigning<G: Group> {
    /// The holders that make it, 2t + 1 of them, in rising order: the parties of the program, by position.
    pub holders: Vec<ShareIndex>,
    /// The epoch of the shares.
    pub epoch: Epoch,
    /// X.
    pub public_key: G::Element,
    /// This party's share of x, at its own index.
    pub share: Secret<G::Scalar>,
    /// G times each holder's share of x, by position; with an honest majority and active security whoever shows a false share of the masked key is found by them.
    pub points: Vec<G::Element>,
    /// What distinguishes this run from all others.
    pub session: [u8; 32],
    /// How many presignatures to make.
    pub count: usize,
    /// The digest to sign at once with one tuple more, which serves nothing else.
    pub digest: Option<[u8; 32]>,
    /// The holder that says of all of them what they sign, and is a signer of each; `None`: holders take turns.
    pub owner: Option<ShareIndex>,
}

impl<G: Group> Presigning<G> {
    /// What all know of it, with a share of nothing: up to the program's [border](Party::border) no share is used.
    pub(super) fn without_share(&self) -> Self {
        let Self { epoch, public_key, session, count, digest, owner, .. } = *self;
        let (share, points) = (Secret::new(G::Scalar::ZERO), Vec::new());
        Self { holders: self.holders.clone(), epoch, public_key, share, points, session, count, digest, owner }
    }
}

/// What a batch gave.
#[derive(Debug)]
pub struct Presigned<G: Curve> {
    /// Presignatures for later.
    pub presignatures: Vec<Presignature<G>>,
    /// The signature of the digest, if one was given.
    pub signature: Option<Signature<G>>,
}

/// A tuple for t + 1 named signers, at one holder: with its part of the secrets if it is one of them.
///
/// It has no `Clone` and no encoding, and [`share`](Self::share) consumes it.
pub struct Presignature<G: Curve> {
    id: [u8; 32],
    element: G::Element,
    public_key: G::Element,
    signers: Vec<ShareIndex>,
    owner: ShareIndex,
    is_active: bool,
    part: Option<Part<G>>,
}

/// What a signer keeps of a presignature.
struct Part<G: Group> {
    /// Its shares of 1 / k and x / k, times its Lagrange coefficient among the signers.
    parts: Secret<[G::Scalar; 2]>,
    /// What it has in common with each other signer, and whether it adds the mask or takes it away.
    masks: Vec<(bool, Secret<[u8; SEED]>)>,
}

impl<G: Curve> Presignature<G> {
    /// Its public name: see [`Tuple::id`].
    #[must_use]
    pub const fn id(&self) -> [u8; 32] {
        self.id
    }

    /// R.
    #[must_use]
    pub const fn element(&self) -> &G::Element {
        &self.element
    }

    /// The t + 1 holders that can sign with it, in rising order.
    #[must_use]
    pub fn signers(&self) -> &[ShareIndex] {
        &self.signers
    }

    /// The signer that says what it is used for. It is given to one request by one holder, so that two do not take it at once.
    #[must_use]
    pub const fn owner(&self) -> ShareIndex {
        self.owner
    }

    /// Whether it was made with active security. One that was not must sign for no key that asks for it.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.is_active
    }

    /// This signer's masked share of s, a scalar, and what all shares are put together with; `None` if this holder is none of its signers, or in the event, which nobody can
    /// bring about, that r is zero.
    #[must_use]
    pub fn share(self, message: &Message) -> Option<(Secret<G::Scalar>, Blinded<G>)> {
        let part = self.part.as_ref()?;
        let blinded = Blinded::vartime_of(&self.public_key, &self.element, message)?;
        let [inverse, product] = part.parts.expose();
        let mut share = Secret::new(*inverse * blinded.of_inverse + *product * blinded.of_product);
        for (adds, secret) in &part.masks {
            let mask = Transcript::new("theta/ecdsa/share-mask/v1")
                .with("secret", secret.expose())
                .with("R", &G::encode(&self.element))
                .with("digest", &message.digest)
                .with("session", &message.session);
            let mask = Secret::new(mask.challenge::<G::Scalar>());
            let sum = share.expose_mut();
            *sum = if *adds { *sum + *mask.expose() } else { *sum - *mask.expose() };
        }
        Some((share, blinded))
    }
}

impl<G: Curve> fmt::Debug for Presignature<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presignature")
            .field("signers", &self.signers)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// Makes presignatures among 2t + 1 holders of a key, and signs a digest with one tuple more if one is given.
///
/// First all compare what they mean to do; before that nothing leaves that depends on a secret. Signing comes last, and goes on
/// without t of them and against their lies ([`sign`]); here its caller's agreement is the comparison.
///
/// Its [border](Party::border) is where the share of x is used for the first time: see [`disputes`](super::disputes).
///
/// # Errors
/// [`Stop`]; [`Stop::Cheated`] if not all mean the same.
pub async fn presign<G: Curve>(party: Party, setting: Presigning<G>) -> Result<Presigned<G>, Stop> {
    meet(&party, "theta/ecdsa/presigning/v3", &setting).await?;
    let run = pairs::fresh_id(&party).await?;
    party.begin_run(&run);
    presign_with::<G, Active>(&party, setting).await
}

/// As [`presign`], with passive security: it takes a quarter less work and a quarter of the rounds, and a holder that does not follow the protocol may
/// learn the key without being noticed. Holders that mean the other security go no further than the comparison.
///
/// A holder that begins anew in the middle would send other values than before, and no check would find that, so all compare next that they have
/// begun together, before anything that depends on a secret leaves.
///
/// # Errors
/// As [`presign`].
pub async fn presign_passive<G: Curve>(party: Party, setting: Presigning<G>) -> Result<Presigned<G>, Stop> {
    meet(&party, "theta/ecdsa/presigning/shamir/v3", &setting).await?;
    pairs::fresh_id(&party).await?;
    presign_with::<G, Passive>(&party, setting).await
}

/// On Shamir's sharing, among holders that mean the same.
pub(super) async fn presign_with<G: Curve, M: Security>(
    party: &Party,
    setting: Presigning<G>,
) -> Result<Presigned<G>, Stop> {
    let Presigning { holders, epoch, public_key, share, points, session, count, digest, owner } = setting;
    if !points.is_empty() && points.len() != party.n() {
        return Err(Stop::Input("there is a point for each holder, or there are none"));
    }
    let black_box = Shamir::<G, M>::at(party, holders.clone()).await?;
    let sharing = Sharing::of(&black_box, epoch);
    let identity = KeyIdentity { public: public_key, sharing };
    let key = KeyShare::of(Shared::from_cells([[*share.expose()]]), identity).with_points(points);
    drop(share);
    let now = digest.map(|digest| Message { digest, session });
    let (first, tuples) = tuples(&black_box, &key, count, now).await?;
    let presignatures = assign(party, &holders, owner, tuples).await?;
    Ok(Presigned { presignatures, signature: sign_first(&black_box, &key, first).await? })
}

/// What is signed at once, and the tuple that signs it.
pub(super) type First<B> = Option<(Message, Tuple<B>)>;

/// So many tuples of a key, and one more for what is to be signed at once.
pub(super) async fn tuples<B: BlackBox>(
    black_box: &B,
    key: &KeyShare<B>,
    count: usize,
    now: Option<Message>,
) -> Result<(First<B>, Vec<Tuple<B>>), Stop>
where
    B::Group: Curve,
{
    let all = count.saturating_add(usize::from(now.is_some()));
    let nonces = prepare_nonces(black_box, key.identity.sharing.epoch, all).await?;
    // With an honest majority all have just confirmed these nonces, and before that the key.
    let mut tuples = if nonces.have_masks() {
        bind_confirmed(black_box, nonces, key).await?
    } else {
        bind(black_box, nonces, key).await?
    };
    let Some(message) = now else { return Ok((None, tuples)) };
    if tuples.is_empty() {
        return Err(Stop::Input("no nonce that is of use, which happens with probability 2^-254"));
    }
    let first = tuples.remove(0);
    Ok((Some((message, first)), tuples))
}

/// Signs what is to be signed at once, if anything is.
pub(super) async fn sign_first<B: BlackBox>(
    black_box: &B,
    key: &KeyShare<B>,
    first: First<B>,
) -> Result<Option<Signature<B::Group>>, Stop>
where
    B::Group: Curve,
{
    let Some((Message { digest, session }, tuple)) = first else { return Ok(None) };
    let request = Request { tuple: tuple.id(), digest, session };
    sign(black_box, key, tuple, request).await.map(Some)
}

/// The phase of a program that ends because its parties do not mean the same. It is no proof that somebody cheated: a coordinator that has begun anew
/// names other holders than its life before, and each may have heard of another one. Nothing that depends on a secret has left when it is found.
pub(crate) const MEANT_APART: &str = "the parties mean different keys, requests or sets of parties";

/// All compare what they mean to do. Nothing that depends on a secret has left before.
pub(super) async fn meet<G: Curve>(party: &Party, domain: &'static str, setting: &Presigning<G>) -> Result<(), Stop> {
    let mut transcript = Transcript::new(domain)
        .with("group", G::NAME.as_bytes())
        .with("public key", &G::encode(&setting.public_key))
        .with("epoch", &setting.epoch.to_be_bytes())
        .with("t", &party.threshold().t().to_be_bytes())
        .with("session", &setting.session)
        .with("count", &u64::try_from(setting.count).unwrap_or(u64::MAX).to_be_bytes())
        .with("digest", setting.digest.as_ref().map_or(&[][..], |digest| &digest[..]));
    for holder in &setting.holders {
        transcript.append("holder", &holder.get().to_be_bytes());
    }
    for point in &setting.points {
        transcript.append("point", &G::encode(point));
    }
    if let Some(owner) = setting.owner {
        transcript.append("owner", &owner.get().to_be_bytes());
    }
    if party.agree(&transcript.finish32()).await? { Ok(()) } else { Err(Stop::Cheated(MEANT_APART)) }
}

/// Gives each tuple its signers and an owner among them; each two parties get a secret in common. All sets of t + 1 holders, or those with the one that
/// is to be the owner, have their turn, in steps: of large groups only some of very many sets are used, and neighbours in the order have nearly all
/// holders in common.
async fn assign<G: Curve, M: Security>(
    party: &Party,
    holders: &[ShareIndex],
    owner: Option<ShareIndex>,
    tuples: Vec<Tuple<Shamir<G, M>>>,
) -> Result<Vec<Presignature<G>>, Stop> {
    if tuples.is_empty() {
        return Ok(Vec::new());
    }
    let (local, n, k) = (party.position(), party.n(), party.t() + 1);
    let seeds = common_seeds(party).await?;
    let place_of = |owner: ShareIndex| holders.iter().position(|holder| *holder == owner);
    let only = match owner {
        Some(owner) => Some(place_of(owner).ok_or(Stop::Input("the owner is no holder of the program"))?),
        None => None,
    };
    let is_used = |set: &Vec<usize>| only.is_none_or(|place| set.contains(&place));
    let sets: Vec<Vec<usize>> = Subsets::new(n, k).filter(is_used).collect();
    let step = step(sets.len());
    let start = tuples.first().map_or(0, |tuple| usize::from(u16::from_be_bytes([tuple.id[0], tuple.id[1]])));
    let mut made = Vec::with_capacity(tuples.len());
    for (i, tuple) in tuples.into_iter().enumerate() {
        let number = start + i;
        let (Some(place), Some(cycle)) = ((number * step).checked_rem(sets.len()), number.checked_div(sets.len()))
        else {
            continue;
        };
        let Some(set) = sets.get(place) else { continue };
        let signers: Vec<ShareIndex> = set.iter().filter_map(|position| holders.get(*position).copied()).collect();
        // In each cycle another one of every set.
        let turn = (place + cycle).checked_rem(k).unwrap_or(0);
        let Some(owner) = owner.or_else(|| signers.get(turn).copied()) else { continue };
        let coefficients = theta_sharing::coefficients_at_zero::<G::Scalar>(&signers).unwrap_or_default();
        let coefficient = set.iter().position(|position| *position == local).and_then(|place| coefficients.get(place));
        let part = coefficient.and_then(|coefficient| shamir_part(&tuple, *coefficient, set, local, &seeds));
        let Tuple { id, element, key, .. } = tuple;
        let public_key = key.public;
        made.push(Presignature { id, element, public_key, signers, owner, is_active: M::ACTIVE, part });
    }
    Ok(made)
}

/// A step that visits all of so many places before it comes back to one, and leaves no part of them out for long: next to the golden section.
fn step(places: usize) -> usize {
    let coprime = |step: &usize| {
        let (mut a, mut b) = (places, *step);
        while let Some(rest) = a.checked_rem(b) {
            (a, b) = (b, rest);
        }
        a == 1
    };
    let first = (places * 618).div_ceil(1_000).max(1);
    (first..first.saturating_add(places)).find(coprime).unwrap_or(1)
}

/// What the party at `local` keeps of a tuple as one of its signers.
fn shamir_part<G: Curve, M: Security>(
    tuple: &Tuple<Shamir<G, M>>,
    coefficient: G::Scalar,
    set: &[usize],
    local: usize,
    seeds: &[Secret<[u8; SEED]>],
) -> Option<Part<G>> {
    let [[inverse]] = tuple.inverse.cells()[..] else { return None };
    let [[product]] = tuple.product.cells()[..] else { return None };
    let parts = Secret::new([inverse * coefficient, product * coefficient]);
    Some(Part { parts, masks: masks(&tuple.id, set, local, seeds)? })
}

/// The masks of the party at `local` with each other signer of a set.
fn masks(
    id: &[u8; 32],
    set: &[usize],
    local: usize,
    seeds: &[Secret<[u8; SEED]>],
) -> Option<Vec<(bool, Secret<[u8; SEED]>)>> {
    let mask = |other: &usize| {
        let secret =
            Transcript::new("theta/ecdsa/mask-secret/v1").with("seed", seeds.get(*other)?.expose()).with("tuple", id);
        Some((local < *other, Secret::new(secret.finish32())))
    };
    set.iter().filter(|other| **other != local).map(mask).collect()
}

/// A tuple for all parties of a black box that shares additively: all of them sign. If nobody is the owner of all, they take turns.
///
/// A party's summand is the first scalar of its cell: MASCOT's second one is the MAC.
pub(super) fn of_all<G: Curve, B: BlackBox<Group = G, Cell = [G::Scalar; W]>, const W: usize>(
    (holders, owner): (&[ShareIndex], Option<ShareIndex>),
    local: usize,
    place: usize,
    tuple: Tuple<B>,
    seeds: &[Secret<[u8; SEED]>],
) -> Option<Presignature<G>> {
    let Tuple { id, element, key, inverse, product } = tuple;
    let set: Vec<usize> = (0..holders.len()).collect();
    let turn = place.wrapping_add(usize::from(id[0])).checked_rem(holders.len())?;
    let owner = owner.or_else(|| holders.get(turn).copied())?;
    let inverse = *inverse.cells().first()?.first()?;
    let product = *product.cells().first()?.first()?;
    let masks = masks(&id, &set, local, seeds)?;
    let part = Some(Part { parts: Secret::new([inverse, product]), masks });
    let (public_key, signers) = (key.public, holders.to_vec());
    Some(Presignature { id, element, public_key, signers, owner, is_active: B::ACTIVE, part })
}

/// A seed in common with each other party, by position: of each two, the first draws it.
pub(super) async fn common_seeds(party: &Party) -> Result<Vec<Secret<[u8; SEED]>>, Stop> {
    let local = party.position();
    let mut seeds: Vec<Secret<[u8; SEED]>> = (0..party.n()).map(|_| Secret::new([0; SEED])).collect();
    for seed in seeds.iter_mut().skip(local + 1) {
        party.draw(|rng| rng.fill_bytes(seed.expose_mut()));
    }
    let out: Vec<Vec<u8>> = seeds
        .iter()
        .enumerate()
        .map(|(to, seed)| if to > local { seed.expose().to_vec() } else { Vec::new() })
        .collect();
    let expected: Vec<usize> = (0..party.n()).map(|from| if from < local { SEED } else { 0 }).collect();
    let got = party.exchange(&out, &expected)?.await?;
    for (seed, bytes) in seeds.iter_mut().zip(got).take(local) {
        if let Ok(bytes) = <[u8; SEED]>::try_from(bytes.as_ref()) {
            *seed.expose_mut() = bytes;
        }
    }
    Ok(seeds)
}
